package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func delivery() *client.Delivery {
	return &client.Delivery{Job: wire.Job{
		ID: "03gq0x7k2m4v9c1d8f5h6j0a1", Queue: "q", Type: "ü", Attempts: 2, Priority: 7, Group: "g",
		ReadyAt: 99, Payload: json.RawMessage(`{"a":1}`), Lease: "token",
		Progress: &wire.Progress{Checkpoint: json.RawMessage(`{"row":7}`)},
	}}
}

// outcome is what becomes of a job for a handler's error, in words.
func outcome(err error) string {
	s := client.Outcome(err)
	text := s.Outcome
	if s.RetryAfterMS > 0 {
		text += fmt.Sprintf(" after %dms", s.RetryAfterMS)
	}
	if s.Error != nil {
		text += " " + s.Error.ErrorType + ": " + s.Error.Message
	}
	return text
}

func TestAFailureTellsWhatRulesLookAt(t *testing.T) {
	slow := shell("sleep 600")
	slow.timeout = 50 * time.Millisecond
	for name, x := range map[string]struct {
		err  error
		want wire.Failure
	}{
		"exit code": {shell("exit 75").handle(t.Context(), delivery()), wire.Failure{ErrorType: "exit 75", ExitCode: 75}},
		"bad data":  {shell("exit 65").handle(t.Context(), delivery()), wire.Failure{ErrorType: "exit 65", ExitCode: 65}},
		"signal":    {shell("kill -KILL $$").handle(t.Context(), delivery()), wire.Failure{ErrorType: "signal", ExitCode: 137}},
		"timeout":   {slow.handle(t.Context(), delivery()), wire.Failure{ErrorType: "timeout", Timeout: true}},
		"status":    {judge(&http.Response{StatusCode: 404, Status: "404 Not Found"}, nil, time.Now()), wire.Failure{ErrorType: "http 404", Status: 404}},
	} {
		got := *client.Outcome(x.err).Error
		x.want.Message, x.want.Backtrace = got.Message, got.Backtrace
		if got != x.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWithNoKillThePolicyDecides(t *testing.T) {
	for line, want := range map[string]string{
		"exit 65": "retry exit 65: exit status 65", "exit 3": "retry exit 3: exit status 3", "true": "ok",
	} {
		if got := outcome(mild(shell(line).handle)(t.Context(), delivery())); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// shell is a command whose output nobody looks at.
func shell(line string) *command {
	return &command{line: line, grace: 100 * time.Millisecond, stdout: io.Discard, stderr: io.Discard, worker: func() string { return "w1" }}
}

func TestTheExitStatusOfACommandDecides(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"true", "ok"},
		{"exit 65", "dead exit 65: exit status 65"},
		{"echo bad order >&2; exit 65", "dead exit 65: bad order"},
		{"exit 75", "retry exit 75: exit status 75"},
		{"printf 'first\\n\\nthe last\\n\\n' >&2; exit 3", "retry exit 3: the last"},
		{"kill -SEGV $$", "retry signal: ended by a signal: segmentation fault"},
		{"no-such-program-here", "retry exit 127: "},
	} {
		got := outcome(shell(tt.line).handle(t.Context(), delivery()))
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s\n got %s\nwant %s", tt.line, got, tt.want)
		}
	}
}

func TestACommandGetsPayloadAndEnvironment(t *testing.T) {
	t.Setenv("REPRISE_ID", "of somebody else")
	var out, stderr bytes.Buffer
	c := shell(`cat; echo; env | grep ^REPRISE_ | grep -v ^REPRISE_BIN | sort; echo "to me" >&2`)
	c.stdout, c.stderr, c.url = &out, &stderr, "http://u"
	if err := c.handle(t.Context(), delivery()); err != nil {
		t.Fatal(err)
	}
	want := `{"a":1}
REPRISE_ATTEMPT=3
REPRISE_CHECKPOINT={"row":7}
REPRISE_GROUP=g
REPRISE_ID=03gq0x7k2m4v9c1d8f5h6j0a1
REPRISE_LEASE=token
REPRISE_PRIORITY=7
REPRISE_QUEUE=q
REPRISE_READY_AT=99
REPRISE_TYPE=ü
REPRISE_URL=http://u
REPRISE_WORKER=w1
`
	if out.String() != want || stderr.String() != "to me\n" {
		t.Errorf("%s%s", out.String(), stderr.String())
	}
}

func TestACommandNeedNotReadItsPayload(t *testing.T) {
	d := delivery()
	d.Job.Payload = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	if err := shell("exit 0").handle(t.Context(), d); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheEndOfALongTraceIsKept(t *testing.T) {
	c := shell(`for i in $(seq 5000); do echo "line number $i" >&2; done; exit 1`)
	failure, _ := errors.AsType[*client.Failure](c.handle(t.Context(), delivery()))
	if failure == nil || failure.Message != "line number 5000" || len(failure.Backtrace) > traceBytesMax ||
		len(failure.Backtrace) < traceBytesMax/2 || !strings.HasPrefix(failure.Backtrace, "line number ") {
		t.Errorf("%+v", failure)
	}
}

// lingering is a command whose grandchild holds a FIFO open for writing, so
// that reading it ends exactly when the last of the group is gone.
func lingering(t *testing.T) (line string, gone func()) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(fifo)
		read <- err
	}()
	return fmt.Sprintf(`(exec 3>%s; echo started >&2; exec sleep 600) & wait`, fifo), func() {
		if err := <-read; err != nil {
			t.Error(err)
		}
	}
}

