package grid_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/store"
)

// Sessions: their lives, what they refuse, results, shares (reference sections
// 1 and 6, acceptance tests A20, A21, A33 to A36).

var driver = job.Actor{Name: "driver"}

func (g *gridRig) closes(name string) gridpart.SessionState {
	g.Helper()
	s, err := g.Part.Grid.CloseSession(g.Context(), name, driver)
	if err != nil {
		g.Fatal(err)
	}
	return s
}

func (g *gridRig) is(name string, want job.SessionState) gridpart.SessionState {
	g.Helper()
	s := g.state(name)
	if s.State != want || s.Depth.Open() != s.Open() {
		g.Fatalf("session %s is %s with %d open tasks of %d, want %s", name, s.State, s.Depth.Open(), s.Open(), want)
	}
	return s
}

// results are the finished tasks behind a cursor, in order, and the next cursor.
func (g *gridRig) results(name string, after int64, n int) (got string, next int64) {
	g.Helper()
	list, _, err := g.Part.Grid.Results(g.Context(), name, after, n)
	if err != nil {
		g.Fatal(err)
	}
	next = after
	for _, d := range list {
		got, next = got+g.Names[d.Job.ID]+" ", d.Number
	}
	return got, next
}

func TestASessionEndsOnceWhenItIsClosedAndItsLastTaskIsFinished(t *testing.T) {
	for last, want := range map[job.Outcome]job.SessionState{job.OK: job.SessionDone, job.Died: job.SessionErrors} {
		grid(t, func(g *gridRig) {
			g.session("s")
			m := g.running("B")
			m.OK("A")
			m.Gets("B")
			g.is("s", job.SessionOpen)
			g.closes("s")
			s := g.is("s", job.SessionClosed)
			if s.Open() != 1 || s.Done != 1 || s.Ended != 0 {
				g.Errorf("%+v", s.Session)
			}
			g.Pass(10)
			g.Settled(m.Held["B"], last)
			ended := g.is("s", want)
			if ended.Ended != g.Clock.Wall() || ended.Closed != ended.Ended-10 {
				g.Errorf("%+v", ended.Session)
			}
			g.Pass(10)
			if again := g.closes("s"); again.Ended != ended.Ended || again.State != want {
				g.Errorf("%+v", again.Session)
			}
		})
	}
}

func TestAnEmptySessionIsDoneWhenItIsClosed(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.closes("s")
		g.is("s", job.SessionDone)
	})
}

func TestASessionThatIsClosedTakesNoTasksButKnowsThoseItHas(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		key := func(k string) func(*engine.NewJob) { return func(n *engine.NewJob) { task(n); n.Key = k } }
		id := g.Add("s", "A", key("1"))
		g.closes("s")
		again, err := g.Put(g.Context(), []engine.NewJob{newNamed("s", "A", key("1"))})
		if err != nil || !again[0].Duplicate || again[0].ID != id {
			g.Errorf("%+v, %v", again, err)
		}
		if _, err := g.Put(g.Context(), []engine.NewJob{newNamed("s", "B", key("2"))}); job.KindOf(err) != job.WrongState {
			g.Errorf("%v", err)
		}
		if _, err := g.Put(g.Context(), []engine.NewJob{newNamed("s", "C", key("1"))}); job.KindOf(err) != job.Exists {
			g.Errorf("%v", err)
		}
		if s := g.state("s"); s.Submitted != 1 {
			g.Errorf("%+v", s.Session)
		}
	})
}

func TestASessionBecomesNoInboxAndKeepsWhatSessionsHave(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		inbox := func(q *job.Queue) error {
			q.Order, q.Concurrency, q.Turns, q.Protection.Fair = job.OrderStrict, 1, true, &job.FairShare{}
			return nil
		}
		tell := func([]byte) string { return "" }
		row := job.DoorSetting{Door: job.DoorInbox, Name: "s", Body: []byte("1")}
		if err := g.Part.Desk.SetDoor(g.Context(), row, inbox, tell, driver); job.KindOf(err) != job.Exists {
			g.Errorf("a session made an inbox: %v", err)
		}
		for name, edit := range map[string]func(*job.Queue) error{
			"order":       func(q *job.Queue) error { q.Order = job.OrderStrict; return nil },
			"concurrency": func(q *job.Queue) error { q.Concurrency = 1; return nil },
			"max_running": func(q *job.Queue) error { q.Protection.MaxRunning = 1; return nil },
		} {
			if _, err := g.Part.Desk.SetQueue(g.Context(), "s", edit, driver); job.KindOf(err) != job.Invalid {
				g.Errorf("%s of a session: %v", name, err)
			}
		}
		row.Name = "i"
		if err := g.Part.Desk.SetDoor(g.Context(), row, inbox, tell, driver); err != nil {
			g.Fatal(err)
		}
		if _, err := g.Part.Desk.SetQueue(g.Context(), "i", func(q *job.Queue) error { q.Paused = true; return nil }, driver); err != nil {
			g.Errorf("an inbox that is paused: %v", err)
		}
	})
}

