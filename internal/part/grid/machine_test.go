package grid_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// Engines: losses, timeouts, late results, re-attaching (reference sections 3
// and 5, acceptance tests A2 to A11, A16, A18, A31, A37, A40).

func (m *machine) state() gridpart.EngineState {
	m.g.Helper()
	s, err := m.g.Part.Grid.Engine(m.g.Context(), m.name)
	if err != nil {
		m.g.Fatal(err)
	}
	return s
}

func (m *machine) is(want string) {
	m.g.Helper()
	if s := m.state(); s.State != want {
		m.g.Fatalf("engine %s is %s, want %s", m.name, s.State, want)
	}
}

func onHost(host string) func(*gridpart.Login) { return func(l *gridpart.Login) { l.Host = host } }

func TestA2WithoutRetriesOneErrorIsTheEnd(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(0) })
		m := g.running()
		m.Fails("A")
		g.Expect("A", job.Dead)
		g.counters("A", counts{"retries": 1})
		g.attempts("A", "1 w1 error retry")
	})
}

func TestA3EveryAttemptIsInTheHistory(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(3) })
		m := g.running()
		for range 3 {
			m.Fails("A")
			m.Gets("A")
		}
		m.Fails("A")
		g.Expect("A", job.Dead)
		list, err := g.Failures(g.Context(), g.IDs["A"], 0, false, 9)
		if err != nil || len(list) != 4 {
			g.Errorf("%d records, %v", len(list), err)
		}
		g.attempts("A", "1 w1 error retry", "2 w1 error retry", "3 w1 error retry", "4 w1 error retry")
		g.running2("B", m)
	})
}

// running2 has another task run, so that the engine is known to be well.
func (g *gridRig) running2(name string, m *machine) {
	g.Helper()
	g.tasks("s", name)
	m.Gets(name)
}

func TestA5AnEngineThatIsSilentIsLostAfterFifteenSeconds(t *testing.T) {
	for _, charged := range []bool{true, false} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { q.Grid.LossesCharged = charged })
			m := g.running("B")
			m.starts("A")
			m.beat()
			g.Pass(15*job.Second - 1)
			m.is(gridpart.EngineBusy)
			g.line("s", "B")
			g.Pass(1)
			m.is(gridpart.EngineLost)
			g.line("s", "A", "B")
			if charged {
				g.counters("A", counts{"retries": 1})
			} else {
				g.counters("A", counts{"losses": 1})
			}
			if list, err := m.Poll(); len(list) != 1 || !list[0].Voided || err != nil {
				g.Errorf("%v, %v", list, err)
			}
			m.IsOver()
			if _, err := g.Part.Grid.Heartbeat(g.Context(), m.name, gridpart.Beat{Epoch: m.epoch}); job.KindOf(err) != job.Superseded {
				g.Errorf("a heartbeat of a lost engine: %v", err)
			}
			m = g.engine("w1", 1)
			m.Gets("A")
		})
	}
}

func TestAnEngineThatIsLostIsForgottenAtLast(t *testing.T) {
	grid(t, func(g *gridRig) {
		m := g.engine("w1", 1)
		g.Pass(15 * job.Second)
		m.is(gridpart.EngineLost)
		g.Pass(10 * job.Minute)
		if _, err := g.Part.Grid.Engine(g.Context(), "w1"); job.KindOf(err) != job.NotFound {
			g.Errorf("%v", err)
		}
		if n := g.Rows(job.Holders); n != 0 {
			g.Errorf("%d rows", n)
		}
	})
}

func TestOneHeartbeatKeepsAllSlots(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.engine("w1", 3)
		g.tasks("s", "A", "B", "C", "D")
		m.Gets("A", "B", "C")
		g.beating(job.Minute, m)
		if n := g.state("s").Depth.Leases; n != 3 {
			g.Errorf("%d leases", n)
		}
		m.is(gridpart.EngineBusy)
	})
}

func TestA6TheLateResultOfALostEngineIsAccepted(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running()
		m.starts("A")
		token := m.Held["A"]
		other := g.engine("w2", 1)
		g.beating(20*job.Second, other)
		other.Gets("A")
		g.Settled(token, job.OK)
		g.Expect("A", job.Done)
		other.Gets("A: supersede")
		g.Refused(job.Superseded, engine.Settle{ID: g.IDs["A"], Token: other.Held["A"].Lease.Token})
		if s := g.state("s"); s.Done != 1 || s.Submitted != 1 {
			g.Errorf("%+v", s.Session)
		}
		if got, _ := g.results("s", 0, 9); got != "A " {
			g.Errorf("the results are %s", got)
		}
		g.attempts("A", "1 w1 late retry", "2 w2 superseded")
	})
}

