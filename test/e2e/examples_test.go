package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// language is how the programs of examples/ in one language are run.
type language struct {
	flags   []string                   // of the worker
	program func(name string) []string // the command that is worker or enqueue
}

// TestTheExamples runs the programs of examples/ against the real binary.
func TestTheExamples(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T) language{"python": python, "typescript": typescript} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := prepare(t)
			t.Run("nothing is lost", func(t *testing.T) { t.Parallel(); nothingIsLost(t, l) })
			t.Run("tokens and holds", func(t *testing.T) { t.Parallel(); tokensAndHolds(t, l) })
		})
	}
}

func python(t *testing.T) language {
	needs(t, "python3")
	dir := examples(t, "python")
	return language{[]string{"--lease", "3"}, func(name string) []string {
		return []string{"python3", "-B", filepath.Join(dir, name+".py")} // -B: no caches beside them
	}}
}

// typescript runs the source itself where Node can, and else what tsc makes of
// it, which Debian has as node-typescript. If it is there, tsc checks the types
// either way.
func typescript(t *testing.T) language {
	needs(t, "node")
	dir, suffix := examples(t, "typescript"), ".ts"
	strips, err := exec.CommandContext(t.Context(), "node", "-p", "process.features.typescript ?? ''").Output()
	if err != nil {
		t.Fatal(err)
	}
	direct := strings.TrimSpace(string(strips)) != ""
	if _, err := exec.LookPath("tsc"); !direct || err == nil {
		needs(t, "tsc")
		made := t.TempDir()
		out, err := exec.CommandContext(t.Context(), "tsc", "--project", dir, "--outDir", made).CombinedOutput()
		if err != nil {
			t.Fatalf("tsc: %v\n%s", err, out)
		}
		if !direct {
			write(t, filepath.Join(made, "package.json"), `{"type": "module"}`)
			dir, suffix = made, ".js"
		}
	}
	return language{nil, func(name string) []string { return []string{"node", filepath.Join(dir, name+suffix)} }}
}

func examples(t *testing.T, language string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../examples", language))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// needs skips a test for want of a program that scripts/test.sh installs. In
// CI nobody would read that, so there it fails.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", program)
		}
		t.Skipf("%s is not installed", program)
	}
}

// said is a line of an example's worker.
type said struct {
	Event, ID, Type, Outcome, Status, Code, Why string
	Attempt                                     int
	Checkpoint                                  *struct{ At int }
}

// exampleWorker is a process of an example's worker.
type exampleWorker struct {
	t      *testing.T
	cmd    *exec.Cmd
	errs   strings.Builder
	exited chan struct{}

	mu    sync.Mutex // guards lines
	lines []said
}

func (l language) worker(t *testing.T, url, token string, flags ...string) *exampleWorker {
	t.Helper()
	line := slices.Concat(l.program("worker"), flags, l.flags)
	w := &exampleWorker{t: t, cmd: exec.Command(line[0], line[1:]...), exited: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), "REPRISE_URL="+url, "REPRISE_TOKEN="+token)
	out, outEnd := pipe(t)
	w.cmd.Stdout, w.cmd.Stderr = outEnd, &w.errs
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = outEnd.Close()
	go func() {
		defer close(w.exited)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var s said
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				s = said{Event: "unreadable", Why: lines.Text()}
			}
			w.mu.Lock()
			w.lines = append(w.lines, s)
			w.mu.Unlock()
		}
		_ = out.Close()
		_ = w.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.exited
		if t.Failed() {
			all := w.said()
			t.Logf("the worker said last: %+v\n%s", all[max(0, len(all)-20):], w.errs.String())
		}
	})
	return w
}

// said is a copy of all that the worker said so far.
func (w *exampleWorker) said() []said {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}

// waits until so many lines of the worker fit.
func (w *exampleWorker) until(n int, what string, fits func(said) bool) {
	w.t.Helper()
	until(w.t, what, func() (bool, string) {
		seen := 0
		for _, s := range w.said() {
			if fits(s) {
				seen++
			}
		}
		return seen >= n, fmt.Sprintf("%d of %d", seen, n)
	})
}

// ends returns the exit code.
func (w *exampleWorker) ends() int {
	w.t.Helper()
	select {
	case <-w.exited:
	case <-time.After(patience):
		w.t.Fatalf("the worker did not end within %s", patience)
	}
	return w.cmd.ProcessState.ExitCode()
}

func (w *exampleWorker) terminate() int {
	w.t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Error(err)
	}
	return w.ends()
}

// enqueue runs the example that enqueues, and returns what it printed.
func (l language) enqueue(t *testing.T, url, token string, jobs []map[string]any) (list []wire.Enqueued, errs string, code int) {
	t.Helper()
	var in, out, stderr strings.Builder
	for _, j := range jobs {
		text, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(text, '\n'))
	}
	line := l.program("enqueue")
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "REPRISE_URL="+url, "REPRISE_TOKEN="+token)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in.String()), &out, &stderr
	_ = cmd.Run()
	for line := range strings.Lines(out.String()) {
		var j wire.Enqueued
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, j)
	}
	return list, stderr.String(), cmd.ProcessState.ExitCode()
}

