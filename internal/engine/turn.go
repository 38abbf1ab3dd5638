package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// TurnMax is the most members that one LeaseTurns gives out, and so the most of
// one turn.
const TurnMax = 1000

// TurnOptions describe one take of turns.
type TurnOptions struct {
	Worker  string     // "" = a name is made up
	Queue   string     // one whose groups are given out in turns (job.Queue.Turns)
	Turns   int        // of different groups, at most; 0 = 1
	Members int        // of each turn, at most; 0 = 1, negative = all that are there. TurnMax bounds all of them
	For     job.Millis // life of each lease without Extend; 0 = LeaseDefault

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
	While func(*Tx) error
}

// Turn is the right to deliver some members of a group, in their order. Each is
// settled by its own token. In a strict group they are settled in their order, and
// the first that fails or is released ends the turn: those behind it go back
// untouched, and their tokens are void. The next turn of the group begins when no
// member of this one is out.
type Turn struct {
	Queue, Group string
	Number       int64 // a fencing number: higher than that of every earlier turn; 0 = of a job without a group
	Deliveries   []Delivery

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

// LeaseTurns takes turns of groups that have something to do. It blocks until
// there is at least one, or ctx ends: then it answers nothing, without an error.
// WrongState says that the groups of the queue are not given out in turns.
func (e *Engine) LeaseTurns(ctx context.Context, o TurnOptions) ([]Turn, error) {
	o.Turns = min(max(o.Turns, 1), TurnMax)
	if o.Members = min(o.Members, TurnMax); o.Members == 0 {
		o.Members = 1
	} else if o.Members < 0 {
		o.Members = TurnMax
	}
	name := o.Worker
	if name == "" {
		name = fmt.Sprintf("%016x", e.rnd())
	}
	kind, prefix := job.Unary, unaryPrefix
	if o.Local {
		kind, prefix = job.Anonymous, anonymousPrefix
	}
	h := NewHolder(kind, prefix+name, StreamOptions{Queues: []string{o.Queue}})
	h.turns, h.Want, h.Key = &o, TurnMax, fmt.Sprintf("turns %q %d", o.Queue, o.Before)
	if o.Behind != nil {
		o.Once, h.Key = true, fmt.Sprintf("%s behind %d", h.Key, o.Behind.turn)
	}
	if h.life = o.For; h.life <= 0 {
		h.life = LeaseDefault
	}
	if o.Local {
		h.life = 0
	}
	list, err := e.Take(ctx, h, func(r *Tx) error {
		q, err := r.Queue(o.Queue)
		switch {
		case err != nil:
			return err
		case !q.Turns:
			return job.Errorf(job.WrongState, "the groups of queue %q are not given out in turns", o.Queue)
		}
		if err := r.mayGoOn(o.Queue, o.Behind); err != nil {
			return err
		}
		if o.While != nil {
			return o.While(r)
		}
		return nil
	})
	if o.Once && errors.Is(err, ErrStreamEnded) {
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
func turnsOf(list []Delivery) []Turn {
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

// Round returns a number for TurnOptions.Before: all groups that have something to
// do now were not served since.
func (e *Engine) Round(ctx context.Context) (int64, error) {
	var n int64
	if err := e.Do(ctx, 0, func(r *Tx) error { n = r.NextSeq(); return nil }); err != nil {
		return 0, err // n may still be written to
	}
	return n, nil
}

// feedTurns gives a holder that asks for turns as many as it wants, of up to n
// members in all.
func (r *Tx) feedTurns(h *Holder, n int) (took int, dry bool, err error) {
	if h.held+r.held[h] > 0 { // it has its answer
		return 0, false, nil
	}
	o := h.turns
	if o.Behind != nil {
		s, err := r.seeker(h)
		if err != nil {
			return 0, false, err
		}
		members, err := r.rest(s, o.Queue, o.Behind, min(o.Members, n))
		if err == nil {
			took, err = r.grantTurn(h, members, true)
		}
		return took, false, err
	}
	for turns := 0; turns < o.Turns && took < n; {
		s, err := r.seeker(h)
		if err != nil {
			return took, false, err
		}
		s.Turns, s.Members, s.Before = true, o.Members, o.Before
		heads, err := r.tx.Ready(h.Opts.Queues, s, min(o.Turns-turns, n-took))
		if err != nil || len(heads) == 0 {
			return took, s.Held == 0 && err == nil, err
		}
		before, aside := turns, r.aside
		for _, j := range heads {
			if took >= n {
				break
			}
			if j.Alone && took > 0 {
				continue
			}
			members, err := r.membersOf(j, min(o.Members, n-took))
			if err != nil {
				return took, false, err
			}
			given, err := r.grantTurn(h, members, took > 0)
			if took += given; err != nil {
				return took, false, err
			}
			if turns += oneIf(given > 0); j.Alone && given > 0 {
				return took, false, nil
			}
			if j.Group == "" { // given out, or put aside for a budget: the next one without a group was not among the heads
				break
			}
		}
		if r.aside >= asideMax { // the rest in the next run
			r.fed = true
			return took, false, nil
		}
		if turns == before && r.aside == aside {
			return took, false, nil
		}
	}
	return took, false, nil
}

// membersOf are those that have the turn that a member begins, at most n.
func (r *Tx) membersOf(head *job.Job, n int) ([]*job.Job, error) {
	if n <= 1 || head.Group == "" {
		return []*job.Job{head}, nil
	}
	wanting, err := r.tx.Wanting(head.Queue, head.Group, nil, n)
	if err != nil || head.Order != job.OrderStrict {
		return rule.TurnOf(wanting, nil), err
	}
	first, err := r.tx.Members(head.Queue, head.Group, n)
	return rule.TurnOf(wanting, first), err
}

// mayGoOn refuses the rest of a batch while a member of its latest turn is out.
func (r *Tx) mayGoOn(queue string, b *Rest) error {
	if b == nil {
		return nil
	}
	g, err := r.Gate(queue, b.group)
	if err != nil || g.Turn != b.turn {
		return err
	}
	out, err := r.tx.Running(queue, b.group, 1)
	if err == nil && len(out) > 0 {
		err = job.Errorf(job.WrongState, "turn %d of group %q goes on", b.turn, b.group)
	}
	return err
}

// rest is the next members of a batch, at most n: those that were there when it began
// and fit the seeker.
func (r *Tx) rest(s rule.Seeker, queue string, b *Rest, n int) (there []*job.Job, err error) {
	q, err := r.Queue(queue)
	if err != nil {
		return nil, err
	}
	g, err := r.Gate(queue, b.group)
	if err != nil || !rule.GoesOn(q, g, b.turn) {
		return nil, err
	}
	for last := b.last; len(there) < n; {
		page, err := r.tx.Wanting(queue, b.group, &last, n)
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
	first, err := r.tx.Members(queue, b.group, n)
	if err != nil || first[0] != there[0].ID {
		return nil, err
	}
	return rule.TurnOf(there, first), nil
}

// grantTurn leases the members of a turn, in their order, as far as limits let
// them run. more is whether others were given out since its head was found.
func (r *Tx) grantTurn(h *Holder, members []*job.Job, more bool) (given int, err error) {
	number := int64(0)
	for i, j := range members {
		if aside, err := r.PutAside(j); err != nil || aside {
			return given, err
		}
		if (more || i > 0) && r.e.parts.limited(r, j.Queue) {
			if lets, err := r.e.parts.lets(r, j); err != nil || !lets {
				return given, err
			}
		}
		if err := r.grant(h, j, number); err != nil {
			return given, err
		}
		given++
		number = r.gifts[len(r.gifts)-1].d.Lease.Turn
	}
	return given, nil
}

// dismiss answers those who do not wait and found nothing.
func (r *Tx) dismiss(waiting []*Holder) {
	for _, h := range waiting {
		if h.turns != nil && h.turns.Once && h.held+r.held[h] == 0 && !r.left[h] {
			r.left[h] = true
			r.ended = append(r.ended, h)
		}
	}
}

// cutTurn sends back the members of a turn that are behind one whose lease ended.
func (r *Tx) cutTurn(j *job.Job) error {
	ids, err := r.tx.Running(j.Queue, j.Group, TurnMax)
	if err != nil {
		return err
	}
	at := rule.EntriesOf(j).Inner
	for _, id := range ids {
		m, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if !at.Before(rule.EntriesOf(m).Inner) {
			continue
		}
		v, err := r.view(m, m.Queue, m.Group)
		if err != nil {
			return err
		}
		c := rule.Command{Verb: rule.Lapse, Holder: m.Leases[0].Holder, Ending: job.ByTurn}
		eff, err := rule.Step(v, c)
		if err != nil {
			return err
		}
		if err := r.write(m, eff); err != nil {
			return err
		}
		r.note(&c, m, &eff)
		if err := r.e.parts.stepped(r, &c, m, &eff); err != nil {
			return err
		}
		r.cut = append(r.cut, id)
	}
	return nil
}
