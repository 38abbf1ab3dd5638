package sim_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/mem"
)

var turnSeeds = flag.Uint64("turnseeds", 40, "how many histories TestTurns plays")

// turnWorld is a history of two inboxes, one in each mode, whose groups are given
// out in turns: deliverers in the process and workers, failures, crashes, pauses,
// dead heads and their replay. What clients saw is held against what is stored.
type turnWorld struct {
	*testing.T
	ctx   context.Context //nolint:containedctx // a history is one run, and this is what ends it
	rng   *rand.Rand
	clock *clock
	mem   *mem.Store
	e     *engine.Engine
	lives uint64

	onDead job.OnDead
	ranked bool
	limit  uint32
	live   []*liveTurn
	sent   map[job.ID]bool // messages put, true = a client was told that it is done
	lines  []string
}

// liveTurn is a turn in somebody's hands.
type liveTurn struct {
	engine.Turn
	next  int
	last  job.ID // the highest id there was when it began
	local bool
}

var turnModes = map[string]job.Order{"ordered": job.OrderStrict, "all": job.OrderStart}

func (w *turnWorld) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *turnWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.wrong("answers", "%v", err)
	}
}

func (w *turnWorld) wrong(law, format string, args ...any) {
	w.Helper()
	w.Fatalf("%s: %s\n%s", law, fmt.Sprintf(format, args...), strings.Join(w.lines, "\n"))
}

func (w *turnWorld) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

func (w *turnWorld) begin() {
	w.lives++
	src := rand.New(rand.NewPCG(w.lives, w.rng.Uint64()))
	w.e = engine.New(w.mem, w.clock, src.Uint64, slog.New(slog.DiscardHandler), engine.Options{Server: rule.DefaultServer(), Reattach: reattach})
	w.must(w.e.Start(w.ctx))
}

// TestTurns plays histories; what fails prints its steps.
func TestTurns(t *testing.T) { // I7, inbox.md 1 to 7
	for seed := range *turnSeeds {
		t.Run(fmt.Sprint("seed ", seed+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &turnWorld{T: t, ctx: t.Context(), rng: rand.New(rand.NewPCG(seed+1, 6)), clock: &clock{}, sent: map[job.ID]bool{}}
				w.onDead, w.ranked, w.limit = job.OnDead(w.rng.IntN(3)), w.oneIn(2), uint32(w.rng.IntN(3))
				w.mem = mem.Open(mem.Options{Now: w.clock.Wall, Rand: w.rng, Twice: w.oneIn(3), Free: func() (int64, int64) { return 1000, 1000 }})
				w.begin()
				for name, order := range turnModes {
					_, err := w.e.SetQueue(w.ctx, name, func(q *job.Queue) error {
						q.Order, q.Turns, q.OnDead, q.GraceDelay = order, true, w.onDead, 1
						q.Concurrency = map[job.Order]int{job.OrderStart: 1}[order]
						q.Protection.Fair = &job.FairShare{}
						q.RetainDone, q.RetainDead = job.Hour, job.Hour
						q.Retry = job.Retry{Limit: job.LimitOf(w.limit), Curve: &job.Curve{Kind: job.CurveConstant, Delay: 5 * job.Second}}
						return nil
					}, job.Actor{})
					w.must(err)
				}
				w.say("on_dead %s, ranked %t, limit %d", w.onDead, w.ranked, w.limit)
				for range 70 {
					w.step()
					w.laws()
				}
				w.drain()
				w.must(w.e.Stop(context.WithoutCancel(w.ctx)))
			})
		})
	}
}

func (w *turnWorld) step() {
	steps := []func(){w.put, w.put, w.take, w.take, w.take, w.act, w.act, w.act, w.act, w.act, w.act, w.run, w.operate, w.wait, w.wait, w.crash}
	steps[w.rng.IntN(len(steps))]()
	synctest.Wait()
}

func (w *turnWorld) inbox() string { return []string{"ordered", "all"}[w.rng.IntN(2)] }

func (w *turnWorld) put() {
	queue := w.inbox()
	for range 1 + w.rng.IntN(4) {
		n := engine.NewJob{Payload: []byte("x"), Job: job.Job{
			Queue: queue, Type: "t", Group: []string{"a", "b", "c"}[w.rng.IntN(3)], Priority: job.PriorityDefault,
			RetainDone: job.Unset, RetainDead: job.Unset,
		}}
		if w.ranked {
			n.Job.Ranked, n.Job.Rank = true, int64(w.rng.IntN(20))-5
		}
		if w.oneIn(8) {
			n.Job.GraceUntil = w.clock.Wall() + job.Millis(w.rng.IntN(20_000))
		}
		if w.oneIn(10) {
			n.Job.ExpiresAt = w.clock.Wall() + job.Millis(1000+w.rng.IntN(30_000))
		}
		added, err := w.e.Put(w.ctx, []engine.NewJob{n})
		w.must(err)
		w.sent[added[0].ID] = false
		w.say("put %s into %s/%s, rank %d, grace %d, expires %d", added[0].ID, queue, n.Job.Group, n.Job.Rank, n.Job.GraceUntil, n.Job.ExpiresAt)
	}
}