func TestATimeoutEndsTheWholeProcessGroup(t *testing.T) {
	line, gone := lingering(t)
	c := shell(`trap '' TERM; ` + line)
	c.timeout = 200 * time.Millisecond
	got := outcome(c.handle(t.Context(), delivery()))
	if !strings.HasPrefix(got, "retry timeout: timed out after 200ms; its last words: started") {
		t.Error(got)
	}
	gone()
}

func TestAStoppingWorkerEndsTheProcessGroupAndBlamesNoJob(t *testing.T) {
	line, gone := lingering(t)
	ctx, cancel := context.WithCancel(t.Context())
	stderr := writer(func(b []byte) {
		if strings.Contains(string(b), "started") {
			cancel()
		}
	})
	c := shell(`trap '' TERM; ` + line)
	c.stderr = stderr
	if err := c.handle(ctx, delivery()); !errors.Is(err, errStopped) {
		t.Error(err)
	}
	gone()
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestTheRunTimeoutOfAJobIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("the run timeout is over"))
	defer cancel()
	for _, handle := range []client.Handler{
		shell("sleep 600").handle,
		newPoster(silentTarget(t), time.Minute, 1).handle,
	} {
		if got := outcome(handle(ctx, delivery())); got != "retry timeout: the run timeout is over" {
			t.Error(got)
		}
	}
}

func TestASecondSignalGivesRunningJobsBack(t *testing.T) {
	now, stop := context.WithCancel(t.Context())
	handle := hurried(now, func(ctx context.Context, _ *client.Delivery) error {
		stop()
		<-ctx.Done()
		return errors.New("cut off")
	})
	if got := outcome(handle(t.Context(), delivery())); got != wire.OutcomeRelease {
		t.Error(got)
	}
	fine := hurried(now, func(context.Context, *client.Delivery) error { return nil })
	if err := fine(t.Context(), delivery()); err != nil {
		t.Errorf("a job that was done all the same: %v", err)
	}
}

