// Package turn is the part that gives out the members of groups in turns (core.md section
// 2; correlate.md): a turn is the right to deliver some members of one group, in their
// order.
//
// It has no rows and no memory of its own: turns are numbered in the gates of groups and in
// leases, and what follows the end of a member is decided by rules, in the engine.
package turn

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Turns gives out turns.
type Turns struct{ engine *engine.Engine }

// Join implements engine.Part.
func (t *Turns) Join(e *engine.Engine) engine.Hooks {
	t.engine = e
	return engine.Hooks{}
}

// Options describe one take of turns.
type Options struct {
	Worker  string     // "" = a name is made up
	Queue   string     // one whose groups are given out in turns (job.Queue.Turns)
	Turns   int        // of different groups, at most; 0 = 1
	Members int        // of each turn, at most; 0 = 1, negative = all that are there. rule.TurnMax bounds all of them
	For     job.Millis // life of each lease without Extend; 0 = engine.LeaseDefault

	// Local: the holder is part of this process. Its leases have no end of their
	// own; a restart ends them, and nobody is blamed. For is not looked at.
	Local bool
	// Before: only groups that were not served since Round returned this number,
	// so that a run visits each group at most once. 0 = any.
	Before int64
	// Behind: only the next members of this batch, as one turn, without a wait and
	// whatever Before says. There are none when the batch is at its end, or its group
	// had another turn since; WrongState: its latest turn goes on. nil = any turn.
	Behind *Rest
	// Once: does not wait, and answers nothing if there is nothing now.
	Once bool
	// While may refuse the call when it begins, so it belongs to Once; nil = it does not.
	While func(*engine.Tx) error
}

// Turn is the right to deliver some members of a group, in their order. Each is
// settled by its own token. In a strict group they are settled in their order, and
// the first that fails or is released ends the turn: those behind it go back
// untouched, and their tokens are void. The next turn of the group begins when no
// member of this one is out.
type Turn struct {
	Queue, Group string
	Number       int64 // a fencing number: higher than that of every earlier turn; 0 = of a job without a group
	Deliveries   []engine.Delivery

	batch int64 // number of the first turn of the batch
}

// Rest is where a batch goes on: behind a turn of it.
type Rest struct {
	group       string
	batch, turn int64
	last        rule.Pos // of the latest member
}

// Begins reports whether the turn is the first of its batch.
func (t *Turn) Begins() bool { return t.batch == t.Number }

// Rest is where the batch of a turn goes on.
func (t *Turn) Rest() *Rest {
	return &Rest{t.Group, t.batch, t.Number, rule.EntriesOf(t.Deliveries[len(t.Deliveries)-1].Job).Inner}
}

// Lease takes turns of groups that have something to do. It blocks until
// there is at least one, or ctx ends: then it answers nothing, without an error.
// WrongState says that the groups of the queue are not given out in turns.
func (t *Turns) Lease(ctx context.Context, o Options) ([]Turn, error) {
	o.Turns = min(max(o.Turns, 1), rule.TurnMax)
	if o.Members = min(o.Members, rule.TurnMax); o.Members == 0 {
		o.Members = 1
	} else if o.Members < 0 {
		o.Members = rule.TurnMax
	}
	kind := job.Unary
	if o.Local {
		kind = job.Anonymous
	}
	h := t.engine.NewCaller(kind, o.Worker, o.For, engine.StreamOptions{Queues: []string{o.Queue}})
	h.Feeder, h.Want, h.Once, h.Key = &feeder{&o}, rule.TurnMax, o.Once, fmt.Sprintf("turns %q %d", o.Queue, o.Before)
	if o.Behind != nil {
		h.Once, h.Key = true, fmt.Sprintf("%s behind %d", h.Key, o.Behind.turn)
	}
	list, err := t.engine.Take(ctx, h, func(tx *engine.Tx) error {
		q, err := tx.Queue(o.Queue)
		switch {
		case err != nil:
			return err
		case !q.Turns:
			return job.Errorf(job.WrongState, "the groups of queue %q are not given out in turns", o.Queue)
		}
		if err := mayGoOn(tx, o.Queue, o.Behind); err != nil {
			return err
		}
		if o.While != nil {
			return o.While(tx)
		}
		return nil
	})
	if h.Once && errors.Is(err, engine.ErrStreamEnded) {
		return nil, nil
	}
	turns := turnsOf(list)
	for i := range turns {
		turns[i].batch = turns[i].Number
		if o.Behind != nil {
			turns[i].batch = o.Behind.batch
		}
	}
	return turns, err
}

// turnsOf puts the members of each turn together.
func turnsOf(list []engine.Delivery) []Turn {
	var out []Turn
	for _, d := range list {
		last := len(out) - 1
		if last < 0 || d.Lease.Turn == 0 || out[last].Number != d.Lease.Turn {
			out = append(out, Turn{Queue: d.Job.Queue, Group: d.Job.Group, Number: d.Lease.Turn})
			last++
		}
		out[last].Deliveries = append(out[last].Deliveries, d)
	}
	return out
}

// Round returns a number for Options.Before: all groups that have something to
// do now were not served since.
func (t *Turns) Round(ctx context.Context) (int64, error) {
	return engine.Ask(ctx, t.engine, func(tx *engine.Tx) (int64, error) { return tx.NextSeq(), nil })
}

// feeder is the engine.Feeder of one call.
type feeder struct{ o *Options }

// Room implements engine.Feeder.
func (f *feeder) Room(tx *engine.Tx, h *engine.Holder) int { return h.Want - tx.Has(h) }

