package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// worker is a process of the binary, running `work`.
type worker struct {
	t      testing.TB
	cmd    *exec.Cmd
	exited chan struct{}

	mu   sync.Mutex // guards said
	said strings.Builder
}

// Write implements io.Writer for both outputs of the process.
func (w *worker) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(b)
}

func (w *worker) output() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String()
}

// work starts a worker that runs a command for each job of queue work.
func work(t testing.TB, s *server, name, command string) *worker {
	t.Helper()
	w := &worker{t: t, exited: make(chan struct{})}
	w.cmd = exec.Command(binary, "work", "--url", s.url, "--queue", "work", "--worker-id", name, "--verbose", "--exec", command)
	w.cmd.Stdout, w.cmd.Stderr = w, w
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.cmd.Wait() // the exit code is in ProcessState
		close(w.exited)
	}()
	t.Cleanup(func() {
		w.signal(syscall.SIGCONT)
		w.signal(syscall.SIGKILL)
		<-w.exited
		if t.Failed() {
			t.Logf("worker %s said:\n%s", name, w.output())
		}
	})
	return w
}

func (w *worker) signal(sig syscall.Signal) { _ = w.cmd.Process.Signal(sig) }

// says waits for words of the worker or of its commands.
func (w *worker) says(words string) {
	w.t.Helper()
	until(w.t, "the worker says "+words, func() (bool, string) {
		said := w.output()
		return strings.Contains(said, words), said
	})
}

// gate is a command that says that it runs, and ends when the test opens it.
type gate struct {
	t    testing.TB
	pipe *os.File
	line string
}

func newGate(t testing.TB) *gate {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // so that nobody waits for the other end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipe.Close() })
	return &gate{t, pipe, `echo "runs $REPRISE_ID, attempt $REPRISE_ATTEMPT"; read word <` + path}
}

// open lets one command end.
func (g *gate) open() {
	g.t.Helper()
	if _, err := g.pipe.WriteString("go\n"); err != nil {
		g.t.Fatal(err)
	}
}

func waitStatus(t *testing.T, c *client, id, status string) (j wire.Job) {
	t.Helper()
	until(t, "job "+id+" is "+status, func() (bool, string) {
		r, err := c.do(t.Context(), "GET", "/jobs/"+id, nil)
		if err != nil || r.status == 404 {
			return status == "gone" && err == nil, fmt.Sprint(r, err)
		}
		return r.into(&j) == nil && j.Status == status, r.String()
	})
	return j
}

// TestAFrozenWorkerLosesItsJobAndDoesNoHarmWhenItWakes stops a worker while
// it runs a job, and the server restarts meanwhile. The worker is away for
// longer than the re-attach window, so its job goes to another, once; what it
// says of the job afterwards is refused, and it works on (I2, I3, I4).
func TestAFrozenWorkerLosesItsJobAndDoesNoHarmWhenItWakes(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate(t)
	const window = "500ms"
	s := start(t, dir, "--reattach-window", window)
	frozen := work(t, s, "frozen", g.line)
	id := dial(s.url).enqueue(t, "work", 1).ID
	frozen.says("runs " + id + ", attempt 1")

	frozen.signal(syscall.SIGSTOP)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s = start(t, dir, "--reattach-window", window, "--port", s.port())
	c := dial(s.url)
	if j := waitStatus(t, c, id, wire.Ready); j.Losses != 1 || j.Attempts != 0 {
		t.Errorf("the job of a frozen worker is %+v", j)
	}
	other := work(t, s, "other", `echo "runs $REPRISE_ID, attempt $REPRISE_ATTEMPT"`)
	other.says(id + " done")
	waitStatus(t, c, id, "gone")

	g.open()
	frozen.signal(syscall.SIGCONT)
	frozen.says(id + ": the server refused the outcome \"ok\"")
	other.signal(syscall.SIGTERM)
	<-other.exited
	next := c.enqueue(t, "work", 2).ID
	frozen.says("runs " + next)
	g.open()
	frozen.says(next + " done")
	waitStatus(t, c, next, "gone")
	if n := strings.Count(frozen.output()+other.output(), "runs "+id); n != 2 {
		t.Errorf("job %s ran %d times, want once with each worker", id, n)
	}
}

