package grid_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/store"
)

func TestNoJobMovesToAQueueOfAnotherKind(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.session("s2")
		g.SetQueue("inbox", func(q *job.Queue) {
			q.Turns, q.Order, q.Protection.Fair = true, job.OrderStrict, &job.FairShare{}
		})
		g.tasks("s", "task", "runs")
		g.AddAll("q", "job")
		g.AddAll("inbox", "message")
		for _, c := range []struct{ name, to, text string }{
			{"task", "q", "is a task of session \"s\""},
			{"task", "s2", "is a task of session \"s\""},
			{"task", "inbox", "is a task of session \"s\""},
			{"job", "s", "\"s\" is a session"},
			{"message", "s", "\"s\" is a session"},
			{"job", "inbox", "\"inbox\" is an inbox"},
			{"message", "q", "\"inbox\" is an inbox"},
		} {
			_, err := g.Part.Desk.Do(g.Context(), ann, desk.Patch{
				Queue: c.to, Edit: func(j *job.Job, now job.Millis) { j.ExpiresAt = now + 1 },
			}.Verb(), g.IDs[c.name])
			refused, _ := errors.AsType[*job.Error](err)
			if refused == nil || refused.Kind != job.WrongState || refused.Field != "queue" || !strings.Contains(refused.Text, c.text) {
				g.Errorf("%s to %s: %v", c.name, c.to, err)
			}
			if j := g.Job(c.name); j.Queue == c.to || j.ExpiresAt != 0 {
				g.Errorf("%s changed: %+v", c.name, j)
			}
			g.Patches(query.Search{Filter: engine.Filter{IDs: []job.ID{g.IDs[c.name]}}}, desk.Patch{Queue: c.to}, 0, 1)
		}
	})
}

// What a version before moved into a session or out of one is set aside at the
// start, and its session ends.
func TestWhatWasMovedIntoASessionOrOutOfOneIsSetAside(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "done", "held", "expires", "stays")
		g.AddAll("q", "in", "in leased", "beside")
		e := g.engine("e", 2)
		e.Gets("done", "held")
		e.drain()
		g.Settled(e.Held["done"], job.OK)
		held := g.Leased(engine.LeaseOptions{Queues: []string{"q"}, Max: 2, For: job.Hour}, "in", "in leased")
		g.Settled(held["in"], job.Released)
		g.End()
		g.Rewrites("held", func(j *job.Job) { j.Queue = "q" })
		g.Rewrites("expires", func(j *job.Job) { j.Queue, j.ExpiresAt = "q", 1 })
		g.Rewrites("in", func(j *job.Job) { j.Queue, j.ExpiresAt = "s", 1 })
		g.Rewrites("in leased", func(j *job.Job) { j.Queue = "s" })
		g.InStore(func(tx store.Tx) error { return tx.Unset(job.Reserves, "jobs are placed") })
		g.Begin()
		g.SetAside("held", "outside of its session")
		g.SetAside("expires", "outside of its session")
		g.SetAside("in", "in a session")
		g.SetAside("in leased", "in a session")
		g.Faults(0)
		g.Refused(job.Superseded, engine.Settle{ID: held["in leased"].Job.ID, Token: held["in leased"].Lease.Token, Outcome: job.OK})
		if _, err := g.Part.Dead.Revive(g.Context(), g.IDs["held"], deadset.Revival{}, ann); job.KindOf(err) != job.WrongState {
			g.Errorf("a task outside of its session was replayed: %v", err)
		}
		g.Anonymous(9).Gets("beside")
		e = g.engine("e2", 9)
		e.Gets("stays")
		e.OK("stays")
		if _, err := g.Part.Grid.CloseSession(g.Context(), "s", ann); err != nil {
			g.Fatal(err)
		}
		if s := g.state("s"); !s.State.Ended() || s.Failed != 2 || s.Done != 2 {
			g.Errorf("%+v", s.Session)
		}
	}, func(r *rig) { r.Opts.QueuesMax = 10 })
}

// A session whose settings are lost rests; the clock goes on for others, and the
// server starts.
func TestARowAtFaultRests(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "task")
		if _, err := g.Part.Grid.CancelSession(g.Context(), "s", "", ann); err != nil {
			g.Fatal(err)
		}
		g.End()
		g.InStore(func(tx store.Tx) error {
			row, err := tx.Row(job.Sessions, "s")
			if err != nil {
				return err
			}
			s := *row.(*job.Session)
			s.State, s.Next, s.Failed = job.SessionOpen, 1, 0
			if err := tx.Set(&s); err != nil {
				return err
			}
			return tx.Unset(job.Queues, "s")
		})
		g.Begin()
		g.Add("q", "due", due(g.Clock.Wall()+1000))
		g.Pass(5 * job.Minute)
		g.Expect("due", job.Ready)
		if n := g.Part.Meter.Measure(g.Context()).Stats.Faults; n == 0 || n > 20 {
			g.Errorf("%d faults", n)
		}
		g.Anonymous(1).Gets("due")
	})
}