// Lease implements engine.Feeder.
func (f *feeder) Lease(*engine.Tx, *engine.Holder, *job.Queue, *job.Job, *job.Lease) (job.Millis, error) {
	return 0, nil
}

// Left implements engine.Feeder: a call has no stream.
func (f *feeder) Left(*engine.Tx, *engine.Holder, job.Ending) error { return nil }

// Feed implements engine.Feeder: as many turns as the call wants, of up to n members in
// all.
func (f *feeder) Feed(tx *engine.Tx, h *engine.Holder, n int) (took int, dry bool, err error) {
	if tx.Has(h) > 0 { // it has its answer
		return 0, false, nil
	}
	s, err := tx.Seeker(h)
	if err != nil {
		return 0, false, err
	}
	if f.o.Behind != nil {
		members, err := rest(tx, s, f.o.Queue, f.o.Behind, min(f.o.Members, n))
		if err != nil {
			return 0, false, err
		}
		took, _, err = grantTurn(tx, h, members, true)
		return took, false, err
	}
	for turns := 0; turns < f.o.Turns && took < n; {
		if s, err = tx.Seeker(h); err != nil {
			return took, false, err
		}
		s.Turns, s.Members, s.Before = true, f.o.Members, f.o.Before
		heads, err := tx.Store().Ready(h.Opts.Queues, s, min(f.o.Turns-turns, n-took))
		if err != nil || len(heads) == 0 {
			return took, s.Held == 0 && err == nil, err
		}
		r, err := f.round(tx, h, heads, took, n)
		took, turns = took+r.took, turns+r.turns
		if err != nil || r.full || tx.AsideEnough() || r.turns == 0 && !r.aside {
			return took, false, err
		}
	}
	return took, false, nil
}

// round is what one look at the heads of groups came to.
type round struct {
	took, turns int
	full        bool // with a member that must be alone
	aside       bool // a job was put aside
}

// round gives a holder that took some members the turns of these heads.
func (f *feeder) round(tx *engine.Tx, h *engine.Holder, heads []*job.Job, took, n int) (r round, err error) {
	for _, j := range heads {
		if took+r.took >= n {
			break
		}
		if j.Isolated && took+r.took > 0 {
			continue
		}
		members, err := membersOf(tx, j, min(f.o.Members, n-took-r.took))
		if err != nil {
			return r, err
		}
		given, aside, err := grantTurn(tx, h, members, took+r.took > 0)
		r.took, r.aside = r.took+given, r.aside || aside
		if given > 0 {
			r.turns++
			r.full = j.Isolated
		}
		if err != nil || r.full {
			return r, err
		}
		if j.Group == "" { // given out, or put aside for a budget: the next one without a group was not among the heads
			break
		}
	}
	return r, nil
}

// membersOf are those that have the turn that a member begins, at most n.
func membersOf(tx *engine.Tx, head *job.Job, n int) ([]*job.Job, error) {
	if n <= 1 || head.Group == "" {
		return []*job.Job{head}, nil
	}
	wanting, err := tx.Store().Wanting(head.Queue, head.Group, nil, n)
	if err != nil || head.Order != job.OrderStrict {
		return rule.TurnOf(wanting, nil), err
	}
	first, err := tx.Store().IDs(store.Members(head.Queue, head.Group), n)
	return rule.TurnOf(wanting, first), err
}

// mayGoOn refuses the rest of a batch while a member of its latest turn is out.
func mayGoOn(tx *engine.Tx, queue string, b *Rest) error {
	if b == nil {
		return nil
	}
	g, err := tx.Gate(queue, b.group)
	if err != nil || g.Turn != b.turn {
		return err
	}
	out, err := tx.Store().IDs(store.Running(queue, b.group), 1)
	if err == nil && len(out) > 0 {
		err = job.Errorf(job.WrongState, "turn %d of group %q goes on", b.turn, b.group)
	}
	return err
}

// rest is the next members of a batch, at most n: those that were there when it began
// and fit the seeker.
func rest(tx *engine.Tx, s rule.Seeker, queue string, b *Rest, n int) (there []*job.Job, err error) {
	q, err := tx.Queue(queue)
	if err != nil {
		return nil, err
	}
	g, err := tx.Gate(queue, b.group)
	if err != nil || !rule.GoesOn(q, g, b.turn) {
		return nil, err
	}
	for last := b.last; len(there) < n; {
		page, err := tx.Store().Wanting(queue, b.group, &last, n)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, j := range page {
			if j.Seq < b.batch && rule.Fits(rule.EntriesOf(j).Class, j.Requires, s) {
				there = append(there, j)
			}
		}
		last = rule.EntriesOf(page[len(page)-1]).Inner
	}
	there = there[:min(n, len(there))]
	if q.Order != job.OrderStrict || len(there) == 0 {
		return rule.TurnOf(there, nil), nil
	}
	first, err := tx.Store().IDs(store.Members(queue, b.group), n)
	return rule.TurnOf(there, first), err
}

// grantTurn leases the members of a turn, in their order, as far as limits let them run,
// or to one that is put aside. more is whether others were given out since its head was
// found.
func grantTurn(tx *engine.Tx, h *engine.Holder, members []*job.Job, more bool) (given int, aside bool, err error) {
	number := int64(0)
	for i, j := range members {
		if aside, err := tx.PutAside(j); err != nil || aside {
			return given, aside, err
		}
		if more || i > 0 {
			if lets, err := tx.OneMore(j); err != nil || !lets {
				return given, false, err
			}
		}
		if number, err = tx.Grant(h, j, number); err != nil {
			return given, false, err
		}
		given++
	}
	return given, false, nil
}