func TestTheAnswerOfATargetDecides(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	boom := &client.Failure{Message: "x"}
	for _, tt := range []struct {
		code  int
		after string
		want  error // as far as it decides
	}{
		{200, "", nil},
		{204, "", nil},
		{301, "", client.Dead(boom)},
		{304, "", client.Dead(boom)},
		{400, "", client.Dead(boom)},
		{401, "", client.Dead(boom)},
		{404, "", client.Dead(boom)},
		{410, "30", client.Dead(boom)},
		{408, "", boom},
		{425, "", boom},
		{429, "", boom},
		{429, "30", client.RetryAfter(boom, 30*time.Second)},
		{429, "Sun, 01 Mar 2026 12:01:00 GMT", client.RetryAfter(boom, time.Minute)},
		{500, "", boom},
		{503, "7", client.RetryAfter(boom, 7*time.Second)},
		{599, "", boom},
	} {
		resp := &http.Response{StatusCode: tt.code, Status: fmt.Sprint(tt.code), Header: http.Header{"Retry-After": {tt.after}, "Location": {"/new"}}}
		got := judge(resp, []byte("because\nof this"), now)
		if s, want := client.Outcome(got), client.Outcome(tt.want); s.Outcome != want.Outcome || s.RetryAfterMS != want.RetryAfterMS {
			t.Errorf("%d %s: %+v, want %+v", tt.code, tt.after, s, want)
		}
		if failure, ok := errors.AsType[*client.Failure](got); ok {
			if failure.Status != tt.code || failure.Type != fmt.Sprintf("http %d", tt.code) {
				t.Errorf("%d: %+v", tt.code, failure)
			}
			if tt.code < 400 && !strings.Contains(failure.Message, "redirects are not followed") {
				t.Errorf("%d: %s", tt.code, failure.Message)
			}
			if tt.code >= 400 && failure.Message != fmt.Sprintf("answered %d: because", tt.code) {
				t.Errorf("%d: %s", tt.code, failure.Message)
			}
		}
	}
}

func TestAJobIsPostedWithItsHeaders(t *testing.T) {
	var seen http.Header
	var body string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen, body = r.Header, r.Method+" "+r.URL.Path+" "+string(b)
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer target.Close()
	d := delivery()
	d.Job.Queue = "with\nbreak"
	err := newPoster(target.URL+"/hook", time.Second, 1).handle(t.Context(), d)
	if body != `POST /hook {"a":1}` {
		t.Errorf("the target saw %s", body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Reprise-Id": d.Job.ID, "Reprise-Queue": "with?break", "Reprise-Type": "ü", "Reprise-Attempt": "3",
	} {
		if seen.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, seen.Get(name), want)
		}
	}
	if !strings.Contains(outcome(err), "/elsewhere") || !strings.HasPrefix(outcome(err), "dead") {
		t.Error(outcome(err))
	}
}

