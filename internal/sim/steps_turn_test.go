package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
)

// Where a history has no inbox, its steps do what others do, so that those are as
// frequent as ever.

// inboxNames are the queues that may be given out in turns.
var inboxNames = []string{"strict", "start"}

// turnInHand is one in somebody's hands.
type turnInHand struct {
	number int64
	rest   []hand // what was not settled yet, in its order
	goesOn *turn.Rest
}

// furnishInboxes lets groups be given out in turns, in one mode or in both.
func (w *world) furnishInboxes() {
	if !w.setup.inboxes {
		return
	}
	both := w.oneIn(2)
	for i, name := range inboxNames {
		if both || w.seed%2 == uint64(i) {
			w.toggleTurns(name)
		}
	}
}

// toggleTurns makes an inbox of a queue, or a queue of an inbox.
func (w *world) toggleTurns(name string) {
	if w.judge.book.queue(name).Turns {
		w.setQueue(name, "no turns", func(q *job.Queue) { q.Turns = false })
		return
	}
	delay, most := pick(w, []job.Millis{0, 1, 4 * job.Second}), pick(w, []job.Millis{0, 0, 9 * job.Second})
	w.setQueue(name, fmt.Sprintf("turns, grace delay %s, cap of the age %s", delay, most), func(q *job.Queue) {
		if q.Turns, q.GraceDelay, q.AgeCap = true, delay, most; q.Order == job.OrderStart {
			q.Concurrency = 1
		}
		if q.Protection.Fair == nil {
			q.Protection.Fair = inboxShare
		}
	})
}

var inboxShare = &job.FairShare{}

// inbox draws a queue that is given out in turns; "" = there is none.
func (w *world) inbox() string {
	list := slices.DeleteFunc(slices.Clone(inboxNames), func(name string) bool { return !w.judge.book.queue(name).Turns })
	if len(list) == 0 {
		return ""
	}
	return pick(w, list)
}

// rank gives a member of a group a place of its own in the order of its group.
func (w *world) rank(j *job.Job) {
	if w.setup.inboxes && j.Group != "" && w.oneIn(2) {
		j.Ranked, j.Rank = true, w.dice.Int64N(40)-9
	}
}

// putMessages puts several into one group of an inbox.
func (w *world) putMessages() {
	queue := w.inbox()
	if queue == "" || len(w.judge.book.jobs) > 30 {
		w.putSome()
		return
	}
	c := &call{}
	group := pick(w, groupNames)
	list := make([]engine.NewJob, 2+w.dice.IntN(3))
	sure, now := w.sure(), w.now()
	for i := range list {
		r := w.draft(false)
		if r.put.Key == "" { // else it must be the same again
			j := &r.put.Job
			j.Queue, j.Group = queue, group
			if j.Requires = nil; !w.oneIn(8) {
				j.Copies, j.ReadyAt, j.Extras = 1, 0, nil
				r.put.Create = nil
			}
			r.text = "put " + r.label + described(&r.put)
		}
		list[i] = r.put
		c.reqs = append(c.reqs, r)
		w.say("    %s", r)
	}
	added, err := []engine.Added(nil), error(nil)
	c.finish = func() string { return w.putAnswer(c, added, err, sure, now) }
	w.start(c, func() { added, err = w.e.Put(w.ctx, list) })
}

// takeTurns asks for turns of an inbox, and waits for them or not.
func (w *world) takeTurns() {
	queue := w.inbox()
	if len(w.turns) > 0 && w.oneIn(6) {
		w.askRest(pick(w, w.turns))
		return
	}
	if queue == "" && w.setup.inboxes && w.oneIn(4) {
		queue = pick(w, queueNames)
	}
	if queue == "" {
		if w.oneIn(3) {
			w.lease()
		} else {
			w.connect()
		}
		return
	}
	o := turn.Options{
		Queue: queue, Turns: 1 + w.dice.IntN(3), Members: pick(w, []int{0, 1, 2, 3, -1, -1, -1}),
		For: w.between(job.Second, 15*job.Second), Local: w.oneIn(2), Once: w.dice.IntN(3) > 0,
	}
	w.askTurns(o, nil)
}