func TestOnlyTasksGoIntoSessionsAndOnlyEnginesGetThem(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		worker, named := g.Anonymous(9), g.Anonymous(9, "s")
		g.tasks("s", "A")
		g.AddAll("q", "plain")
		worker.Gets("plain")
		named.Gets()
		if _, err := g.Put(g.Context(), []engine.NewJob{newNamed("s", "x")}); job.KindOf(err) != job.WrongState {
			g.Errorf("a job in a session: %v", err)
		}
		if _, err := g.Put(g.Context(), []engine.NewJob{newNamed("q", "x", task)}); job.KindOf(err) != job.NotFound {
			g.Errorf("a task in a queue: %v", err)
		}
		if _, err := g.Part.Grid.OpenSession(g.Context(), gridpart.NewSession{Queue: *g.state("s").Settings}, driver); job.KindOf(err) != job.Exists {
			g.Errorf("a second session of the name: %v", err)
		}
		if _, err := g.Part.Desk.SetQueue(g.Context(), "s", func(q *job.Queue) error { q.Grid = nil; return nil }, driver); job.KindOf(err) != job.WrongState {
			g.Errorf("a session made a queue: %v", err)
		}
		m := g.engine("w", 9)
		m.Gets("A")
	})
}

func TestACancelledSessionGivesUpEveryTaskAndTellsTheEngines(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running("B", "C")
		m.drain()
		m.OK("A")
		other := g.engine("w2", 1)
		other.Gets("B")
		if _, err := g.Part.Grid.CancelSession(g.Context(), "s", "enough", driver); err != nil {
			g.Fatal(err)
		}
		g.Pass(2)
		s := g.is("s", job.SessionCancelled)
		if s.Done != 1 || s.Cancelled != 2 || s.Failed != 0 {
			g.Errorf("%+v", s.Session)
		}
		if x, err := g.Explain(g.Context(), g.IDs["C"]); err != nil || x.Cancel == nil || x.Cancel.Message != "its session was cancelled by driver: enough" || x.Cancel.Failed == 0 {
			g.Errorf("who cancelled it: %+v, %v", x.Cancel, err)
		}
		other.Gets("B: cancel")
		g.Refused(job.Superseded, engine.Settle{ID: g.IDs["B"], Token: other.Held["B"].Lease.Token})
		if _, err := enginetest.Operate(g.Context(), g.Engine, g.IDs["C"], revive); job.KindOf(err) != job.WrongState {
			g.Errorf("a task of a session that is over came back: %v", err)
		}
		if again, err := g.Part.Grid.CancelSession(g.Context(), "s", "", driver); err != nil || again.Why != "by driver: enough" {
			g.Errorf("%+v, %v", again.Session, err)
		}
	})
}

func TestACancelGoesOnAfterAPowerCut(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		var list []engine.NewJob
		for i := range 1200 {
			list = append(list, newNamed("s", fmt.Sprint(i), task))
		}
		if _, err := g.Put(g.Context(), list); err != nil {
			g.Fatal(err)
		}
		if _, err := g.Part.Grid.CancelSession(g.Context(), "s", "", driver); err != nil {
			g.Fatal(err)
		}
		g.PowerCut()
		g.Pass(10)
		if s := g.is("s", job.SessionCancelled); s.Cancelled != 1200 {
			g.Errorf("%+v", s.Session)
		}
	}, func(r *rig) { r.Twice = false })
}