func (w *turnWorld) members(queue, group string) []*job.Job {
	list, err := w.e.Members(w.ctx, queue, group, 1000)
	w.must(err)
	return list
}

// take takes what is there now, and holds it against what was there.
func (w *turnWorld) take() {
	o := engine.TurnOptions{Queue: w.inbox(), Turns: 1 + w.rng.IntN(3), Members: []int{1, 2, -1}[w.rng.IntN(3)], For: 8 * job.Second, Once: true, Local: w.oneIn(2)}
	w.took(o)
}

func (w *turnWorld) took(o engine.TurnOptions) []engine.Turn {
	before := map[string][]*job.Job{}
	for _, g := range []string{"a", "b", "c"} {
		before[g] = w.members(o.Queue, g)
	}
	list, err := w.e.LeaseTurns(w.ctx, o)
	w.must(err)
	for _, t := range list {
		w.say("turn %d of %s/%s: %d members, local %t", t.Number, t.Queue, t.Group, len(t.Deliveries), o.Local)
		want := wanted(before[t.Group], turnModes[t.Queue], o.Members)
		var got []job.ID
		for _, d := range t.Deliveries {
			got = append(got, d.Job.ID)
		}
		if !slices.Equal(got, want) {
			w.wrong("inbox.md 2 and 4", "turn %d of %s/%s has %v, want %v", t.Number, t.Queue, t.Group, got, want)
		}
		var last job.ID
		for id := range w.sent {
			if last.Before(id) {
				last = id
			}
		}
		w.live = append(w.live, &liveTurn{t, 0, last, o.Local})
	}
	return list
}

// wanted is which members a turn must have: the head decides whether there is one.
func wanted(members []*job.Job, order job.Order, most int) (ids []job.ID) {
	for i, j := range members {
		ready := j.State == job.Ready && j.Park == "" && len(j.Leases) == 0
		if !ready && (i == 0 || order == job.OrderStrict) {
			return ids
		}
		if ready && (most < 0 || len(ids) < most) {
			if j.Alone && i > 0 { // has a turn of its own
				if order == job.OrderStrict {
					return ids
				}
				continue
			}
			if ids = append(ids, j.ID); j.Alone {
				return ids
			}
		}
	}
	return ids
}

// act goes on with a turn: its next member is delivered, or not.
func (w *turnWorld) act() {
	if len(w.live) == 0 {
		return
	}
	at := w.rng.IntN(len(w.live))
	t := w.live[at]
	d := t.Deliveries[t.next]
	strict := turnModes[t.Queue] == job.OrderStrict
	if behind := t.next + 1; strict && behind < len(t.Deliveries) && w.oneIn(6) { // out of order
		b := t.Deliveries[behind]
		v := w.settle(engine.Settle{ID: b.Job.ID, Token: b.Lease.Token})
		if v.Err == nil {
			w.wrong("I7", "%s was accepted before %s", b.Job.ID, d.Job.ID)
		}
	}
	outcome := []job.Outcome{job.OK, job.OK, job.OK, job.OK, job.OK, job.Retried, job.Retried, job.Died, job.Released}[w.rng.IntN(9)]
	switch err := w.e.MayDeliver(w.ctx, d.Job.ID, d.Lease.Token); {
	case job.KindOf(err) == job.WrongState:
		outcome = job.Released
	case err != nil:
		outcome = job.OK // late, perhaps
	}
	waiting := w.members(t.Queue, t.Group)
	v := w.settle(engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: outcome, Failure: job.Failure{Type: "E"}})
	w.say("%s of %s in turn %d: %s, %v", outcome, d.Job.ID, t.Number, v.State, v.Err)
	if v.Err == nil && outcome == job.OK {
		w.sent[d.Job.ID] = true
		for _, j := range waiting { // those that were there when the turn began left before it
			if strict && j.ID != d.Job.ID && before(j, d.Job) && !t.last.Before(j.ID) && j.Replays == 0 {
				w.wrong("I7", "%s is done, and %s, which is before it, is %s", d.Job.ID, j.ID, j.State)
			}
		}
	}
	if v.Err == nil && outcome != job.OK && strict {
		w.untouched(t, waiting)
	}
	if t.next++; t.next == len(t.Deliveries) {
		w.live = slices.Delete(w.live, at, at+1)
	}
}

