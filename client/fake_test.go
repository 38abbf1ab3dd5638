package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// fake speaks the wire of the server as far as the client needs it, over pipes
// in memory, so that tests run on the clock of testing/synctest. It keeps to
// the order of things that matters here: what a worker holds is offered first
// when it comes back, a token settles once, room is prefetch minus held.
type fake struct {
	complain func(string, ...any)
	ln       *pipes

	// refuse may answer a request in place of the fake; nil passes it on.
	refuse func(*http.Request) *refusal

	mu      sync.Mutex // guards what follows
	jobs    []*fakeJob // in order of arrival
	keys    map[string]string
	streams map[string]*fakeStream
	wake    chan struct{} // closed and replaced at every change
	tokens  int
	takes   int           // streams that were opened
	settles []wire.Settle // accepted, in order
	calls   [][]wire.Settle
	begun   []string // runs that were said to have begun
	silent  bool     // no heartbeats
	budgets []wire.BudgetState
	locks   map[string]*wire.Lock

	lockRequest string // of the latest grant
	loseLocks   int    // grants whose answer gets lost
}

// refusal is an answer with an error.
type refusal struct {
	status     int
	code       string
	retryAfter string
	hangUp     bool // no answer at all
}

type fakeJob struct {
	wire.Job
	holder string
	errors []wire.JobError
}

type fakeStream struct{ end chan struct{} }

// newFake starts a fake server and makes a client of it.
func newFake(t testing.TB, opts Options) (*fake, *Client) {
	f := newWire(t.Errorf)
	server := &http.Server{Handler: f}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(f.ln) }()
	opts.dial = f.ln.dial
	c, err := New("http://fake.test/", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = server.Close()
		<-done
	})
	return f, c
}

func newWire(fail func(string, ...any)) *fake {
	return &fake{
		complain: fail, ln: &pipes{conns: make(chan net.Conn), closed: make(chan struct{})},
		keys: map[string]string{}, streams: map[string]*fakeStream{}, wake: make(chan struct{}),
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.refuse != nil {
		if no := f.refuse(r); no != nil {
			if no.hangUp {
				panic(http.ErrAbortHandler)
			}
			if no.retryAfter != "" {
				w.Header().Set("Retry-After", no.retryAfter)
			}
			f.fail(w, no.status, no.code)
			return
		}
	}
	switch path := strings.Split(r.URL.Path, "/"); {
	case r.Method == "POST" && r.URL.Path == "/jobs":
		var e wire.Enqueue
		f.read(r, &e)
		f.write(w, 201, f.put(e))
	case r.URL.Path == "/jobs/bulk":
		var b wire.Bulk
		f.read(r, &b)
		answer := wire.BulkEnqueued{Jobs: []wire.Enqueued{}}
		for _, e := range b.Jobs {
			answer.Jobs = append(answer.Jobs, f.put(e))
		}
		f.write(w, 201, answer)
	case r.URL.Path == "/jobs/take":
		f.take(w, r)
	case r.URL.Path == "/jobs/settle":
		var list []wire.Settle
		f.read(r, &list)
		f.write(w, 200, f.settle(list))
	case r.URL.Path == "/jobs/extend":
		var list wire.Extensions
		f.read(r, &list)
		if list.Worker != "" {
			f.extendWorker(w, list)
			return
		}
		f.write(w, 200, f.extend(list))
	case r.URL.Path == "/jobs/lease":
		f.unary(w, r)
	case r.URL.Path == "/jobs/count":
		f.write(w, 200, wire.Count{Count: int64(len(f.choose(r)))})
	case r.Method == "GET" && r.URL.Path == "/jobs":
		f.list(w, r)
	case r.URL.Path == "/queues":
		f.write(w, 200, f.queues())
	case r.URL.Path == "/version":
		f.write(w, 200, wire.Version{Version: "0.7.0", Product: "reprise", Reprise: "0.1.0"})
	case r.URL.Path == "/ready":
		f.write(w, 200, struct{}{})
	case len(path) >= 3 && path[1] == "locks":
		f.lock(w, r, path[2], path[3:])
	case len(path) >= 3 && path[1] == "jobs":
		f.one(w, r, path[2], path[3:])
	case path[1] == "budgets":
		f.budget(w, r, path[2:])
	default:
		f.fail(w, 404, wire.CodeNotFound)
	}
}

func (f *fake) one(w http.ResponseWriter, r *http.Request, id string, rest []string) {
	j := f.job(id)
	switch {
	case j == nil:
		f.fail(w, 404, wire.CodeNotFound)
	case r.Method == "DELETE":
		f.remove(id)
		w.WriteHeader(204)
	case len(rest) == 1 && rest[0] == "errors":
		f.write(w, 200, wire.ErrorPage{Errors: j.errors})
	default:
		f.write(w, 200, j.Job)
	}
}

func (f *fake) read(r *http.Request, into any) {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		f.complain("%s %s: %v", r.Method, r.URL, err)
	}
}