func TestA7OfTwoResultsAtOnceOneCounts(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		first, second := g.copied()
		list, err := g.Settle(g.Context(), []engine.Settle{
			{ID: g.IDs["A"], Token: first.Held["A"].Lease.Token}, {ID: g.IDs["A"], Token: second.Held["A"].Lease.Token},
		})
		if err != nil || list[0].Err != nil || job.KindOf(list[1].Err) != job.Superseded {
			g.Errorf("%+v, %v", list, err)
		}
		if s := g.state("s"); s.Done != 1 {
			g.Errorf("%+v", s.Session)
		}
		if list, _, err := g.Part.Grid.Results(g.Context(), "s", 0, 9); len(list) != 1 || err != nil {
			g.Errorf("%d results, %v", len(list), err)
		}
	})
}

func TestA9AnOverrunIsSeenAtTheNextSweep(t *testing.T) {
	for start, want := range map[job.Millis]job.Millis{10_000: 50_000, 10_001: 109_999, 0: 60_000, 30_000: 90_000, 59_999: 60_001} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { q.RunTimeout, q.Grid.PollPeriod = 50*job.Second, job.Minute })
			m := g.running()
			sweep := job.Minute - g.Clock.Steady()%job.Minute
			g.beating(sweep%job.Minute+start, m)
			m.starts("A")
			g.beating(want-1, m)
			g.counters("A", counts{"live": 1})
			g.Pass(1)
			g.counters("A", counts{"retries": 1})
		})
	}
}

func TestATaskThatTakesTooLongIsStoppedAndItsEngineWaits(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.RunTimeout = 10 * job.Second })
		m := g.engine("w1", 2)
		g.tasks("s", "A")
		m.Gets("A")
		g.beating(9*job.Second, m) // it has not begun
		m.starts("A")
		g.beating(10*job.Second-1, m)
		g.counters("A", counts{"live": 1})
		g.Pass(1)
		m.Gets("A: timeout")
		m.is(gridpart.EngineStopping)
		g.line("s", "A")
		g.counters("A", counts{"retries": 1})
		m.beat()
		m.Gets()
		if s := m.beat(m.Held["A"].Lease.Token); s.State == gridpart.EngineStopping {
			g.Errorf("%+v", s)
		}
		m.Gets("A")
	})
}

func TestA11ATimeoutReschedulesOnceForEachAttempt(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) {
			q.RunTimeout, q.Grid.OnTimeout, q.Grid.MaxReschedules = 10*job.Second, job.TimeoutReschedule, 5
		})
		first, second, third := g.engine("w1", 1), g.engine("w2", 1), g.engine("w3", 1)
		g.tasks("s", "A")
		first.Gets("A")
		first.starts("A")
		g.beating(10*job.Second-1, first, second, third)
		second.Gets()
		g.beating(1, first, second, third)
		second.Gets("A")
		second.starts("A")
		g.counters("A", counts{"live": 2, "reschedules": 1})
		g.beating(15*job.Second, first, second, third) // the copy overran at 20 s
		third.Gets()
		g.counters("A", counts{"live": 2, "reschedules": 1})
		first.OK("A")
		second.Gets("A: supersede")
		g.Expect("A", job.Done)
		g.counters("A", counts{"reschedules": 1})
	})
}

func TestA16ACopyDoesNotRunOnTheSameHost(t *testing.T) {
	for _, any := range []bool{false, true} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { q.Grid.AnyHost = any })
			first, neighbour := g.engine("w1", 1, onHost("h")), g.engine("w2", 1, onHost("h"))
			g.tasks("s", "A")
			first.Gets("A")
			g.Operate("A", rule.Command{Verb: rule.Offer})
			if any {
				neighbour.Gets("A")
				return
			}
			neighbour.Gets()
			g.tasks("s", "B")
			neighbour.Gets("B") // a copy that does not fit is passed by
			g.engine("w3", 1, onHost("g")).Gets("A")
		})
	}
}