// untouched: members behind one that ended otherwise than by an OK go back as they
// were, and none of them runs on.
func (w *turnWorld) untouched(t *liveTurn, then []*job.Job) {
	d := t.Deliveries[t.next]
	if d.Job.ExpiresAt > 0 && d.Job.ExpiresAt <= w.clock.Wall() {
		return
	}
	for _, j := range w.members(t.Queue, t.Group) {
		at := slices.IndexFunc(then, func(o *job.Job) bool { return o.ID == j.ID })
		if at < 0 || j.ID == d.Job.ID || !before(d.Job, j) {
			continue
		}
		o := then[at]
		if len(j.Leases) > 0 || j.Attempts != o.Attempts || j.Losses != o.Losses || j.Evictions != o.Evictions {
			w.wrong("inbox.md 3", "%s behind %s went from %+v to %+v", j.ID, d.Job.ID, *o, *j)
		}
	}
}

func before(a, b *job.Job) bool {
	x, y := rule.SortOf(a), rule.SortOf(b)
	return x < y || x == y && a.ID.Before(b.ID)
}

func (w *turnWorld) settle(s engine.Settle) engine.Verdict {
	list, err := w.e.Settle(w.ctx, []engine.Settle{s})
	w.must(err)
	return list[0]
}

// run is a whole run of a polled inbox: it visits each group at most once, and
// leaves none that had something due when it began.
func (w *turnWorld) run() {
	queue := w.inbox()
	round, err := w.e.Round(w.ctx)
	w.must(err)
	ready, err := w.e.Groups(w.ctx, queue, []rule.Condition{rule.GroupReady}, "", 99)
	w.must(err)
	w.say("a run of %s begins, %d groups are ready", queue, len(ready))
	visited := map[string]bool{}
	for {
		list := w.took(engine.TurnOptions{Queue: queue, Turns: 1, Members: 1, Local: true, Once: true, Before: round})
		if len(list) == 0 {
			break
		}
		if visited[list[0].Group] {
			w.wrong("inbox.md 4", "group %s was visited twice in a run", list[0].Group)
		}
		visited[list[0].Group] = true
		t := w.live[len(w.live)-1]
		w.live = w.live[:len(w.live)-1]
		v := w.settle(engine.Settle{ID: t.Deliveries[0].Job.ID, Token: t.Deliveries[0].Lease.Token})
		w.must(v.Err)
		w.sent[t.Deliveries[0].Job.ID] = true
	}
	for _, g := range ready {
		if !visited[g.Group] && !g.Head.Alone {
			w.wrong("inbox.md 5", "group %s had something due and was not visited", g.Group)
		}
	}
}

func (w *turnWorld) operate() {
	queue, group := w.inbox(), []string{"a", "b", "c"}[w.rng.IntN(3)]
	members := w.members(queue, group)
	if len(members) == 0 {
		return
	}
	j, by, what, err := members[w.rng.IntN(len(members))], job.Actor{Name: "ann"}, "", error(nil)
	switch w.rng.IntN(8) {
	case 0:
		what = "pause"
		_, err = w.e.Pause(w.ctx, by, j.ID)
	case 1, 2:
		what = "resume"
		_, err = w.e.Resume(w.ctx, by, j.ID)
	case 3:
		what = "pause group"
		err = w.e.PauseGroup(w.ctx, by, queue, group)
	case 4, 5:
		what = "resume group"
		err = w.e.ResumeGroup(w.ctx, by, queue, group)
	case 6:
		what = "retry head"
		_, err = w.e.RetryHead(w.ctx, by, queue, group)
	case 7:
		what = "skip head"
		_, err = w.e.SkipHead(w.ctx, by, queue, group)
	}
	w.say("%s %s of %s/%s: %v", what, j.ID, queue, group, err)
	if err != nil && job.KindOf(err) != job.WrongState {
		w.must(err)
	}
}

func (w *turnWorld) wait() {
	span := time.Duration(1+w.rng.IntN(12)) * time.Second
	w.say("%s pass", span)
	<-time.After(span)
}