// nothingIsLost gives 200 jobs to workers, kills the server in the middle, ends
// the worker in the middle, and cancels a job that runs. In the end each job is
// where it belongs, and ran as often as it should have.
func nothingIsLost(t *testing.T, l language) {
	root := t.TempDir()
	args := []string{"--reattach-window", "3s"}
	s := start(t, root, args...)
	want := workload()
	jobs, errs, code := l.enqueue(t, s.url, "", want)
	if code != 0 || len(jobs) != len(want) {
		t.Fatalf("%d jobs were enqueued, exit code %d: %s", len(jobs), code, errs)
	}
	endless := jobs[0].ID // never ends by itself

	settled := func(s said) bool { return s.Event == "settled" }
	first := l.worker(t, s.url, "", "--queue", "demo", "--concurrency", "8", "--drain", "0.5")
	first.until(1, "the endless job", func(s said) bool { return s.Event == "start" && s.ID == endless })
	first.until(60, "some are settled", settled)
	s.kill()
	s = start(t, root, append(args, "--port", s.port())...)
	first.until(110, "more are settled, after the crash", settled)
	if code := first.terminate(); code != 0 {
		t.Errorf("the first worker ended with %d", code)
	}
	second := l.worker(t, s.url, "", "--queue", "demo", "--concurrency", "8")
	goesOn := func(s said) bool {
		return s.Event == "start" && s.ID == endless && s.Checkpoint != nil && s.Checkpoint.At > 0
	}
	second.until(1, "the endless job goes on where it was", goesOn)
	cl := dial(s.url)
	t.Cleanup(cl.close)
	until(t, "all others are finished", func() (bool, string) {
		left := cl.list(t, "status=scheduled,ready,in_flight")
		return len(left) == 1 && left[0].ID == endless, fmt.Sprintf("%d: %.500v", len(left), left)
	})
	cl.must(t, 200, nil, "POST", "/jobs/"+endless+"/cancel", nil)
	second.until(1, "the worker hears of it", func(s said) bool { return s.Event == "over" && s.ID == endless })
	if code := second.terminate(); code != 0 {
		t.Errorf("the second worker ended with %d", code)
	}
	account(t, cl, want, jobs, append(first.said(), second.said()...))
}

// workload is 200 jobs: most succeed, some fail once, some stumble in the
// middle of their steps, some are hopeless, and one never ends.
func workload() (jobs []map[string]any) {
	add := func(n int, kind string, payload map[string]any) {
		for range n {
			jobs = append(jobs, map[string]any{
				"type": kind, "queue": "demo", "payload": payload, "retention": map[string]any{"completed_ms": 600_000},
				"backoff": map[string]any{"exponent": 1, "base_ms": 100, "jitter_ms": 0},
			})
		}
	}
	add(1, "count", map[string]any{"to": 1_000_000, "seconds": 0.05})
	add(149, "greet", map[string]any{"seconds": 0.03})
	add(20, "flaky", map[string]any{"failures": 1})
	add(20, "hopeless", map[string]any{})
	add(10, "count", map[string]any{"to": 6, "stumble": 3, "seconds": 0.01})
	for i := range jobs {
		jobs[i]["priority"] = (i * 7) % len(jobs) // the kinds mixed, the endless one first
	}
	return jobs
}

// account holds what the workers said against what the server has.
func account(t *testing.T, cl *client, want []map[string]any, jobs []wire.Enqueued, lines []said) {
	t.Helper()
	runs, doubts, saved := map[string]int{}, map[string]int{}, map[string]int{}
	released := false
	for _, s := range lines {
		switch {
		case s.Event == "start":
			runs[s.ID]++
			if s.Attempt == 2 && s.Checkpoint != nil {
				saved[s.ID] = s.Checkpoint.At
			}
		case s.Event == "over", s.Event == "settled" && s.Code != "":
			doubts[s.ID]++ // it was taken away: it may have run elsewhere
		case s.Event == "settled" && s.ID == jobs[0].ID:
			released = released || s.Outcome == "release"
		case s.Event == "unreadable", s.Event == "unsettled", s.Event == "left":
			t.Errorf("a worker said %+v", s)
		}
	}
	if !released {
		t.Error("the endless job was not given back when its worker ended")
	}
	there := map[string]wire.Job{}
	for _, j := range cl.list(t, "") {
		there[j.ID] = j
	}
	if len(there) != len(jobs) {
		t.Errorf("%d jobs are there, %d were enqueued", len(there), len(jobs))
	}
	for i, enqueued := range jobs {
		j, payload := there[enqueued.ID], want[i]["payload"].(map[string]any)
		status, ran, attempts := wire.Completed, 1, uint32(0)
		switch want[i]["type"] {
		case "hopeless":
			status, attempts = wire.Dead, 1
		case "flaky":
			ran, attempts = 2, 1
		case "count":
			if i == 0 { // given back once, then cancelled
				status, ran = wire.Dead, 2
				break
			}
			ran, attempts = 2, 1
			if saved[j.ID] != payload["stumble"] {
				t.Errorf("the second attempt of job %d began at %d, not at %d", i, saved[j.ID], payload["stumble"])
			}
		}
		if j.Status != status || j.Attempts != attempts {
			t.Errorf("job %d (%s) is %s after %d failures, want %s after %d", i, j.Type, j.Status, j.Attempts, status, attempts)
		}
		if n := runs[j.ID]; n < ran || n > ran+doubts[j.ID]+int(j.Losses) {
			t.Errorf("job %d (%s) ran %d times, want %d; %d were in doubt, %d lost", i, j.Type, n, ran, doubts[j.ID], j.Losses)
		}
	}
}