// askRest asks for the rest of the batch of a turn.
func (w *world) askRest(t *turnInHand) {
	b := w.judge.begun[t.number]
	if b == nil {
		return
	}
	o := turn.Options{Queue: b.members[0].Queue, Members: pick(w, []int{1, 2, -1}), For: w.between(job.Second, 15*job.Second), Local: w.oneIn(2), Once: true, Behind: t.goesOn}
	w.askTurns(o, b)
}

// askTurns is one call, for the rest of the batch of a turn or, if that is nil, for
// any turns. It returns who asked.
func (w *world) askTurns(o turn.Options, behind *begun) *holder {
	w.names++
	o.Worker = fmt.Sprint("t", w.names)
	h := &holder{name: "u/" + o.Worker, kind: job.Unary, life: o.For, queues: []string{o.Queue}, turns: &o, behind: behind, got: map[job.Token]bool{}}
	if o.Local {
		h.name, h.kind, h.life = "a/"+o.Worker, job.Anonymous, 0
	}
	w.holders[h.name] = h
	w.say("    %s asks %s for %d turns of %d members, for %s, before %d, once %t", h.name, o.Queue, o.Turns, o.Members, h.life, o.Before, o.Once)
	ctx, cancel := context.WithCancel(w.ctx)
	var list []turn.Turn
	var err error
	sure, turns := w.sure(), w.judge.book.queue(o.Queue).Turns
	busy := behind != nil && slices.ContainsFunc(w.judge.book.sorted(), func(j *job.Job) bool { return member(behind.members[0], j) && len(j.Leases) > 0 })
	c := &call{waits: true, cancel: cancel, polls: h}
	c.finish = func() string {
		cancel()
		h.answered = true
		if h.gone = h.kind == job.Unary || len(list) == 0; len(list) == 0 && h.kind == job.Anonymous {
			delete(w.holders, h.name)
		}
		switch {
		case err != nil && sure && turns && !busy && !w.troubled && !errors.Is(err, engine.ErrStreamEnded):
			broken("answers", "%s was refused: %v", h.name, err)
		case err != nil:
			return w.refusal("turns", err, job.WrongState)
		case sure && !turns:
			broken("answers", "%s was given turns of %s, which has none", h.name, o.Queue)
		}
		return w.tookTurns(h, list, sure)
	}
	w.start(c, func() { list, err = w.e.Turns.Lease(ctx, o) })
	if !c.done.Load() && w.dice.IntN(3) > 0 {
		cancel()
	}
	w.settle()
	return h
}

// tookTurns judges what a call was given.
func (w *world) tookTurns(h *holder, list []turn.Turn, sure bool) string {
	groups, n := map[string]bool{}, 0
	for _, t := range list {
		if t.Number == 0 && len(t.Deliveries) != 1 || t.Number != 0 && groups[t.Group] || t.Queue != h.turns.Queue {
			broken("answers", "%s was given %d members of %s/%s in turn %d", h.name, len(t.Deliveries), t.Queue, t.Group, t.Number)
		}
		groups[t.Group] = t.Group != ""
		own := &turnInHand{number: t.Number, goesOn: t.Rest()}
		for _, d := range t.Deliveries {
			w.delivered(h, d)
			own.rest = append(own.rest, hand{d, h})
		}
		w.turns = append(w.turns, own)
		n += len(t.Deliveries)
	}
	w.turns = w.turns[max(0, len(w.turns)-12):]
	switch {
	case len(list) > max(h.turns.Turns, 1):
		broken("answers", "%s was given %d turns and asked for %d", h.name, len(list), h.turns.Turns)
	case len(list) == 0 && h.turns.Once && sure && w.sure():
		h.answered = false // it could have been given something
		for _, j := range w.judge.book.jobs {
			next := h.behind == nil && w.judge.unfit(h, h.name, j) == "" || h.behind != nil && j == w.judge.rest(h) && w.judge.unfitAlone(h, h.name, j) == ""
			if h.asks(j.Queue) && !w.judge.allOut() && !w.judge.earning(j) && next {
				broken("inbox.md 5", "%s was given nothing, and %s is there", h.name, w.judge.name(j.ID))
			}
		}
		h.answered = true
	}
	return fmt.Sprintf("took %d members in %d turns", n, len(list))
}

