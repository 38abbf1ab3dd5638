package e2e

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	grid "github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// The size of the grid run. The full one is
//
//	go test ./test/e2e -run TestEveryTaskHasOneResultWhateverDies -grid-engines 8 -grid-tasks 10000 -v
var (
	gridEngines = flag.Int("grid-engines", 4, "engine processes")
	gridTasks   = flag.Int("grid-tasks", 1000, "tasks of 1 to 50 ms")
)

const (
	engineSlots = 4

	// engineURL makes the test binary an engine, see TestMain.
	engineURL  = "E2E_ENGINE_URL"
	engineName = "E2E_ENGINE_ID"
)

// slowTask is the payload of a task: its result is twice the number. It fails
// until so many attempts were charged.
type slowTask struct {
	MS     int    `json:"ms"`
	Number int64  `json:"number"`
	Fails  uint32 `json:"fails,omitempty"`
}

// runAsEngine is a process of its own that runs tasks until it is told to stop.
func runAsEngine(url string) int {
	c, err := grid.New(url, grid.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	handle := grid.Typed(func(ctx context.Context, t slowTask, d *grid.Delivery) error {
		work := time.NewTimer(time.Duration(t.MS) * time.Millisecond) // which stands for computing
		defer work.Stop()
		select {
		case <-work.C:
			if d.Job.Attempts < t.Fails {
				return errors.New("not yet")
			}
			return d.SetResult(2 * t.Number)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("it can be told to stop")
	e, err := grid.NewEngine(c, handle, grid.EngineOptions{ID: os.Getenv(engineName), Slots: engineSlots, Prefetch: 2 * engineSlots})
	if err == nil {
		err = e.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fleet is the engine processes of a test.
type fleet struct {
	t       *testing.T
	url     string
	made    int
	running []*exec.Cmd
	asleep  *exec.Cmd // stopped by SIGSTOP; nil = none is

	killed, halted, ended int
	gone                  map[string]bool // engines that were killed, or stopped for a while
	drained               map[string]bool
}

// nameOf is the id of the engine that a process is.
func nameOf(cmd *exec.Cmd) string {
	_, name, _ := strings.Cut(cmd.Env[len(cmd.Env)-1], "=")
	return name
}

func (f *fleet) launch() {
	f.t.Helper()
	f.made++
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), engineURL+"="+f.url, engineName+"=engine-"+strconv.Itoa(f.made))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.running = append(f.running, cmd)
}

// take takes a process out of the list.
func (f *fleet) take(rnd *rand.Rand) *exec.Cmd {
	i := rnd.IntN(len(f.running))
	cmd := f.running[i]
	f.running = append(f.running[:i], f.running[i+1:]...)
	return cmd
}

// trouble does something to an engine: it is killed, ended politely, or stands
// still until the next trouble.
func (f *fleet) trouble(rnd *rand.Rand) {
	f.t.Helper()
	f.wake()
	switch rnd.IntN(3) {
	case 0:
		cmd := f.take(rnd)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		f.gone[nameOf(cmd)] = true
		f.killed++
		f.launch()
	case 1:
		cmd := f.take(rnd)
		f.launch()
		f.drained[nameOf(cmd)] = true
		f.end(cmd)
		f.ended++
	case 2:
		f.asleep = f.running[rnd.IntN(len(f.running))]
		f.gone[nameOf(f.asleep)] = true
		_ = f.asleep.Process.Signal(syscall.SIGSTOP)
		f.halted++
	}
}

func (f *fleet) wake() {
	if f.asleep != nil {
		_ = f.asleep.Process.Signal(syscall.SIGCONT)
		f.asleep = nil
	}
}

// end asks a process to drain, which must work.
func (f *fleet) end(cmd *exec.Cmd) {
	f.t.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		f.t.Errorf("an engine that drained ended with %v", err)
	}
}

func (f *fleet) cleanUp() {
	f.wake()
	for _, cmd := range f.running {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// taskMaxTime is after which time a task gets a copy on another engine: a task in a
// hundred takes longer, and so does what runs on an engine that stands still.
const taskMaxTime = 700 * time.Millisecond

const gridConfig = `
grid:
  heartbeat_interval: 200ms
  lost_after: 2s
`

// A grid of engine processes that are killed, drained and stopped at random,
// and a server that is killed once, with tasks that take too long and get a copy:
// every task has exactly one accepted result, none is lost, and its counters are
// those of a replay of its history (A30).
func TestEveryTaskHasOneResultWhateverDies(t *testing.T) {
	told(t)
	t.Parallel()
	rnd := dice(71)
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "grid.yaml"), gridConfig)
	args := []string{"-c", config, "--reattach-window", "5s"}
	s := start(t, filepath.Join(dir, "root"), args...)
	f := &fleet{t: t, url: s.url, gone: map[string]bool{}, drained: map[string]bool{}}
	t.Cleanup(f.cleanUp)
	for range *gridEngines {
		f.launch()
	}
	c, err := grid.New(s.url, grid.Options{RetryFor: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	session, err := c.OpenSession(t.Context(), grid.SessionOptions{ID: "run", Options: map[string]any{
		"max_retries": 100, "collection": "later", "task_max_time": taskMaxTime.String(), "on_timeout": "reschedule", "reschedule_first": true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	submitted := make(chan error, 1)
	tasks := drawTasks(dice(72))
	go func() { submitted <- submitAll(t.Context(), session, tasks, dice(74)) }()

	total := int64(*gridTasks)
	results, n := map[int64]int{}, int64(0)
	troubles := max(total/50, 8) // one for so many results
	for r, err := range session.Results(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		results[r.Seq]++
		if want := strconv.FormatInt(2*r.Seq, 10); r.State != wire.TaskDone || string(r.Result) != want {
			t.Errorf("task %d is %s with the result %s, not %s (%v)", r.Seq, r.State, r.Result, want, r.Error)
		}
		if n%troubles == 0 && n < total*9/10 {
			f.trouble(rnd)
		}
		if n == total/2 {
			s.kill()
			s = start(t, filepath.Join(dir, "root"), append(args, "--port", s.port())...)
		}
	}
	if err := <-submitted; err != nil {
		t.Fatal(err)
	}
	for seq := int64(1); seq <= total; seq++ {
		if results[seq] != 1 {
			t.Errorf("task %d has %d results", seq, results[seq])
		}
	}
	state, err := session.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if counts := state.Tasks; state.State != wire.SessionDone || counts.Submitted != total || counts.Completed != total || counts.Open() != 0 {
		t.Errorf("%s, %+v", state.State, counts)
	}
	told := compare(t, session, tasks, f)
	t.Logf("%d tasks, each with one result; engines: %d started, %d killed, %d drained, %d stopped for a while; the server was killed once",
		len(results), f.made, f.killed, f.ended, f.halted)
	t.Logf("%s", told)
	f.wake()
	for len(f.running) > 0 {
		f.end(f.take(rnd))
	}
}

// drawTasks makes tasks of 1 to 50 ms, one in 25 of which fails at first, and one
// in a hundred of which takes longer than it may.
func drawTasks(rnd *rand.Rand) []slowTask {
	list := make([]slowTask, *gridTasks)
	for i := range list {
		list[i] = slowTask{MS: 1 + rnd.IntN(50), Number: int64(i + 1)}
		if rnd.IntN(25) == 0 {
			list[i].Fails = 1 + rnd.Uint32N(2)
		} else if rnd.IntN(100) == 0 {
			list[i].MS = 1200
		}
	}
	return list
}

// submitAll submits in parts, some of them twice, and closes the session.
func submitAll(ctx context.Context, s *grid.Session, tasks []slowTask, rnd *rand.Rand) error {
	for some := range slices.Chunk(tasks, 100) {
		var part []grid.Task
		for _, task := range some {
			part = append(part, grid.Task{Seq: task.Number, Payload: task})
		}
		for range 1 + rnd.IntN(2) {
			if _, err := s.Submit(ctx, part...); err != nil {
				return err
			}
		}
	}
	_, err := s.Close(ctx)
	return err
}

// Ended politely, engines cost their tasks nothing, however often that happens
// (A4).
func TestDrainsAreNeverCharged(t *testing.T) {
	told(t)
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "root"))
	f := &fleet{t: t, url: s.url}
	t.Cleanup(f.cleanUp)
	f.launch()
	c, err := grid.New(s.url, grid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	session, err := c.OpenSession(t.Context(), grid.SessionOptions{Options: map[string]any{"max_retries": 0}})
	if err != nil {
		t.Fatal(err)
	}
	var tasks []grid.Task
	rnd := dice(73)
	for seq := range int64(100) {
		tasks = append(tasks, grid.Task{Seq: seq + 1, Payload: slowTask{MS: 1 + rnd.IntN(50), Number: seq + 1}})
	}
	_, err = session.Submit(t.Context(), tasks...)
	if err == nil {
		_, err = session.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r, err := range session.Results(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; r.State != wire.TaskDone || r.Retries+r.Reschedules+r.Losses > 0 {
			t.Errorf("%+v", r)
		}
		if n%20 == 0 {
			f.launch()
			f.end(f.take(rnd))
		}
	}
	if n != len(tasks) {
		t.Errorf("%d results", n)
	}
}

// The command line does the whole of it: an engine with a command, a submit that
// waits, a status.
func TestTheGridOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "root"), "-c", write(t, filepath.Join(dir, "grid.yaml"), gridConfig))
	run := func(stdin string, args ...string) (string, error) {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "REPRISE_URL="+s.url)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return string(out), err
	}
	engine := exec.Command(binary, "engine", "--slots", "2", "--prop", "kind=big", "--exec", `read x; [ "$x" != 3 ] && echo $((x * x))`, "--url", s.url, "--id", "e")
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Process.Kill(); _ = engine.Wait() })
	out, err := run("1\n2\n", "grid", "submit", "--session", "squares", "--requires", "kind = big", "--wait")
	if err != nil || !strings.Contains(out, `"seq":1,"state":"completed","result":1`) || !strings.Contains(out, `"seq":2,"state":"completed","result":4`) {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run("3\n4\n", "grid", "submit", "--session", "cubes", "-O", "max_retries=0", "--wait")
	if err == nil || !strings.Contains(err.Error(), "1 of 2 failed") || !strings.Contains(out, `"state":"failed"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = run("", "grid", "status", "cubes"); err != nil || !strings.Contains(out, "done_with_errors") || !strings.Contains(out, "0 (session)") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = run("", "grid", "engines"); err != nil || !strings.Contains(out, "kind=big") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err = run("", "grid", "drain", "e"); err != nil {
		t.Error(err)
	}
	if err := engine.Wait(); err != nil {
		t.Errorf("an engine that is drained ends with %v", err)
	}
	if out, err = run("", "grid", "cancel", "cubes", "--forget"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = run("1\n", "grid", "submit", "-O", "weight=11"); err == nil || !strings.Contains(err.Error(), "options.weight must be a whole number from 0 to 9") {
		t.Errorf("%v\n%s", err, out)
	}
}