// tokensAndHolds runs a server that wants tokens, and jobs that hold their
// groups.
func tokensAndHolds(t *testing.T, l language) {
	s := start(t, t.TempDir())
	cl := dial(s.url)
	t.Cleanup(cl.close)
	var admin struct{ Token string }
	cl.must(t, 201, &admin, "POST", "/tokens", `{"name": "root", "scopes": ["admin"]}`)
	jobs := []map[string]any{
		{"type": "busy", "queue": "demo", "group": "limited", "payload": map[string]any{"hold": "1h"}},
		{"type": "busy", "queue": "demo", "group": "refusing", "payload": map[string]any{"retry_after": "3600"}},
		{"type": "unheard-of", "queue": "demo", "payload": nil, "unique_key": "u"},
		{"type": "unheard-of", "queue": "demo", "payload": nil, "unique_key": "u"},
	}
	for i := range jobs {
		jobs[i]["idempotency_key"] = fmt.Sprint(i)
	}
	if _, errs, code := l.enqueue(t, s.url, "", jobs); code == 0 || !strings.Contains(errs, "unauthorized") {
		t.Errorf("without a token the enqueue ended with %d and %q", code, errs)
	}
	if _, errs, code := l.enqueue(t, s.url, admin.Token, []map[string]any{{"type": "t", "queue": "a,b", "payload": 1}}); code == 0 || !strings.Contains(errs, "queue must not contain") {
		t.Errorf("a job that is refused ended with %d and %q", code, errs)
	}
	list, errs, code := l.enqueue(t, s.url, admin.Token, jobs)
	if code != 0 || len(list) != 4 {
		t.Fatalf("with a token the enqueue ended with %d: %s", code, errs)
	}
	if !list[3].Duplicate || list[3].ID != list[2].ID {
		t.Errorf("under one unique key there are %+v", list[2:])
	}
	again, _, _ := l.enqueue(t, s.url, admin.Token, jobs)
	if len(again) != 4 || slices.ContainsFunc(again, func(j wire.Enqueued) bool { return !j.Duplicate }) {
		t.Errorf("enqueued again they are %+v", again)
	}
	if code := l.worker(t, s.url, "").ends(); code != 1 {
		t.Errorf("without a token the worker ended with %d", code)
	}
	w := l.worker(t, s.url, admin.Token, "--queue", "demo")
	var state struct {
		Groups []struct{ Group string }
		Jobs   []wire.Job
	}
	until(t, "both groups are held", func() (bool, string) {
		r := cl.must(t, 200, &state, "GET", "/queues/demo/groups", nil, bearer(admin.Token)...)
		return len(state.Groups) == 2, r.String()
	})
	if state.Groups[0].Group != "limited" || state.Groups[1].Group != "refusing" {
		t.Errorf("held are %+v", state.Groups)
	}
	until(t, "the job of an unknown type is dead", func() (bool, string) {
		r := cl.must(t, 200, &state, "GET", "/jobs?status=dead", nil, bearer(admin.Token)...)
		return len(state.Jobs) == 1 && state.Jobs[0].Type == "unheard-of", r.String()
	})
	// A job that says nothing meanwhile is stopped all the same.
	var long wire.Enqueued
	cl.must(t, 201, &long, "POST", "/jobs", `{"type": "greet", "queue": "demo", "payload": {"seconds": 3600}}`, bearer(admin.Token)...)
	w.until(1, "the long job", func(s said) bool { return s.Event == "start" && s.ID == long.ID })
	cl.must(t, 200, nil, "POST", "/jobs/"+long.ID+"/cancel", nil, bearer(admin.Token)...)
	w.until(1, "it is stopped", func(s said) bool { return s.Event == "over" && s.ID == long.ID })
	if code := w.terminate(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
}