func TestA18ANonIdempotentTaskIsNeverCopied(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) {
			q.NonIdempotent, q.RunTimeout, q.Grid.OnTimeout = true, 10*job.Second, job.TimeoutReschedule
		})
		m := g.running()
		if _, err := enginetest.Operate(g.Context(), g.Engine, g.IDs["A"], rule.Command{Verb: rule.Offer}); job.KindOf(err) != job.OverLimit {
			g.Errorf("%v", err)
		}
		m.starts("A")
		g.beating(15*job.Second, m)
		g.counters("A", counts{"live": 1})
		g.line("s")
	})
}

func TestA37ATaskThatItsEngineDoesNotBeginGoesElsewhere(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.StartTimeout = 10 * job.Second })
		m := g.running()
		other := g.engine("w2", 1)
		g.beating(10*job.Second, m, other)
		m.Gets("A: release")
		other.Gets("A")
		g.counters("A", counts{"live": 1, "evictions": 1})
		if j := g.Job("A"); j.Attempts != 0 || j.Reschedules != 0 {
			g.Errorf("%+v", j)
		}
		other.logoff()
		m.Gets("A") // it waits for nobody: better the same engine than none
	})
}

func TestAnEngineThatLosesItsConnectionIsSuspectAndGoesOn(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running("B")
		token := m.Held["A"].Lease.Token
		m.End()
		m.is(gridpart.EngineSuspect)
		m.beat()
		g.Pass(10 * job.Second)
		m.connect()
		m.Gets("A")
		if m.Held["A"].Lease.Token != token || !m.Held["A"].Held {
			g.Errorf("%+v", m.Held["A"])
		}
		m.OK("A")
		m.Gets("B")
	})
}

func TestANewLoginKeepsWhatTheEngineRunsAndLosesTheRest(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.engine("w1", 3)
		g.tasks("s", "A", "B", "C", "D")
		m.Gets("A", "B", "C")
		m.starts("A", "B")
		old := m.Held
		stale := gridpart.Running{ID: g.IDs["D"], Token: old["A"].Lease.Token}
		in := g.login("w1", 3, func(l *gridpart.Login) {
			l.Running = []gridpart.Running{{ID: g.IDs["A"], Token: old["A"].Lease.Token}, stale}
		})
		if !slices.Equal(in.Stop, []gridpart.Running{stale}) || in.Engine.Running != 1 {
			g.Errorf("%+v", in)
		}
		if _, err := g.Part.Grid.Heartbeat(g.Context(), "w1", gridpart.Beat{Epoch: m.epoch}); job.KindOf(err) != job.Superseded {
			g.Errorf("a heartbeat of the login before: %v", err)
		}
		if _, err := g.Part.Grid.EngineStream(g.Context(), "w1", m.epoch, 0, nil); job.KindOf(err) != job.Superseded {
			g.Errorf("a stream of the login before: %v", err)
		}
		g.counters("A", counts{"live": 1})
		g.counters("B", counts{"retries": 1}) // it had begun
		g.counters("C", counts{})             // it had not
		m.epoch = in.Engine.Epoch
		m.connect()
		m.Gets("A", "B", "C")
		m.OK("A")
		m.Gets("D")
	})
}

func TestA31AServerThatWasAwayBlamesNobody(t *testing.T) {
	for _, end := range []func(*rig){func(r *rig) { r.Restart(5 * job.Second) }, func(r *rig) {
		if err := r.Mem.Sync(); err != nil {
			r.Fatal(err)
		}
		r.PowerCut()
	}} {
		grid(t, func(g *gridRig) {
			g.session("s")
			alive := g.engine("w1", 3)
			g.tasks("s", "T1", "T2", "T3", "T4")
			alive.Gets("T1", "T2", "T3")
			alive.drain()
			alive.OK("T1", "T2")
			g.engine("w2", 1).Gets("T4")
			first, _, err := g.Part.Grid.Results(g.Context(), "s", 0, 9)
			if err != nil || len(first) != 2 {
				g.Fatal(first, err)
			}
			if _, err := g.Part.Grid.Collected(g.Context(), "s", first[0].Number); err != nil {
				g.Fatal(err)
			}
			g.tasks("s", "T5")
			end(g.rig)
			alive.epoch = g.login("w1", 3, func(l *gridpart.Login) {
				l.Running = []gridpart.Running{{ID: g.IDs["T3"], Token: alive.Held["T3"].Lease.Token}}
			}).Engine.Epoch
			alive.drain()
			g.beating(30*job.Second, alive)
			g.counters("T3", counts{"live": 1})
			g.counters("T4", counts{})
			g.line("s", "T4", "T5")
			left, _, err := g.Part.Grid.Results(g.Context(), "s", first[0].Number, 9)
			if err != nil || len(left) != 1 || left[0].Job.ID != g.IDs["T2"] {
				g.Errorf("%v, %v", left, err)
			}
			g.ack("s", left[0].Number)
			g.Settled(alive.Held["T3"], job.OK) // the attempt that goes on
			if got, _ := g.results("s", left[0].Number, 9); got != "T3 " {
				g.Errorf("then there are %s", got)
			}
			if g.Job("T1") != nil || g.Job("T2") != nil {
				g.Error("what was collected is there yet")
			}
		})
	}
}

