package rule

import (
	"github.com/reprisehq/reprise/internal/job"
)

// Group is what a store knows of a group when it asks where its gate stands.
type Group struct {
	Gate     *job.Gate     // its row; blank if it has none
	Throttle *job.Throttle // nil if nothing slows it down
	Order    job.Order
	Turns    bool // it is given out in turns
	Limit    int  // live leases allowed, from the queue; 0 = no limit
	Live     int  // live leases of members
	Blockers int  // dead heads that hold the group
	First    *Pos // lowest place over all members, wherever they are
	Wanting  *Pos // lowest place over the members that want a holder
}

// Stands reports whether the gate stands in its queue's line, with the place
// of the member at Wanting. Otherwise the whole group is out of line, and
// none of its members was touched (core.md section 2). A strict group, and one
// that is given out in turns, stands while nothing of it runs and its head wants
// a holder: a head that waits, is paused or died without leaving blocks it.
func Stands(g Group) bool {
	switch {
	case g.Wanting == nil, Aside(g.Gate), Throttled(g.Throttle):
		return false
	case headFirst(g.Order, g.Turns):
		return g.Live == 0 && *g.Wanting == *g.First // I7: the head, which may be dead, and one turn at a time
	}
	return g.Blockers == 0 && (g.Limit == 0 || g.Live < g.Limit)
}

// headFirst reports whether the members of a group wait until its head has gone.
func headFirst(order job.Order, turns bool) bool { return order == job.OrderStrict || turns }

// Throttled reports whether a breaker or a rate lets nothing more of a queue or a group
// run now; t may be nil.
func Throttled(t *job.Throttle) bool { return t != nil && (t.Slow > 0 || Lets(t) == 0) }

// Stand is where a member stands in line for its gate, or a job without a
// group for itself, whose gate is that of group "". In a fair queue a gate has a
// place in the round, behind all that wait when the group was served, and nobody of
// the group stands before it. Jobs without a group that stand at that place are equal
// there, and ordered by their own places.
func Stand(q *job.Queue, g *job.Gate, p Pos) Pos {
	if q.Protection.Fair == nil || g.Place == 0 {
		return p
	}
	if g.Group == "" && g.Place > p.Seq {
		p.ID = job.ID{}
	}
	p.Seq = max(p.Seq, g.Place)
	return p
}

// served counts a start of a group of a fair queue. Who has had as many in this round as
// its weight says goes to the end of the round.
func served(v View, g *job.Gate) {
	if g.Served++; g.Served >= v.Queue.Protection.Fair.Weight(g.Group) {
		g.Served, g.Place = 0, v.Seq()
	}
}

// HoldGate keeps a whole group out of line until a time.
func HoldGate(g *job.Gate, until job.Millis) *job.Gate {
	held := *g
	held.Hold = max(g.Hold, until)
	return &held
}

// HoldMax is the longest hold (hold_max).
const HoldMax = job.Hour

// HoldUntil is when a hold ends that was asked for until a time: up to a tenth
// later, so that not all who wait for one target return at once, and at most
// HoldMax from now. random is from [0, 1).
func HoldUntil(now, until job.Millis, random float64) job.Millis {
	span := max(until-now, 1)
	span += job.Millis(random * float64(span/10+1))
	return now.Add(min(span, HoldMax))
}

// WakeGate ends a hold that is over; before its end it is an error (I6).
func WakeGate(g *job.Gate, now job.Millis) (*job.Gate, error) {
	if g.Hold == 0 || g.Hold > now {
		return nil, job.Errorf(job.WrongState, "the hold of group %q is not over", g.Group)
	}
	awake := *g
	awake.Hold = 0
	return &awake, nil
}

// WakeQueue ends a hold that is over; before its end it is an error (I6).
func WakeQueue(q *job.Queue, now job.Millis) (*job.Queue, error) {
	if q.HoldUntil == 0 || q.HoldUntil > now {
		return nil, job.Errorf(job.WrongState, "the hold of queue %q is not over", q.Name)
	}
	awake := *q
	awake.HoldUntil = 0
	return &awake, nil
}

// ChangeQueue checks new settings of a queue against what stands in it: so many
// members of groups.
func ChangeQueue(old, changed *job.Queue, grouped int) error {
	if changed.Order == job.OrderStrict && changed.Concurrency > 1 {
		return &job.Error{
			Kind: job.Invalid, Field: "concurrency",
			Text: "order strict means concurrency 1; use order start for more",
		}
	}
	if changed.Turns && (changed.Order == job.OrderNone || changed.Order == job.OrderStart && changed.Concurrency != 1 || changed.Protection.Fair == nil) {
		return &job.Error{
			Kind: job.Invalid, Field: "order",
			Text: "a queue whose groups are given out in turns needs order strict, or order start with concurrency 1, and a fair share",
		}
	}
	if (old.Grid == nil) != (changed.Grid == nil) {
		return &job.Error{
			Kind: job.WrongState, Field: "queue",
			Text: "a queue cannot become a session, nor a session a queue; open a session, or delete it",
		}
	}
	if err := CheckSession(changed); err != nil {
		return err
	}
	if changed.OnFull == job.FullDropOldest && !mayDrop(changed) && old.OnFull != changed.OnFull {
		return &job.Error{
			Kind: job.Unprocessable, Field: "on_full",
			Text: "on_full of a session and of an inbox is reject: without the oldest, a session would lose a task, and a group of an inbox its order",
		}
	}
	if old.Order != changed.Order && grouped > 0 {
		return &job.Error{
			Kind: job.WrongState, Field: "order",
			Text: "the order of a queue can change only while no grouped job in it is open, or dead and in the way of its group",
		}
	}
	return nil
}

// mayDrop reports whether a full queue may push its oldest job out.
func mayDrop(q *job.Queue) bool { return !q.Turns && q.Grid == nil }

// KeepsInbox refuses to change settings of the queue of an inbox that the inbox says.
func KeepsInbox(old, changed *job.Queue) error {
	if !old.Turns {
		return nil
	}
	for _, c := range claims[:inboxKeeps] {
		if c.differs(old, changed) {
			return &job.Error{Kind: job.Invalid, Field: c.name, Text: c.name + " of this queue is a matter of its inbox; set it with PUT /inboxes/" + old.Name}
		}
	}
	return nil
}

// CheckSession refuses settings that a session cannot have; other queues pass.
func CheckSession(q *job.Queue) error {
	switch {
	case q.Grid == nil:
		return nil
	case q.Turns:
		return &job.Error{Kind: job.Exists, Field: "name", Text: "there is a session of this name; an inbox needs one of its own"}
	case q.Order != job.OrderNone || q.Concurrency != 0 || q.Protection != (job.Protection{}):
		return job.Errorf(job.Invalid, "a session has neither order nor concurrency nor protection; use max_engines and weights")
	}
	return nil
}
