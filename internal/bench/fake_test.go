package bench

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the server that a run starts: with
// the argument serve it is a fake that speaks the wire format.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := serveFake(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "trivial" {
		if err := serveTrivial(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Under the race detector a process waits a second before it ends; ours
	// start many.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveFake(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	null := flags.Bool("null", false, "")
	dir := flags.String("root-dir", "", "")
	port := flags.Int("port", 7890, "")
	for _, name := range []string{"log-format", "log-level", "sync"} {
		flags.String(name, "", "")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	f := newFake()
	f.null = *null
	if !*null {
		if err := f.load(*dir); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(*port))
	if err != nil {
		return err
	}
	fmt.Printf(`{"level":"INFO","fields":{"message":"listening","api":"primary","scheme":"http","addr":"%s"}}`+"\n", l.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go http.Serve(l, f) //nolint:errcheck // ends with the process
	<-stop
	return nil
}

// fake is a server without rules: jobs by queue, first in first out.
type fake struct {
	mu      sync.Mutex
	jobs    map[string]*fakeJob
	ready   map[string][]*fakeJob
	changed chan struct{} // closed and replaced when something becomes ready
	next    int
	null    bool
	disk    *os.File

	// forget makes every n-th enqueue an answer without a job; repeat delivers
	// every n-th job twice; refuse answers every n-th enqueue with 503;
	// uncounted leaves the attempts of a job alone.
	forget, repeat, refuse int
	uncounted              bool
}

type fakeJob struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Queue    string          `json:"queue"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	Attempts int             `json:"attempts"`
	inFlight bool
}

func newFake() *fake {
	return &fake{jobs: map[string]*fakeJob{}, ready: map[string][]*fakeJob{}, changed: make(chan struct{})}
}

// load makes the fake durable enough for a restart: enqueues are appended to a
// file, completions are not.
func (f *fake) load(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	if f.disk, err = os.OpenFile(filepath.Join(dir, "jobs"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return err
	}
	lines := bufio.NewScanner(f.disk)
	for lines.Scan() {
		job := &fakeJob{}
		if err := json.Unmarshal(lines.Bytes(), job); err != nil {
			return err
		}
		f.insert(job)
	}
	return lines.Err()
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.Method + " " + r.URL.Path
	w.Header().Set("Content-Type", "application/json")
	switch {
	case path == "GET /version":
		fmt.Fprint(w, `{"version":"0.0.0-fake"}`)
	case path == "POST /jobs":
		f.enqueue(w, r, false)
	case path == "POST /jobs/bulk":
		f.enqueue(w, r, true)
	case path == "GET /jobs/take":
		f.take(w, r)
	case path == "POST /jobs/success":
		f.succeed(w, r)
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/failure"):
		f.fail(w, strings.Split(r.URL.Path, "/")[2])
	case path == "GET /jobs/count":
		f.count(w, r.URL.Query().Get("queue"))
	case path == "DELETE /jobs":
		f.remove(w, r.URL.Query().Get("queue"))
	default:
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
	}
}

func (f *fake) enqueue(w http.ResponseWriter, r *http.Request, bulk bool) {
	var body struct {
		Jobs []*fakeJob `json:"jobs"`
	}
	text, _ := io.ReadAll(r.Body)
	if !bulk {
		text = slices.Concat([]byte(`{"jobs":[`), text, []byte(`]}`))
	}
	if err := json.Unmarshal(text, &body); err != nil {
		http.Error(w, `{"error":"invalid JSON"}`, http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, job := range body.Jobs {
		f.next++
		if f.refuse > 0 && f.next%f.refuse == 0 {
			http.Error(w, `{"error":"the disk is full"}`, http.StatusServiceUnavailable)
			return
		}
		job.ID = fmt.Sprintf("%025d", f.next)
		if f.null || f.forget > 0 && f.next%f.forget == 0 {
			continue
		}
		if f.disk != nil {
			line, _ := json.Marshal(job)
			f.disk.Write(append(line, '\n')) //nolint:errcheck // a lost job is found by the test
		}
		f.insert(job)
	}
	close(f.changed)
	f.changed = make(chan struct{})
	w.WriteHeader(http.StatusCreated)
	if bulk {
		json.NewEncoder(w).Encode(body) //nolint:errcheck // the client may be gone
	} else {
		json.NewEncoder(w).Encode(body.Jobs[0]) //nolint:errcheck // the client may be gone
	}
}

func (f *fake) insert(job *fakeJob) {
	f.jobs[job.ID] = job
	f.ready[job.Queue] = append(f.ready[job.Queue], job)
}

func (f *fake) take(w http.ResponseWriter, r *http.Request) {
	prefetch, _ := strconv.Atoi(r.URL.Query().Get("prefetch"))
	queue := r.URL.Query().Get("queue")
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w).Flush
	var held []*fakeJob
	defer func() { f.giveBack(held) }()
	for {
		f.mu.Lock()
		changed := f.changed
		held = slices.DeleteFunc(held, func(j *fakeJob) bool { return !j.inFlight })
		n := min(prefetch-len(held), len(f.ready[queue]))
		burst := f.ready[queue][:n]
		f.ready[queue] = f.ready[queue][n:]
		var text []byte
		for i, job := range burst {
			job.inFlight = true
			line, _ := json.Marshal(job)
			text = append(append(text, line...), '\n')
			if f.repeat > 0 && i%f.repeat == f.repeat-1 {
				text = append(append(text, line...), '\n')
			}
		}
		held = append(held, burst...)
		f.mu.Unlock()
		if n == 0 {
			text = []byte("\n") // a heartbeat
		}
		if _, err := w.Write(text); err != nil || flush() != nil {
			return
		}
		if n > 0 {
			continue
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond): // slots become free without a signal
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fake) giveBack(held []*fakeJob) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, job := range held {
		if job.inFlight {
			job.inFlight = false
			f.ready[job.Queue] = append([]*fakeJob{job}, f.ready[job.Queue]...)
		}
	}
}

func (f *fake) succeed(w http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs []string `json:"ids"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.IDs) == 0 {
		http.Error(w, `{"error":"ids must not be empty"}`, http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var unknown []string
	for _, id := range body.IDs {
		if job := f.jobs[id]; job == nil || !job.inFlight {
			unknown = append(unknown, id)
		} else {
			job.inFlight = false
			delete(f.jobs, id)
		}
	}
	if unknown != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		json.NewEncoder(w).Encode(map[string]any{"not_found": unknown}) //nolint:errcheck // the client may be gone
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *fake) fail(w http.ResponseWriter, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job := f.jobs[id]
	if job == nil || !job.inFlight {
		http.Error(w, `{"error":"job not found in in-flight set"}`, http.StatusNotFound)
		return
	}
	job.inFlight = false
	if !f.uncounted {
		job.Attempts++
	}
	f.ready[job.Queue] = append(f.ready[job.Queue], job)
	fmt.Fprintf(w, `{"id":"%s","status":"scheduled","attempts":%d}`, id, job.Attempts)
}

func (f *fake) count(w http.ResponseWriter, queue string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, job := range f.jobs {
		if job.Queue == queue {
			n++
		}
	}
	fmt.Fprintf(w, `{"count":%d}`, n)
}

func (f *fake) remove(w http.ResponseWriter, queue string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.jobs)
	for id, job := range f.jobs {
		if job.Queue == queue {
			delete(f.jobs, id)
		}
	}
	delete(f.ready, queue)
	fmt.Fprintf(w, `{"deleted":%d}`, n-len(f.jobs))
}

// serveTrivial answers every request alike, to see what the generator itself
// can do.
func serveTrivial() error {
	answer := []byte(sampleLine)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf(`{"fields":{"api":"primary","addr":"%s"}}`+"\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client may be gone
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		w.Write(answer) //nolint:errcheck // the client may be gone
	}))
}