// TestAFrozenWorkersOKCountsWhileNobodyElseHasTheJob: the same without another
// worker. The job fell back into the line, but the work was done: the late OK
// ends it, and it does not run again (core.md section 4).
func TestAFrozenWorkersOKCountsWhileNobodyElseHasTheJob(t *testing.T) {
	t.Parallel()
	for end, stop := range map[string]func(*server){
		"a stop of the server":  func(s *server) { s.terminate() },
		"a crash of the server": (*server).kill,
	} {
		t.Run(end, func(t *testing.T) {
			dir, g := t.TempDir(), newGate(t)
			s := start(t, dir, "--reattach-window", "500ms")
			w := work(t, s, "frozen", g.line)
			id := dial(s.url).enqueue(t, "work", 1).ID
			w.says("runs " + id)
			w.signal(syscall.SIGSTOP)
			stop(s)
			s = start(t, dir, "--reattach-window", "500ms", "--port", s.port())
			c := dial(s.url)
			waitStatus(t, c, id, wire.Ready)
			// Or the worker itself may be back on its stream, and get the job again, before its OK is there.
			c.must(t, 200, nil, "PATCH", "/queues/work", map[string]any{"paused": true})

			g.open()
			w.signal(syscall.SIGCONT)
			w.says(id + " done")
			waitStatus(t, c, id, "gone")
			w.signal(syscall.SIGTERM)
			<-w.exited
			if n := strings.Count(w.output(), "runs "+id); n != 1 {
				t.Errorf("job %s ran %d times", id, n)
			}
			if said := w.output(); !strings.Contains(said, "1 job done") || strings.Contains(said, "refused") {
				t.Errorf("the worker sums up:\n%s", said)
			}
		})
	}
}

// TestARunTimeoutTakesAJobFromAWorkerThatIsFrozenButConnected: its kernel
// still answers, so nothing but the run timeout can tell. That is charged as
// the failure it is, and the frozen worker's OK comes too late.
func TestARunTimeoutTakesAJobFromAWorkerThatIsFrozenButConnected(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate(t)
	config := write(t, filepath.Join(dir, "reprise.yaml"),
		"retry: {curve: {kind: constant, delay: 1ms}}\nqueues:\n  work: {run_timeout: 700ms}\n")
	s := start(t, filepath.Join(dir, "root"), "-c", config)
	c := dial(s.url)
	frozen := work(t, s, "frozen", g.line)
	id := c.enqueue(t, "work", 1).ID
	frozen.says("runs " + id)
	frozen.signal(syscall.SIGSTOP)
	g.open() // its command is done, and it cannot tell

	until(t, "the run timed out", func() (bool, string) {
		j := c.get(t, id)
		return j.Attempts > 0, fmt.Sprintf("%+v", j)
	})
	other := work(t, s, "other", "true")
	other.says(id + " done")
	waitStatus(t, c, id, "gone")
	frozen.signal(syscall.SIGCONT)
	// It hears that, or tells its outcome first: ok, or retry by its own run timeout.
	frozen.says(id + ": the server ")
}

// TestNothingIsLostOrRunTwiceWhenTheServerStandsStill stops a server under
// load for longer than its leases last, and holds everything against the
// ledger.
func TestNothingIsLostOrRunTwiceWhenTheServerStandsStill(t *testing.T) {
	told(t)
	t.Parallel()
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "load.yaml"), loadConfig)
	l, h, rnd := newLedger(), newHabits(), dice(1)
	s := start(t, filepath.Join(dir, "root"), "-c", config, "--reattach-window", "1s")
	c := muster(l, s.url, 1, h)
	answered(t, s, l.until(2000))
	s.signal(syscall.SIGSTOP)
	<-time.After(6 * time.Second) // the leases of the load last 3 s, the window 1 s; more than 5 s is a sleep
	s.signal(syscall.SIGCONT)
	answered(t, s, l.until(2000))
	c.down.Store(true) // those who leave in the middle of a request get no answer
	c.dismiss()
	l.audit(t, s, rnd)
	for _, fault := range l.faults() {
		t.Error(fault)
	}
	if !t.Failed() {
		says(t, s.output(), "the clock stepped or the process stood still")
		t.Logf("%s", l.summary())
	}
}

func answered(t *testing.T, s *server, enough <-chan struct{}) {
	t.Helper()
	select {
	case <-enough:
	case <-s.exited:
		t.Fatal("the server ended by itself")
	case <-time.After(patience):
		t.Fatal("the load came to a halt")
	}
}