func (f *fake) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(body)
}

func (f *fake) fail(w http.ResponseWriter, status int, code string) {
	f.write(w, status, wire.Error{Error: "refused: " + code, Code: code})
}

// changed wakes the streams. It is called with mu held.
func (f *fake) changed() {
	close(f.wake)
	f.wake = make(chan struct{})
}

func (f *fake) put(e wire.Enqueue) wire.Enqueued {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.keys[e.IdempotencyKey]; id != "" {
		for _, j := range f.jobs {
			if j.ID == id {
				return wire.Enqueued{Job: j.Job, Duplicate: true}
			}
		}
	}
	j := &fakeJob{Job: wire.Job{
		ID: fmt.Sprintf("job%022d", len(f.jobs)), Type: e.Type, Queue: e.Queue, Payload: e.Payload,
		Priority: wire.PriorityDefault, Status: wire.Ready, ReadyAt: e.ReadyAt, RunTimeoutMS: e.RunTimeoutMS,
		Retry: e.Retry, Group: e.Group, ExpiresAt: e.ExpiresAt, Budgets: e.Budgets,
	}}
	if e.Priority != nil {
		j.Priority = *e.Priority
	}
	f.jobs = append(f.jobs, j)
	if e.IdempotencyKey != "" {
		f.keys[e.IdempotencyKey] = j.ID
	}
	f.changed()
	answer := wire.Enqueued{Job: j.Job}
	answer.Payload = nil
	return answer
}

