package grid_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// Attempts as records, the word to commit, and the fence of tasks that must not
// run twice (acceptance tests A3, A18, A19).

// attempts tells the history of a task in words: "1 w1 error retry".
func (g *gridRig) attempts(name string, want ...string) {
	g.Helper()
	var got []string
	for _, a := range g.Job(name).History() {
		text := fmt.Sprint(a.Number, " ", strings.TrimPrefix(a.Holder, "e/"), " ", a.Why)
		if a.Charged != job.ChargedNothing {
			text += " " + a.Charged.String()
		}
		got = append(got, text)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		g.Fatalf("the attempts at %s: %s\nwant %s", name, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func TestTheAttemptsOfATaskSurviveAPowerCut(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Retry.Limit, q.RunTimeout = job.LimitOf(9), 40*job.Second })
		m := g.engine("w1", 1, onHost("h1"))
		g.tasks("s", "A")
		m.Gets("A")
		m.Fails("A")
		m.Gets("A")
		m.starts("A")
		g.beating(40*job.Second, m)
		m.Gets("A: timeout")
		m.beat(m.Held["A"].Lease.Token)
		m.Gets("A")
		m.logoff()
		other := g.engine("w2", 1, onHost("h2"))
		other.Gets("A")
		other.starts("A")
		if err := g.Mem.Sync(); err != nil {
			t.Fatal(err)
		}
		g.PowerCut()
		told := []string{"1 w1 error retry", "2 w1 timeout retry", "3 w1 evicted eviction"}
		g.attempts("A", told...)
		g.Pass(30 * job.Second)
		g.attempts("A", append(told, "4 w2 restarted")...)
		last := g.engine("w3", 1)
		last.Gets("A")
		last.OK("A")
		g.attempts("A", append(told, "4 w2 restarted", "5 w3 ok")...)
		a := g.Job("A").History()
		if a[0].Host != "h1" || a[3].Host != "h2" || a[0].Failure != 1 || a[1].Failure != 2 || a[1].Started == 0 || a[1].Ended-a[1].Started != 40*job.Second {
			g.Errorf("%+v", a)
		}
	})
}

func TestA19OneOfTwoAttemptsMayCommit(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.MaxCopies, q.Grid.MaxReschedules = 3, 9 })
		first, second := g.copied()
		ask := func(m *machine, want bool) {
			g.Helper()
			yes, state, err := g.Part.Grid.TryCommit(g.Context(), "s", g.IDs["A"], m.Held["A"].Lease.Token)
			if err != nil || yes != want || state != job.Leased {
				g.Fatalf("%s: %t, %s, %v", m.name, yes, state, err)
			}
		}
		ask(second, true)
		first.Gets("A: supersede") // the other is told
		ask(first, false)
		ask(second, true)
		if _, err := enginetest.Operate(g.Context(), g.Engine, g.IDs["A"], rule.Command{Verb: rule.Offer}); job.KindOf(err) != job.OverLimit {
			g.Errorf("a copy of a run that commits: %v", err)
		}
		g.counters("A", counts{"live": 1, "reschedules": 1})

		if err := g.Mem.Sync(); err != nil {
			t.Fatal(err)
		}
		g.PowerCut() // yes stays yes
		second.epoch = g.login("w2", 1, func(l *gridpart.Login) {
			l.Running = []gridpart.Running{{ID: g.IDs["A"], Token: second.Held["A"].Lease.Token}}
		}).Engine.Epoch
		ask(second, true)
		old := second.Held["A"]
		second.beat()
		g.Pass(15 * job.Second) // it is lost, and the task is open again
		third := g.engine("w3", 1)
		third.Gets("A")
		ask(third, true)
		g.Refused(job.Superseded, engine.Settle{ID: g.IDs["A"], Token: old.Lease.Token}) // what another one commits stands
		third.OK("A")
		g.Expect("A", job.Done)
		g.attempts("A", "1 w1 superseded", "2 w2 lost retry", "3 w3 ok")

		for session, id := range map[string]job.ID{"s": {9}, "other": g.IDs["A"]} {
			if _, _, err := g.Part.Grid.TryCommit(g.Context(), session, id, old.Lease.Token); job.KindOf(err) != job.NotFound {
				g.Errorf("task %s of %s: %v", id, session, err)
			}
		}
	})
}

func TestA18ANonIdempotentTaskWaitsBehindItsFenceWhenItsEngineIsLost(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.NonIdempotent, q.Grid.FenceWait = true, 40*job.Second })
		g.running("B")
		other := g.engine("w2", 1)
		other.Gets("B")
		other.OK("B")
		g.beating(15*job.Second, other)
		g.counters("A", counts{"retries": 1}) // lost: but it may run there yet
		g.line("s")
		x, err := g.Explain(g.Context(), g.IDs["A"])
		if err != nil || x.Retry == nil || x.Retry.By != job.WaitFence || x.Retry.Waits != 40*job.Second || x.Reasons[0].Is != rule.NotDue {
			g.Errorf("%+v, %v", x, err)
		}
		g.beating(40*job.Second-1, other)
		other.Gets()
		g.Pass(1)
		other.Gets("A")
		other.OK("A")
		g.attempts("A", "1 w1 lost retry", "2 w2 ok")
	})
}

func TestALateResultEndsTheWaitBehindTheFence(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.NonIdempotent, q.Grid.FenceWait, q.Grid.LossesCharged = true, job.Minute, false })
		m := g.running()
		g.Pass(20 * job.Second)
		g.Expect("A", job.Scheduled)
		if x, err := g.Explain(g.Context(), g.IDs["A"]); err != nil || x.Retry == nil || x.Retry.Waits != job.Minute {
			g.Errorf("%+v, %v", x.Retry, err)
		}
		m.OK("A")
		g.Expect("A", job.Done)
		g.attempts("A", "1 w1 late loss")
	})
}