// silentTarget takes requests and does not answer.
func silentTarget(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestATargetThatDoesNotAnswerIsTriedAgain(t *testing.T) {
	silent := silentTarget(t)
	if got := outcome(newPoster(silent, 50*time.Millisecond, 1).handle(t.Context(), delivery())); got != "retry timeout: no answer within 50ms" {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newPoster(silent, time.Second, 1).handle(ctx, delivery()); !errors.Is(err, errStopped) {
		t.Error(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	got := outcome(newPoster("http://"+ln.Addr().String(), time.Second, 1).handle(t.Context(), delivery()))
	if !strings.HasPrefix(got, "retry network: dial tcp") {
		t.Error(got)
	}
}

func TestWorkRunsJobsAndRecordsTheirFailures(t *testing.T) {
	url := serverURL(t)
	add := func(payload string) string {
		return field(t, well(t, "enqueue", "--url", url, "--queue", "real", "--type", "t", "--payload", payload, "--json"), "id")
	}
	fine, bad, broken := add(`"fine"`), add(`"bad"`), add(`"broken"`)
	_, stderr, code := cli(t, "", "work", "--url", url, "--queue", "real", "--max", "3", "--verbose", "--exec",
		`read p; echo "$p says $REPRISE_ID" >&2; case $p in *bad*) exit 65;; *broken*) exit 9;; esac`)
	if code != 0 || !strings.Contains(stderr, "1 job done, 1 failed to be tried again, 1 dead, 0 given back") || !strings.Contains(stderr, fine+" done") {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if _, _, code := cli(t, "", "jobs", "show", "--url", url, fine); code != 1 {
		t.Error("the finished job is still there")
	}
	out := well(t, "jobs", "show", "--url", url, bad)
	if !strings.Contains(out, "dead (killed)") || !strings.Contains(out, `"bad" says `+bad) || !strings.Contains(out, "exit 65") {
		t.Error(out)
	}
	out = well(t, "jobs", "show", "--url", url, broken)
	if !strings.Contains(out, "failed once so far; the next attempt is due") || !strings.Contains(out, "exit 9") {
		t.Error(out)
	}
}

func TestWorkDrainsOnSIGTERM(t *testing.T) {
	url := serverURL(t)
	for range 4 {
		well(t, "enqueue", "--url", url, "--queue", "drain", "--type", "t")
	}
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	// Each job says that it runs, then waits until somebody writes to the gate.
	w := start(t, "work", "--url", url, "--queue", "drain", "--exec", `echo running >&2; cat <`+gate+` >/dev/null`)
	w.hear("running")
	w.signal(syscall.SIGTERM)
	w.hear("stopping: waiting for 1 running job, giving 1 back")
	if err := os.WriteFile(gate, nil, 0); err != nil { // opens once the job reads
		t.Fatal(err)
	}
	// What it gives back makes room for one more on a stream that the server does
	// not know to be closed yet; that one is given back, too.
	done := regexp.MustCompile(`1 job done, 0 failed to be tried again, 0 dead, [1-3] given back`)
	if code := w.end(); code != 0 || !done.MatchString(strings.Join(w.heard, "\n")) {
		t.Errorf("exit code %d: %q", code, w.heard)
	}
	if out := well(t, "jobs", "list", "--url", url, "--queue", "drain", "--status", "ready", "--json"); strings.Count(out, "\n") != 3 {
		t.Errorf("three should be left, at once:\n%s", out)
	}
}

func TestASecondSIGTERMStopsCommandsAndGivesTheirJobsBack(t *testing.T) {
	url := serverURL(t)
	well(t, "enqueue", "--url", url, "--queue", "hurry", "--type", "t")
	line, gone := lingering(t)
	w := start(t, "work", "--url", url, "--queue", "hurry", "--exec", line)
	w.hear("started")
	w.signal(syscall.SIGTERM)
	w.hear("stopping")
	w.signal(syscall.SIGTERM)
	if code := w.end(); code != 0 {
		t.Errorf("exit code %d: %q", code, w.heard)
	}
	gone()
	out := well(t, "jobs", "list", "--url", url, "--queue", "hurry", "--json")
	if field(t, out, "status") != wire.Ready || field(t, out, "attempts") != "0" {
		t.Error(out)
	}
}

func TestWorkDeliversToAWebAddress(t *testing.T) {
	url := serverURL(t)
	var calls atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "60")
			http.Error(w, "busy", http.StatusTooManyRequests)
		}
	}))
	defer target.Close()
	enqueue := func(group string) string {
		return field(t, well(t, "enqueue", "--url", url, "--queue", "hooks", "--type", "t", "--group", group, "--json"), "id")
	}
	id, spared, _ := enqueue("busy"), enqueue("busy"), enqueue("idle")
	_, stderr, code := cli(t, "", "work", "--url", url, "--queue", "hooks", "--http", target.URL, "--max", "2", "--prefetch", "1")
	if code != 0 || calls.Load() != 2 {
		t.Fatalf("exit code %d, %d calls: %s", code, calls.Load(), stderr)
	}
	out := well(t, "jobs", "show", "--url", url, id, "--json")
	var shown struct {
		Job    wire.Job        `json:"job"`
		Errors []wire.JobError `json:"errors"`
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	if wait := shown.Job.ReadyAt - shown.Job.FailedAt; shown.Job.Status != wire.Scheduled || wait < 60_000 {
		t.Errorf("%s, due %d ms after the failure; Retry-After asked for 60 s", shown.Job.Status, wait)
	}
	if out := well(t, "queue", "show", "--url", url, "hooks"); !strings.Contains(out, "busy  held, in 1m") || strings.Contains(out, "idle") {
		t.Errorf("the target asked for a minute:\n%s", out)
	}
	if out := well(t, "jobs", "show", "--url", url, spared, "--json"); !strings.Contains(out, `"status":"ready"`) || !strings.Contains(out, `"attempts":0`) {
		t.Errorf("who is held with it pays nothing:\n%s", out)
	}
	if len(shown.Errors) != 1 || shown.Errors[0].Message != "answered 429 Too Many Requests: busy" || shown.Errors[0].ErrorType != "http 429" {
		t.Errorf("%+v", shown.Errors)
	}
}

// ledger is a target that counts deliveries by job, and tells when there are
// some more.
type ledger struct {
	mu   sync.Mutex // guards what follows
	runs map[string]int
	due  int // deliveries until more is told
	more chan struct{}
}

func (l *ledger) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[r.Header.Get("Reprise-Id")]++
	if l.due--; l.due == 0 {
		close(l.more)
	}
}