func TestA36AutoCancel(t *testing.T) {
	for _, c := range []struct {
		when job.AutoCancel
		kind string
		want job.SessionState
	}{
		{job.AutoCancelNever, job.LoadError, job.SessionOpen},
		{job.AutoCancelLibload, "E", job.SessionOpen},
		{job.AutoCancelLibload, job.LoadError, job.SessionCancelled},
		{job.AutoCancelAlways, "E", job.SessionCancelled},
	} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { q.Retry.Limit, q.Grid.AutoCancel = job.LimitOf(0), c.when })
			m := g.running("B")
			m.drain()
			m.Fails("A", func(s *engine.Settle) { s.Failure.Type = c.kind })
			g.Pass(2)
			s := g.is("s", c.want)
			if s.Failed != 1 || s.Cancelled != int64(oneOf(c.want == job.SessionCancelled)) {
				g.Errorf("%+v: %+v", c, s.Session)
			}
		})
	}
}

func TestResultsComeInTheOrderOfFinishingAndLeaveWhenTheyAreAcknowledged(t *testing.T) { // A7 of grid.md 10
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.engine("w", 9)
		g.tasks("s", "A", "B", "C", "D")
		m.Gets("A", "B", "C", "D")
		m.OK("C", "A")
		got, cursor := g.results("s", 0, 9)
		if got != "C A " {
			g.Fatalf("got %s", got)
		}
		g.Settled(m.Held["D"], job.Died)
		if got, _ := g.results("s", cursor, 9); got != "D " {
			g.Errorf("got %s", got)
		}
		g.ack("s", cursor)
		g.Expect("A", job.None)
		g.Expect("C", job.None)
		if got, _ := g.results("s", 0, 9); got != "D " {
			g.Errorf("after the acknowledgement: %s", got)
		}
		if _, err := g.Part.Grid.Collected(g.Context(), "s", cursor+1_000_000); job.KindOf(err) != job.Invalid {
			g.Errorf("a cursor that nobody was given: %v", err)
		}
		g.ack("s", cursor-1) // an older one changes nothing
		m.OK("B")
		g.Restart(0)
		if got, _ := g.results("s", cursor, 9); got != "D B " {
			g.Errorf("after a restart: %s", got)
		}
		if s := g.is("s", job.SessionOpen); s.Done != 3 || s.Failed != 1 || s.Collected != cursor {
			g.Errorf("%+v", s.Session)
		}
	})
}

func (g *gridRig) ack(name string, upTo int64) {
	g.Helper()
	if _, err := g.Part.Grid.Collected(g.Context(), name, upTo); err != nil {
		g.Fatal(err)
	}
	g.Pass(2)
}

// Whoever waits for results hears of one no later than the engine that brought it is
// answered; the sign of life of a stream would hide that nobody is told.
func TestAResultIsNews(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "A")
		m := g.engine("e1", 1)
		m.Gets("A")
		news := g.News("s")
		m.OK("A")
		select {
		case <-news:
		default:
			g.Error("nobody is told of a result")
		}
	})
}

func TestManyResultsAreForgottenPieceByPiece(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		var list []engine.NewJob
		for i := range 1100 {
			list = append(list, newNamed("s", fmt.Sprint(i), task))
		}
		if _, err := g.Put(g.Context(), list); err != nil {
			g.Fatal(err)
		}
		in := g.login("w", 2000)
		taken, err := g.Part.Grid.EngineLease(g.Context(), "w", in.Engine.Epoch, 1100, nil)
		for err == nil && len(taken) < 1100 {
			var more []engine.Delivery
			more, err = g.Part.Grid.EngineLease(g.Context(), "w", in.Engine.Epoch, 1100, nil)
			taken = append(taken, more...)
		}
		if err != nil {
			g.Fatal(err)
		}
		var ends []engine.Settle
		for _, d := range taken {
			ends = append(ends, engine.Settle{ID: d.Job.ID, Token: d.Lease.Token})
		}
		if _, err := g.Settle(g.Context(), ends); err != nil {
			g.Fatal(err)
		}
		results, _, err := g.Part.Grid.Results(g.Context(), "s", 0, 2000)
		if err != nil || len(results) != 1100 {
			g.Fatal(len(results), err)
		}
		g.ack("s", results[1049].Number)
		g.Pass(10)
		if left, _, err := g.Part.Grid.Results(g.Context(), "s", 0, 2000); err != nil || len(left) != 50 {
			g.Errorf("%d are left, %v", len(left), err)
		}
	}, func(r *rig) { r.Twice = false })
}

