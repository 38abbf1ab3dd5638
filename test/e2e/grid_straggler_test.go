package e2e

import (
	"flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	grid "github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// The size of the straggler run. The measurement is `make stragglers`; what the
// tests run of it is small, and no time in it decides.
var (
	stragglerHosts = flag.Int("straggler-hosts", 3, "engine processes, each a host of its own with 4 slots; one of them is slow")
	stragglerTasks = flag.Int("straggler-tasks", 48, "tasks of a session")
	stragglerRun   = flag.Duration("straggler-run", 40*time.Millisecond, "how long a task takes")
)

// On the slow host one run in stragglerShare takes stragglerTimes as long.
const (
	stragglerTimes = 50
	stragglerShare = 12
)

// stragglers is a session some runs of which are slow, by the attempts of its
// tasks.
type stragglers struct {
	took          time.Duration // until the last result
	slow          int           // runs that met the slow disk
	copies, won   int
	superseded    int
	withdrawn     int           // copies that were taken back because they had cost what they may
	useful, spent time.Duration // of runs whose result counts, and of copies beside another run
	reschedules   uint32
	retries       uint32
}

// run lets a session run on the engines there are.
func (s *server) straggle(t *testing.T, c *grid.Client, id string, options map[string]any) (r stragglers) {
	t.Helper()
	options["collection"] = "later"
	session, err := c.OpenSession(t.Context(), grid.SessionOptions{ID: id, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	var tasks []grid.Task
	for seq := range int64(*stragglerTasks) {
		tasks = append(tasks, grid.Task{Seq: seq + 1, Payload: seq + 1})
	}
	began := time.Now()
	if _, err = session.Submit(t.Context(), tasks...); err == nil {
		_, err = session.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for result, err := range session.Results(t.Context(), 0) {
		if err != nil || result.State != wire.TaskDone {
			t.Fatal(err, result)
		}
	}
	r.took = time.Since(began)
	for _, task := range tasks {
		state, err := session.Task(t.Context(), strconv.FormatInt(task.Seq, 10))
		if err != nil {
			t.Fatal(err)
		}
		told, wrong := follow(state)
		if len(wrong) > 0 || told.copies > state.Reschedules { // one that was asked for may not have begun
			t.Errorf("task %d: %v, its history has %d copies\n%+v", task.Seq, wrong, told.copies, *state)
		}
		r.reschedules += state.Reschedules
		r.retries += state.Retries
		r.superseded += told.ends[wire.EndedSuperseded]
		r.withdrawn += told.ends[wire.EndedWithdrawn]
		for i, a := range state.Attempts {
			span := time.Duration(a.EndedAt-max(a.StartedAt, a.SinceAt)) * time.Millisecond
			if a.Engine == "slow" && !a.Copy && (a.Reason == wire.EndedSuperseded || span > stragglerTimes/2**stragglerRun) {
				r.slow++
			}
			if a.Reason == wire.EndedOK {
				r.useful += span
				if a.Copy {
					r.won++
				}
			}
			if a.Copy {
				r.copies++
				r.spent += span
			}
			for _, b := range state.Attempts[:i] {
				if a.Engine == b.Engine && a.SinceAt < b.EndedAt && b.SinceAt < a.EndedAt {
					t.Errorf("task %d ran twice on one engine at a time: %+v", task.Seq, state.Attempts)
				}
			}
		}
	}
	return r
}

func (r stragglers) String() string {
	return fmt.Sprintf("done after %s; %d slow runs, %d copies, %d of them won, %d runs superseded; extra time %.1f %%",
		r.took.Round(time.Millisecond), r.slow, r.copies, r.won, r.superseded, 100*float64(r.spent)/float64(max(r.useful, 1)))
}

// One host is slow: some of its runs take fifty times as long. With median each
// of them gets a copy elsewhere, whose result is the one that counts, and the
// session does not wait. What that costs is bounded by its budget.
func TestCopiesOfSlowRunsEndASessionSooner(t *testing.T) {
	told(t)
	t.Parallel()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "root"), "-c", write(t, filepath.Join(dir, "grid.yaml"), "grid:\n  profile: modern\n"))
	fast := fmt.Sprintf("sleep %.3f; echo 1", stragglerRun.Seconds())
	slow := fmt.Sprintf("echo >> %[1]s; if [ $(($(wc -l < %[1]s) %% %d)) = 3 ]; then sleep %.3f; else sleep %.3f; fi; echo 1",
		filepath.Join(dir, "runs"), stragglerShare, stragglerTimes*stragglerRun.Seconds(), stragglerRun.Seconds())
	for i := range *stragglerHosts {
		name, command := "host"+strconv.Itoa(i), fast
		if i == 0 {
			name, command = "slow", slow
		}
		engine := exec.Command(binary, "engine", "--url", s.url, "--id", name, "--host", name, "--slots", "4", "--quiet", "--exec", command)
		engine.Stderr = io.Discard
		if err := engine.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Process.Kill(); _ = engine.Wait() })
	}
	c, err := grid.New(s.url, grid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for idle := 0; idle < *stragglerHosts; <-pace.C {
		list, err := c.Engines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		idle = 0
		for _, e := range list {
			if e.State == wire.EngineIdle {
				idle++
			}
		}
	}
	without := s.straggle(t, c, "without", map[string]any{"redundancy": []string{}})
	t.Logf("without copies: %s", without)
	if without.copies+without.superseded > 0 || without.reschedules > 0 {
		t.Errorf("copies without redundancy: %+v", without)
	}
	with := s.straggle(t, c, "with", map[string]any{
		"redundancy": []string{"median"}, "median_age": stragglerRun.String(), "copy_budget_burst": "0s", "copies_running": 1,
	})
	t.Logf("with median:    %s", with)
	t.Logf("%d tasks of %s on %d hosts with 4 slots: with median %.2f of the time", *stragglerTasks, *stragglerRun, *stragglerHosts, float64(with.took)/float64(without.took))
	switch {
	case with.slow > 0 && with.copies == 0:
		t.Errorf("%d runs were slow, and none had a copy", with.slow)
	case with.superseded+with.withdrawn != with.copies || with.retries > 0:
		t.Errorf("of each two runs one is superseded, and nobody is charged: %+v", with)
	case float64(with.spent) > 0.05*float64(with.useful)+float64(with.copies)*float64(20*time.Millisecond):
		t.Errorf("copies cost %s, more than a twentieth of %s", with.spent, with.useful)
	}
}