// expect returns a channel that is closed after n more deliveries.
func (l *ledger) expect(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due, l.more = n, make(chan struct{})
	return l.more
}

func TestAPoliteDeployRunsNothingTwiceAndLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	url, stop, err := startServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	payloads := strings.Repeat("{\"text\":\"some payload\"}\n", 3000)
	if _, stderr, code := cli(t, payloads, "enqueue", "--url", url, "--queue", "deploy", "--type", "t", "--ndjson", "-"); code != 0 {
		t.Fatal(stderr)
	}
	if err := stop(); err != nil { // the payloads are on disk only after this
		t.Fatal(err)
	}
	if url, stop, err = startServer(dir); err != nil {
		t.Fatal(err)
	}
	seen := &ledger{runs: map[string]int{}}
	target := httptest.NewServer(seen)
	defer target.Close()
	for round := range 6 {
		more := seen.expect(300)
		w := start(t, "work", "--url", url, "--queue", "deploy", "--http", target.URL, "--concurrency", "16", "--prefetch", "64")
		<-more
		w.signal(syscall.SIGTERM)
		if code := w.end(); code != 0 {
			t.Errorf("round %d: exit code %d: %q", round, code, w.heard)
		}
		if left := well(t, "jobs", "list", "--url", url, "--status", "in_flight", "--json", "--limit", "0"); left != "" {
			t.Errorf("round %d: the worker is gone and still has\n%s", round, left)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	for id, n := range seen.runs {
		if n > 1 {
			t.Errorf("%s was run %d times", id, n)
		}
	}
}

func TestWorkEndsWhenTheServerRefusesIt(t *testing.T) {
	url := serverURL(t)
	_, stderr, code := cli(t, "", "work", "--url", url, "--queue", "q", "--exec", "true", "--worker-id", "a,b")
	if code != 1 || !strings.Contains(stderr, "Worker-Id") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestTheDemoLosesNothing(t *testing.T) {
	var events strings.Builder
	for i := range 90 {
		fmt.Fprintf(&events, "{\"id\":\"evt_%d\",\"type\":\"t\",\"account\":\"a\"}\n", i)
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(events.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	out, stderr, code := cli(t, "", "demo", "--file", file, "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for name, want := range map[string]string{"enqueued": "90", "delivered": "90", "dead": "0", "lost": "0"} {
		if got := field(t, out, name); got != want {
			t.Errorf("%s is %s, want %s: %s", name, got, want, out)
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 || !strings.Contains(stderr, "SIGKILL") {
		t.Errorf("left behind: %v\n%s", left, stderr)
	}
}