func TestA35AfterSubmitThereAreNoResultsBeforeTheSessionIsClosed(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.Collection = job.CollectAfterSubmit })
		m := g.running("B")
		m.OK("A")
		if got, _ := g.results("s", 0, 9); got != "" {
			g.Errorf("before: %s", got)
		}
		g.closes("s")
		if got, _ := g.results("s", 0, 9); got != "A " {
			g.Errorf("after: %s", got)
		}
		m.Gets("B")
		m.OK("B")
		if got, _ := g.results("s", 0, 9); got != "A B " {
			g.Errorf("in the end: %s", got)
		}
	})
}

func TestA34LaterResultsStayUntilTheSessionIsDeleted(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.Collection = job.CollectLater })
		m := g.running("B")
		m.OK("A")
		m.Gets("B")
		m.OK("B")
		_, cursor := g.results("s", 0, 9)
		g.ack("s", cursor)
		if err := g.Part.Grid.DeleteSession(g.Context(), "s", driver); job.KindOf(err) != job.WrongState {
			g.Errorf("deleting a session that goes on: %v", err)
		}
		g.closes("s")
		if got, _ := g.results("s", 0, 9); got != "A B " { // who collects begins anew
			g.Errorf("got %s", got)
		}
		if err := g.Part.Grid.DeleteSession(g.Context(), "s", driver); err != nil {
			g.Fatal(err)
		}
		g.Pass(2)
		g.gone("s")
	})
}

// gone wants a session to be forgotten, with all it had.
func (g *gridRig) gone(name string) {
	g.Helper()
	if _, err := g.Part.Grid.Session(g.Context(), name); job.KindOf(err) != job.NotFound {
		g.Errorf("%v", err)
	}
	err := g.Mem.View(g.Context(), func(v store.Reader) error {
		n, err := v.Count(store.Filter{Queues: []string{name}})
		if row, _ := v.Row(job.Queues, name); row != nil || n != 0 {
			g.Errorf("%d tasks and %v are left", n, row)
		}
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
	g.session(name) // the name is free
}

// The clock looks at a session for other reasons, too: here an engine is forgiven.
func TestA34LaterResultsStayWhenAnExclusionEnds(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) {
			q.Grid.Collection = job.CollectLater
			q.Grid.Exclusion = &job.Exclusion{Failures: 1, MaxFraction: 1, TTL: 4 * job.Second}
		})
		m := g.engine("w", 1)
		g.tasks("s", "A", "B")
		m.Gets("A")
		m.OK("A")
		m.Gets("B")
		if _, err := g.Part.Grid.Collected(g.Context(), "s", g.Job("A").Finished); err != nil {
			g.Fatal(err)
		}
		m.Fails("B")
		m.Gets()
		g.beating(4*job.Second, m)
		m.Gets("B")
		if g.Job("A") == nil {
			g.Error("the result of A was acknowledged, and is gone")
		}
	})
}

func TestNeverCollectedTasksLeaveAtOnceAndCount(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.Collection, q.RetainDone = job.CollectNever, 0 })
		m := g.running()
		m.OK("A")
		g.Expect("A", job.None)
		g.closes("s")
		if s := g.is("s", job.SessionDone); s.Done != 1 {
			g.Errorf("%+v", s.Session)
		}
	})
}

func TestASessionIsForgottenSomeTimeAfterItsEnd(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.Retain = job.Hour })
		m := g.running()
		g.Settled(m.Held["A"], job.Died)
		g.closes("s")
		g.Pass(job.Hour - 1)
		g.is("s", job.SessionErrors)
		g.Pass(3)
		g.gone("s")
	})
}