// deliver goes on with a turn: its next member is delivered, or was and fails.
func (w *world) deliver() {
	if len(w.turns) == 0 {
		w.settleOne()
		return
	}
	w.goOn(pick(w, w.turns))
}

func (w *world) goOn(t *turnInHand) {
	at := 0
	if len(t.rest) > 1 && w.oneIn(8) { // not in its turn
		at = 1
	}
	h := t.rest[at]
	t.rest = slices.Delete(t.rest, at, at+1)
	if len(t.rest) == 0 {
		w.turns = slices.DeleteFunc(w.turns, func(o *turnInHand) bool { return o == t })
	}
	w.hands = slices.DeleteFunc(w.hands, func(o hand) bool { return o.d.Lease.Token == h.d.Lease.Token })
	w.spent = append(w.spent, h)
	r := w.outcome(h)
	switch err := w.mayDeliver(h.d); {
	case errors.Is(err, turn.ErrExpired), errors.Is(err, turn.ErrOutOfLine):
		r.settle = engine.Settle{ID: h.d.Job.ID, Token: h.d.Lease.Token, Outcome: job.Released}
	case err == nil && w.oneIn(2):
		r.settle = engine.Settle{ID: h.d.Job.ID, Token: h.d.Lease.Token, Outcome: job.OK}
	}
	w.sendSettles(&call{reqs: []*request{r}})
}

// mayDeliver asks whether a member may still be delivered, and judges the answer.
func (w *world) mayDeliver(d engine.Delivery) error {
	if !w.sure() {
		return nil
	}
	err := w.e.Turns.MayDeliver(w.ctx, d.Job.ID, d.Lease.Token)
	j, law := w.judge.book.jobs[d.Job.ID], "inbox.md 9 and 10"
	if j == nil {
		if job.KindOf(err) != job.NotFound {
			broken(law, "%s is gone and may be delivered: %v", w.judge.name(d.Job.ID), err)
		}
		return err
	}
	aside := w.judge.aside(j)
	expired := j.ExpiresAt > 0 && j.ExpiresAt <= w.now()
	switch live := j.LeaseOf(d.Lease.Token) >= 0; {
	case !live && job.KindOf(err) != job.Superseded,
		live && expired && w.clock.Steady() >= w.excused && !errors.Is(err, turn.ErrExpired),
		live && !expired && aside != errors.Is(err, turn.ErrOutOfLine),
		live && !expired && !aside && err != nil:
		broken(law, "%s: live %t, expired %t, aside %t, and whether it may be delivered: %v", w.judge.name(j.ID), live, expired, aside, err)
	}
	if err != nil {
		w.judge.coverage.feature("may not be delivered: " + kindName(job.KindOf(err)))
	}
	return err
}

// runInbox is a whole run of a polled inbox: it visits each group that has something
// to do once, and leaves none.
func (w *world) runInbox() {
	queue := w.inbox()
	if queue == "" || !w.sure() || w.doomed > 0 {
		w.timePasses()
		return
	}
	var round int64
	var err error
	w.start(&call{finish: func() string {
		if err != nil {
			return w.refusal("round", err)
		}
		if round <= w.judge.seq {
			broken("core.md 4", "the run is number %d, and %d was drawn before", round, w.judge.seq)
		}
		w.judge.seq = round
		return fmt.Sprint("run ", round)
	}}, func() { round, err = w.e.Turns.Round(w.ctx) })
	w.settle()
	visits := map[string]int{}
	for w.sure() && err == nil {
		before := len(w.turns)
		h := w.askTurns(turn.Options{Queue: queue, Members: pick(w, []int{1, 2, -1}), Local: true, Before: round, Once: true}, nil)
		if len(h.got) == 0 || len(w.turns) != before+1 {
			break
		}
		t := w.turns[before]
		group := t.rest[0].d.Job.Group
		fair := w.judge.book.queue(queue).Protection.Fair
		if visits[group]++; fair != nil && visits[group] > fair.Weight(group) {
			broken("inbox.md 4 and 5", "a run visited group %q %d times", group, visits[group])
		}
		for len(t.rest) > 0 && w.sure() {
			w.goOn(t)
			w.settle()
		}
		if w.oneIn(2) && w.sure() {
			w.askRest(t)
		}
	}
	if len(visits) > 1 {
		w.judge.coverage.feature("a run of several groups")
	}
}
