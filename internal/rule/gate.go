package rule

import "github.com/reprisehq/reprise/internal/job"

// Group is what a store knows of a group when it asks where its gate stands.
type Group struct {
	Gate     *job.Gate // its row; blank if it has none
	Order    job.Order
	Limit    int  // live leases allowed, from the queue; 0 = no limit
	Live     int  // live leases of members
	Blockers int  // dead heads that hold the group
	First    *Pos // lowest place over all members, wherever they are
	Wanting  *Pos // lowest place over the members that want a holder
}

// Stands reports whether the gate stands in its queue's line, with the place
// of the member at Wanting. Otherwise the whole group is out of line, and
// none of its members was touched (core.md section 2).
func Stands(g Group) bool {
	switch {
	case g.Wanting == nil, g.Gate.Park != "", g.Gate.Hold > 0:
		return false
	case g.Order == job.OrderStrict:
		return g.Live == 0 && *g.Wanting == *g.First // I7: the head, which may be dead, and one turn at a time
	}
	return g.Blockers == 0 && (g.Limit == 0 || g.Live < g.Limit)
}

// HoldGate keeps a whole group out of line until a time.
func HoldGate(g *job.Gate, until job.Millis) *job.Gate {
	held := *g
	held.Hold = max(g.Hold, until)
	return &held
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

// ChangeQueue checks new settings of a queue against what stands in it.
func ChangeQueue(old, changed *job.Queue, grouped int) error {
	if changed.Order == job.OrderStrict && changed.Concurrency > 1 {
		return &job.Error{
			Kind: job.Invalid, Field: "concurrency",
			Text: "order strict means concurrency 1; use order start for more",
		}
	}
	if old.Order != changed.Order && grouped > 0 {
		return &job.Error{
			Kind: job.WrongState, Field: "order",
			Text: "the order of a queue can change only while no grouped job in it is open",
		}
	}
	return nil
}