// crash ends the process, or its power. What a local turn had goes back, and nobody
// is blamed; the tokens of others live on.
func (w *turnWorld) crash() {
	losses := map[job.ID]uint32{}
	for _, t := range w.live {
		for _, d := range t.Deliveries {
			if j, _, err := w.e.Get(w.ctx, d.Job.ID); err == nil {
				losses[j.ID] = j.Losses
			}
		}
	}
	power := w.oneIn(2)
	w.say("the server ends, its power too %t", power)
	if power {
		w.mem.PowerCut(w.rng)
	}
	dead := w.e
	_ = dead.Stop(context.WithoutCancel(w.ctx))
	if power {
		w.must(w.mem.Reopen(w.ctx))
	}
	w.begin()
	for _, t := range w.live {
		for _, d := range t.Deliveries {
			j, _, err := w.e.Get(w.ctx, d.Job.ID)
			if err != nil || !t.local {
				continue
			}
			if j.LeaseOf(d.Lease.Token) >= 0 || j.Losses > losses[j.ID] {
				w.wrong("core.md 4", "%s of a local turn is %+v after a start", j.ID, *j)
			}
		}
	}
	w.live = slices.DeleteFunc(w.live, func(t *liveTurn) bool { return t.local })
}

// laws holds at any time.
func (w *turnWorld) laws() {
	for queue := range turnModes {
		_, depth, err := w.e.Queue(w.ctx, queue)
		w.must(err)
		list, err := w.e.List(w.ctx, engine.Filter{Queues: []string{queue}}, 1000, false)
		w.must(err)
		var statuses [rule.Statuses]int64
		turns := map[string]int64{}
		for _, l := range list {
			statuses[rule.StatusOf(l.Job)]++
			for _, lease := range l.Job.Leases {
				if turns[l.Job.Group] == 0 {
					turns[l.Job.Group] = lease.Turn
				}
				if lease.Turn == 0 || turns[l.Job.Group] != lease.Turn {
					w.wrong("I7", "group %s/%s has the turns %d and %d", queue, l.Job.Group, turns[l.Job.Group], lease.Turn)
				}
			}
			if w.sent[l.Job.ID] && l.Job.State != job.Done {
				w.wrong("I5", "%s was told done and is %s", l.Job.ID, l.Job.State)
			}
		}
		if statuses != depth.Status {
			w.wrong("inbox.md, counts", "%s counts %v, has %v", queue, depth.Status, statuses)
		}
		groups, err := w.e.Groups(w.ctx, queue, nil, "", 99)
		w.must(err)
		var conditions [rule.Conditions]int64
		for _, g := range groups {
			conditions[g.Is]++
		}
		if conditions != depth.Groups {
			w.wrong("inbox.md, counts", "%s counts groups %v, has %v", queue, depth.Groups, conditions)
		}
	}
	if err := w.mem.Check(); err != nil {
		w.wrong("store", "%v", err)
	}
}

// drain lets everything go on that was stopped, and delivers all of it: nothing is
// left behind, and in the ordered inbox what was parked together leaves in order.
func (w *turnWorld) drain() {
	w.say("the end: all is resumed, replayed and delivered")
	<-time.After(time.Minute) // workers lapse
	synctest.Wait()
	w.live = nil
	by := job.Actor{}
	for queue := range turnModes {
		for _, group := range []string{"a", "b", "c"} {
			w.must(w.e.ResumeGroup(w.ctx, by, queue, group))
			for _, j := range w.members(queue, group) {
				j, _, err := w.e.Get(w.ctx, j.ID) // the one before it may have ended its turn
				w.must(err)
				if j.State.Open() {
					_, err := w.e.Resume(w.ctx, by, j.ID)
					w.must(err)
				}
				if len(j.Leases) > 0 { // of a local turn
					v := w.settle(engine.Settle{ID: j.ID, Token: j.Leases[0].Token, Outcome: job.Released})
					w.must(v.Err)
				}
				if j.Blocks {
					_, err := w.e.RetryNow(w.ctx, by, j.ID)
					w.must(err)
				}
			}
		}
		for range 40 {
			<-time.After(time.Minute)
			synctest.Wait()
			for _, t := range w.took(engine.TurnOptions{Queue: queue, Turns: 9, Members: -1, Local: true, Once: true}) {
				for _, d := range t.Deliveries {
					w.must(w.settle(engine.Settle{ID: d.Job.ID, Token: d.Lease.Token}).Err)
				}
			}
			w.live = nil
		}
		_, depth, err := w.e.Queue(w.ctx, queue)
		w.must(err)
		if n := depth.Open(); n != 0 || depth.Groups != [rule.Conditions]int64{} {
			w.wrong("I1", "%d members of %s are left behind, groups %v", n, queue, depth.Groups)
		}
	}
}
