package rule

import "github.com/reprisehq/reprise/internal/job"

// A turn is one number on the gate over the members given out (core.md section
// 2). Each is settled by its own token. In a strict group they are done in their
// order: an OK for one behind another that runs is refused, and when one ends
// otherwise than by an OK, all behind it go back untouched. A group without that
// order goes on to the end of its turn.

// TurnMax is the most members that are given out at once, and so the most of one turn.
const TurnMax = 1000

// joinTurn gives the lease of a member the number of its turn: a new one, or that of
// the running turn it joins.
func joinTurn(v View, joins int64, j *job.Job, l *job.Lease, e *Effect) {
	if v.Gate == nil || j.Group == "" || j.Order != job.OrderStrict && !v.Queue.Turns {
		return
	}
	g := *v.Gate
	if joins == 0 {
		g.Turn = v.Seq() // a fencing number: it must not start again after the group was empty
	}
	l.Turn = g.Turn
	if j.Order == job.OrderStrict {
		at, first := SortOf(j), v.Gate.Turn == 0
		e.OutOfOrder = !first && at < g.LastSeq
		if joins == 0 && (first || at > g.LastSeq) {
			g.LastSeq = at
		}
	}
	if g != *v.Gate {
		e.Gate = &g
	}
}

// noteDelivered notes that a member of a strict turn was delivered. Its first one counts
// as delivered with its lease; those behind it only when they are settled, because
// one that goes back untouched was not, and puts nobody out of order.
func noteDelivered(v View, verb Verb, e *Effect) {
	if v.Gate == nil || v.Job == nil || v.Job.Order != job.OrderStrict || verb == SettleRelease || !isSettle(verb) {
		return
	}
	at := SortOf(v.Job)
	if at <= v.Gate.LastSeq {
		return
	}
	e.gate(v).LastSeq = at
}

// cuts reports whether a step sends back the members of a strict turn that are behind
// the job (fail_first): its lease ended otherwise than by an OK. One that is given back
// because it expired, or that an operator takes out, leaves the rest as it is.
func cuts(v View, verb Verb, e *Effect) bool {
	if len(e.Ended) == 0 || v.Job.Order != job.OrderStrict || e.Ended[0].Turn == 0 {
		return false
	}
	expired := v.Job.ExpiresAt > 0 && v.Job.ExpiresAt <= v.Now
	switch verb {
	case SettleRetry, SettleDead:
		return true
	case SettleRelease:
		return !expired
	case Lapse:
		recalled := len(e.Voided) > 0 && e.Voided[0].How == job.ByTurn
		return !recalled || !expired
	default:
		return false
	}
}

// Joins reports whether a member that wants a holder may run in the turn of its
// head. What must be delivered alone, waits for a budget or needs another holder
// has a turn of its own.
func Joins(head, j *job.Job) bool {
	return !head.Isolated && !j.Isolated && j.Budgets() == nil && Canonical(head.Requires) == Canonical(j.Requires)
}

// TurnOf is which of the members that want a holder, in their order, have the
// turn that the first of them begins. first are the foremost members of the group,
// whatever they do, as many as there are of the others or more. In a strict group
// the turn ends before the first one that does not want a holder, and there is none if
// that is the head; else those are passed by.
func TurnOf(wanting []*job.Job, first []job.ID) []*job.Job {
	if len(wanting) == 0 {
		return nil
	}
	head := wanting[0]
	if head.Order == job.OrderStrict && (len(first) == 0 || first[0] != head.ID) {
		return nil
	}
	members := wanting[:1:1]
	for i, j := range wanting[1:] {
		strict := j.Order == job.OrderStrict
		switch {
		case strict && (len(first) <= i+1 || first[i+1] != j.ID || !Joins(head, j)):
			return members
		case Joins(head, j):
			members = append(members, j)
		}
	}
	return members
}

// GoesOn reports whether the batch of a turn may go on with its next members: no
// other turn of the group was begun since, and neither it nor its queue was paused
// or held. A batch is what was there when it began: it goes on behind a failure, also
// where that one keeps the group out of line (inbox.md, decisions 1 to 3).
func GoesOn(q *job.Queue, g *job.Gate, turn int64) bool {
	return Open(q) && q.Turns && g.Turn == turn && !Aside(g)
}

// Aside reports whether a group is kept out of line: paused, parked or held.
func Aside(g *job.Gate) bool { return g.Paused || g.Park != "" || g.Hold > 0 }

// NeedsHead reports whether a step on the job needs to know if it is the head of its
// group: it may park the group, or be settled late.
func NeedsHead(q *job.Queue, j *job.Job) bool {
	return q.OnDead == job.DeadPark || j.Order == job.OrderStrict && len(j.Leases) == 0 && len(j.Ended) > 0
}

func errBehind(j *job.Job) *job.Error {
	return job.Errorf(job.WrongState, "job %s is behind another member of its turn that still runs; settle the members of a turn in their order", j.ID)
}

// The words of MayDeliver.
var (
	ErrExpired   = job.Errorf(job.WrongState, "it expired before its delivery began; release it")
	ErrOutOfLine = job.Errorf(job.WrongState, "it, its group or its queue was paused or held meanwhile; release it")
)

// MayDeliver reports whether a member of a turn may still be delivered: its token
// is live, it did not expire, and nobody paused or held it, its group or its queue
// since the turn began. outdates is whether expiry counts now; gate may be nil.
func MayDeliver(q *job.Queue, g *job.Gate, j *job.Job, t job.Token, now job.Millis, outdates bool) error {
	switch {
	case j.LeaseOf(t) < 0:
		return superseded(j)
	case outdates && j.ExpiresAt > 0 && j.ExpiresAt <= now:
		return ErrExpired
	case !Open(q), j.Park != "", g != nil && Aside(g):
		return ErrOutOfLine
	}
	return nil
}