func TestA20EachSessionHasItsShareOfTheEngines(t *testing.T) {
	for _, c := range []struct {
		slots          int
		weights, share []int
		caps           map[int]int
		tasks          map[int]int // of a session; else it has more than there are slots
	}{
		{8, []int{2, 2, 4}, []int{2, 2, 4}, nil, nil},
		{10, []int{5, 5, 9}, []int{3, 2, 5}, nil, nil},
		{10, []int{5, 5, 5}, []int{4, 3, 3}, nil, nil},
		{7, []int{5, 0, 3}, []int{4, 0, 3}, nil, nil},
		{100, []int{9, 5, 1}, []int{30, 58, 12}, map[int]int{0: 30}, nil},
		{100, []int{5, 5, 5}, []int{88, 10, 2}, nil, map[int]int{1: 10, 2: 2}},
	} {
		grid(t, func(g *gridRig) {
			for i, w := range c.weights {
				name := fmt.Sprint("s", i)
				g.session(name, func(q *job.Queue) { q.Grid.Weight, q.Grid.MaxEngines = uint8(w), c.caps[i] })
				list := make([]engine.NewJob, cmp.Or(c.tasks[i], c.slots+2))
				for k := range list {
					list[k] = newNamed(name, fmt.Sprint(name, "-", k), task)
				}
				added, err := g.Put(g.Context(), list)
				if err != nil {
					t.Fatal(err)
				}
				for k, a := range added {
					g.Call(a.ID, fmt.Sprint(name, "-", k))
				}
			}
			m := g.engine("w", c.slots)
			m.Read()
			for i, want := range c.share {
				s := g.state(fmt.Sprint("s", i))
				if int(s.Depth.Leases) != want || s.Share != want {
					g.Errorf("%v: session %d runs %d, its share is %d, want %d", c.weights, i, s.Depth.Leases, s.Share, want)
				}
			}
		}, func(r *rig) { r.Twice = false })
	}
}

func TestA21ASuspendedSessionStartsNothing(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running("B")
		weight := func(w uint8) {
			edit := func(q *job.Queue) error { q.Grid.Weight = w; return nil }
			if _, err := g.Part.Grid.ChangeSession(g.Context(), "s", edit, driver); err != nil {
				g.Fatal(err)
			}
		}
		weight(0)
		m.OK("A")
		m.Gets()
		weight(5)
		m.Gets("B")
		if _, err := g.Part.Grid.ChangeSession(g.Context(), "s", func(q *job.Queue) error { q.Grid.Weight = 10; return nil }, driver); job.KindOf(err) != job.Invalid {
			g.Errorf("an absurd weight: %v", err)
		}
	})
}

func TestASlotThatASessionLeavesGoesToTheOthers(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("a")
		g.session("b")
		m := g.engine("w", 2)
		g.tasks("a", "A1", "A2", "A3")
		m.Gets("A1", "A2")
		g.tasks("b", "B1", "B2")
		m.OK("A1")
		m.Gets("B1") // a has more than its share
		m.OK("B1")
		m.Gets("B2")
		m.OK("A2")
		m.Gets("A3")
	})
}

func TestA25AConditionThatNoPropertyMeetsKeepsATaskWaiting(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		props := func(list ...string) func(*gridpart.Login) {
			return func(l *gridpart.Login) {
				if len(list) > 0 {
					l.Properties = map[string]string{"cpuMHz": list[0]}
				}
			}
		}
		slow, none, fast := g.engine("slow", 1, props("350")), g.engine("none", 1, props()), g.engine("fast", 1, props("351"))
		g.Add("s", "A", task, func(n *engine.NewJob) {
			n.Job.Requires = []job.Requirement{{Property: "cpuMHz", Op: ">", Value: "350"}}
		})
		g.tasks("s", "B")
		if got := append(slow.Read(), none.Read()...); fmt.Sprint(got) != "[B]" { // it is not behind a task that does not fit
			g.Errorf("got %v", got)
		}
		fast.Gets("A")
	})
}

func TestSharesSurviveATransactionThatFails(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.engine("w", 2)
		g.tasks("s", "A")
		m.Gets("A")
		g.Mem.FailNextCommit(errDisk)
		_, _ = g.Put(g.Context(), []engine.NewJob{newNamed("s", "lost", task)})
		g.Recovered()
		m.epoch = g.login("w", 2, func(l *gridpart.Login) {
			l.Running = []gridpart.Running{{ID: g.IDs["A"], Token: m.Held["A"].Lease.Token}}
		}).Engine.Epoch
		m.connect()
		g.tasks("s", "B", "C")
		g.Pass(0)
		if s := g.state("s"); s.Depth.Leases != 2 {
			g.Errorf("%+v", s.Depth)
		}
		if s := g.state("s"); s.Submitted != s.Depth.Open()+s.Done {
			g.Errorf("%+v, %+v", s.Session, s.Depth)
		}
	})
}
