package grid_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// needs makes a task that depends on others, by their names.
func needs(key string, on job.OnDepFail, names ...string) func(*engine.NewJob) {
	return func(n *engine.NewJob) {
		n.Job.Door, n.Key, n.Needs, n.OnDepFail = job.DoorGrid, key, names, on
	}
}

// A38: a failure is passed on once to those that fail with it, and those that
// want it to be over run.
func TestTasksWaitForThoseThatTheyNeed(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(0) })
		g.Add("s", "A", needs("1", 0))
		g.Add("s", "B", needs("2", 0))
		g.Add("s", "both", needs("3", 0, "1", "2"))
		g.Add("s", "chain", needs("4", 0, "3"))
		g.Add("s", "anyway", needs("5", job.DepRun, "3"))
		m := g.engine("e", 4)
		m.Gets("A", "B")
		m.OK("A")
		m.Gets() // one of two is over
		m.OK("B")
		m.Gets("both")
		m.Fails("both")
		m.Gets("anyway")
		if s := g.state("s"); s.Failed != 2 || s.Cancelled != 0 {
			t.Errorf("both and chain failed: %+v", s.Session)
		}
		g.Add("s", "late", needs("6", 0, "4")) // what it needs has failed already
		if s := g.state("s"); s.Failed != 3 {
			t.Errorf("%+v", s.Session)
		}
		_, err := g.Put(g.Context(), []engine.NewJob{{Job: job.Job{Queue: "s", Type: "t", Door: job.DoorGrid}, Key: "7", Needs: []string{"99"}}})
		if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), "task 7 needs task 99, which was not submitted") {
			t.Error(err)
		}
	})
}

// Who waits does so after a restart, too, and one call may bring both.
func TestTasksThatWaitSurviveARestart(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		list := []engine.NewJob{
			{Job: job.Job{Queue: "s", Type: "t", Priority: 1, RetainDone: job.Unset, RetainDead: job.Unset}, Payload: []byte(`"A"`)},
			{Job: job.Job{Queue: "s", Type: "t", Priority: 1, RetainDone: job.Unset, RetainDead: job.Unset}, Payload: []byte(`"B"`)},
		}
		needs("1", 0)(&list[0])
		needs("2", 0, "1")(&list[1])
		added, err := g.Put(g.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		g.Call(added[0].ID, `"A"`)
		g.Call(added[1].ID, `"B"`)
		g.Restart(0)
		m := g.engine("e", 2)
		m.Gets(`"A"`)
		m.OK(`"A"`)
		m.Gets(`"B"`)
	})
}