func TestA40AStepOfTheDateEndsNothing(t *testing.T) {
	for _, step := range []int64{3_600_000, -3_600_000} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { q.RunTimeout = 20 * job.Second })
			m := g.running()
			m.starts("A")
			g.beating(5*job.Second, m)
			g.Clock.Step.Add(step)
			g.beating(15*job.Second-1, m)
			g.counters("A", counts{"live": 1})
			g.beating(1, m)
			g.counters("A", counts{"retries": 1})
		})
	}
}

// A forward step restarts the timers of engines that are to be heard of (core.md
// section 8): they have their whole time anew, and 30 s at least.
func TestA40AStepOfTheDateRestartsTheTimersOfEngines(t *testing.T) {
	for _, c := range []struct{ step, lostAfter, left job.Millis }{
		{job.Hour, 15 * job.Second, 30 * job.Second},
		{job.Hour, job.Minute, job.Minute},
		{-job.Hour, 15 * job.Second, 5 * job.Second},
		{-job.Hour, job.Minute, 50 * job.Second},
	} {
		grid(t, func(g *gridRig) {
			g.session("s")
			m := g.running()
			g.Pass(10 * job.Second)
			g.Jump(c.step)
			g.Pass(c.left - 1)
			if s := m.state(); s.State == gridpart.EngineLost {
				g.Errorf("a step by %s: it is lost before %s", c.step, c.left)
			}
			g.Pass(1)
			if s := m.state(); s.State != gridpart.EngineLost {
				g.Errorf("a step by %s: it is %s after %s", c.step, s.State, c.left)
			}
			g.counters("A", counts{"retries": 1})
		}, func(r *rig) { r.Grid.LostAfter = c.lostAfter })
	}
}

func TestALoginIsRefusedByTheNameOfWhatIsWrong(t *testing.T) {
	grid(t, func(g *gridRig) {
		for field, l := range map[string]gridpart.Login{
			"name": {Slots: 1}, "slots": {Name: "w", Slots: -1}, "slots ": {Name: "w", Slots: 10_001},
		} {
			_, err := g.Part.Grid.Login(g.Context(), l)
			var e *job.Error
			if !errors.As(err, &e) || e.Kind != job.Invalid || e.Field != field[:len("slots")-oneOf(field == "name")] {
				g.Errorf("%+v: %v", l, err)
			}
		}
		if _, err := g.Part.Grid.Heartbeat(g.Context(), "nobody", gridpart.Beat{Epoch: 1}); job.KindOf(err) != job.NotFound {
			g.Errorf("%v", err)
		}
		if err := g.Part.Grid.Logoff(g.Context(), "nobody", 0, job.Actor{}); job.KindOf(err) != job.NotFound {
			g.Errorf("%v", err)
		}
		if n := g.Rows(job.Holders); n != 0 {
			g.Errorf("%d rows", n)
		}
	})
}

func oneOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestAnEngineThatAsksCallByCallHasNoMoreThanItsSlots(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "A", "B", "C")
		epoch := g.login("w1", 2).Engine.Epoch
		take := func(n int) (names []string) {
			list, err := g.Part.Grid.EngineLease(g.briefly(), "w1", epoch, n, nil)
			if err != nil {
				g.Fatal(err)
			}
			for _, d := range list {
				names = append(names, g.Names[d.Job.ID])
				g.held(d)
			}
			return names
		}
		if got := fmt.Sprint(take(1), take(5), take(1)); got != "[A] [B] []" {
			g.Errorf("got %s", got)
		}
		if s, err := g.Part.Grid.Engine(g.Context(), "w1"); err != nil || s.State != gridpart.EngineBusy {
			g.Errorf("%+v, %v", s, err)
		}
		g.Pass(15 * job.Second)
		g.line("s", "A", "B", "C")
	})
}