// take is a named stream.
func (f *fake) take(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name := r.Header.Get("Worker-Id")
	prefetch, err := strconv.Atoi(q.Get("prefetch"))
	if err != nil || name == "" || q.Get("lease") != "token" {
		f.fail(w, 400, wire.CodeInvalid)
		return
	}
	var queues []string
	if names := q.Get("queue"); names != "" {
		queues = strings.Split(names, ",")
	}
	own := &fakeStream{end: make(chan struct{})}
	f.mu.Lock()
	if old := f.streams[name]; old != nil {
		close(old.end)
	}
	f.streams[name] = own
	f.takes++
	lines := f.offer(name)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.streams[name] == own {
			delete(f.streams, name)
		}
	}()
	w.WriteHeader(200)
	out := http.NewResponseController(w)
	beat := time.NewTicker(3 * time.Second)
	defer beat.Stop()
	for {
		f.mu.Lock()
		if f.streams[name] == own {
			lines = append(lines, f.give(name, queues, prefetch)...)
		}
		wake, silent := f.wake, f.silent
		f.mu.Unlock()
		for _, line := range lines {
			_, _ = w.Write(append(line, '\n'))
		}
		lines = nil
		if out.Flush() != nil {
			return
		}
		select {
		case <-wake:
		case <-beat.C:
			if !silent {
				_, _ = w.Write([]byte("\n"))
			}
		case <-own.end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// offer is what the worker held already.
func (f *fake) offer(name string) (lines [][]byte) {
	for _, j := range f.jobs {
		if j.holder == name {
			again := j.Job
			again.Held = true
			lines = append(lines, f.line(again))
		}
	}
	return lines
}

// give leases ready jobs as long as there is room.
func (f *fake) give(name string, queues []string, prefetch int) (lines [][]byte) {
	held := 0
	for _, j := range f.jobs {
		if j.holder == name {
			held++
		}
	}
	for _, j := range f.jobs {
		if held >= prefetch {
			break
		}
		if j.Status == wire.Ready && (queues == nil || slices.Contains(queues, j.Queue)) {
			f.lease(j, name)
			held++
			lines = append(lines, f.line(j.Job))
		}
	}
	return lines
}

// lease gives a job to a worker under a new token.
func (f *fake) lease(j *fakeJob, name string) {
	f.tokens++
	j.Status, j.holder, j.Lease = wire.InFlight, name, fmt.Sprintf("%032x", f.tokens)
}

func (f *fake) line(j wire.Job) []byte {
	b, err := encode(j)
	if err != nil {
		f.complain("%v", err)
	}
	return b[:len(b)-1]
}

func (f *fake) settle(list []wire.Settle) (answer wire.Verdicts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, list)
	for _, s := range list {
		v := wire.Verdict{ID: s.ID}
		i := slices.IndexFunc(f.jobs, func(j *fakeJob) bool { return j.ID == s.ID })
		switch {
		case i < 0:
			v.Code = wire.CodeNotFound
		case f.jobs[i].Lease != s.Lease:
			v.Code = wire.CodeSuperseded
		default:
			f.settles = append(f.settles, s)
			f.end(f.jobs[i], s)
			v.Status = f.jobs[i].Status
		}
		answer.Verdicts = append(answer.Verdicts, v)
	}
	f.changed()
	return answer
}

// extend notes which runs have begun.
func (f *fake) extend(list wire.Extensions) (answer wire.Verdicts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range list.Leases {
		v := wire.Verdict{ID: x.ID, Code: wire.CodeSuperseded}
		for _, j := range f.jobs {
			if j.ID == x.ID && j.Lease == x.Lease {
				v.Code, v.Status = "", j.Status
				if x.Started {
					f.begun = append(f.begun, x.ID)
				}
			}
		}
		answer.Verdicts = append(answer.Verdicts, v)
	}
	return answer
}

// end applies an outcome. A retry without a time is ready at once.
func (f *fake) end(j *fakeJob, s wire.Settle) {
	j.holder, j.Lease = "", ""
	if s.Error != nil {
		j.Attempts++
		j.errors = append(j.errors, wire.JobError{
			Attempt: j.Attempts, Message: s.Error.Message, ErrorType: s.Error.ErrorType, Backtrace: s.Error.Backtrace,
		})
	}
	switch s.Outcome {
	case wire.OutcomeOK:
		j.Status, j.Result = wire.Completed, s.Result
	case wire.OutcomeDead:
		j.Status, j.Reason = wire.Dead, wire.ReasonKilled
	case wire.OutcomeRetry, wire.OutcomeRelease:
		j.Status = wire.Ready
		if s.RetryAt > 0 || s.RetryInMS != nil || s.RetryAfterMS > 0 || s.DelayMS > 0 {
			j.Status = wire.Scheduled // nothing here promotes it
		}
	}
}

// choose applies the filters of a query.
func (f *fake) choose(r *http.Request) (out []*fakeJob) {
	q := r.URL.Query()
	fits := func(name, value string) bool {
		return !q.Has(name) || slices.Contains(strings.Split(q.Get(name), ","), value)
	}
	bound := func(j *fakeJob) bool {
		return !q.Has("budgets.key") || slices.ContainsFunc(j.Budgets, func(b wire.Binding) bool { return fits("budgets.key", b.Key) })
	}
	labelled := func(j *fakeJob) bool {
		for part := range strings.SplitSeq(q.Get("label"), ",") {
			if name, value, _ := strings.Cut(part, "="); q.Has("label") && j.Labels[name] != value {
				return false
			}
		}
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs {
		if bound(j) && labelled(j) && fits("group", j.Group) && fits("queue", j.Queue) && fits("type", j.Type) && fits("status", j.Status) && fits("id", j.ID) {
			out = append(out, j)
		}
	}
	return out
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	list := f.choose(r)
	if q.Get("order") == "desc" {
		slices.Reverse(list)
	}
	if from := q.Get("from"); from != "" {
		at := slices.IndexFunc(list, func(j *fakeJob) bool { return j.ID == from })
		list = list[at+1:]
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	page := wire.Page{Jobs: []wire.Job{}, Pages: wire.Pages{Self: r.URL.String()}}
	for i, j := range list {
		if i == limit {
			q.Set("from", list[i-1].ID)
			page.Pages.Next = new("/jobs?" + q.Encode())
			break
		}
		page.Jobs = append(page.Jobs, j.Job)
	}
	f.write(w, 200, page)
}

func (f *fake) queues() wire.Queues {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := []string{}
	for _, j := range f.jobs {
		names = append(names, j.Queue)
	}
	slices.SortFunc(names, cmp.Compare)
	return wire.Queues{Queues: slices.Compact(names)}
}

func (f *fake) job(id string) *fakeJob {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs {
		if j.ID == id {
			copied := *j
			return &copied
		}
	}
	return nil
}

func (f *fake) remove(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = slices.DeleteFunc(f.jobs, func(j *fakeJob) bool { return j.ID == id })
}

// statuses counts the jobs by status.
func (f *fake) statuses() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for _, j := range f.jobs {
		n[j.Status]++
	}
	return n
}

// fill puts n jobs into a queue.
func (f *fake) fill(queue string, n int) {
	for i := range n {
		f.put(wire.Enqueue{Queue: queue, Type: "t", Payload: json.RawMessage(strconv.Itoa(i))})
	}
}
