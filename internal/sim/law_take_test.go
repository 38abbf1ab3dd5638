package sim_test

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// taken is a lease that was granted. What is wrong with it is told at once,
// by the invariant it breaks.
func (s *scene) taken() *outcome {
	j, l := s.old.Clone(), s.new.Leases[len(s.new.Leases)-1]
	name := s.name(j.ID)
	o := &outcome{why: "a take by " + l.Holder, verb: rule.Take, want: j, state: job.Leased}
	h := s.w.holderOf(l.Holder)
	switch {
	case h == nil:
		broken("I2", "%s was given to %s, who did not ask", name, l.Holder)
	case h.gone:
		broken("I2", "%s was given to %s, who had gone", name, l.Holder)
	case s.token(l.Token):
		broken("I2", "the token of %s was given out before", name)
	case l.Token.IsZero() || l.Token.Start() != s.start:
		broken("I2", "the token of %s is of start %d, this is start %d", name, l.Token.Start(), s.start)
	case j.State == job.Ready && j.ReadyAt > s.now:
		broken("I6", "%s was given out at %d and is due at %d", name, s.now, j.ReadyAt)
	case j.State == job.Ready && j.ExpiresAt > 0 && j.ExpiresAt <= s.now && s.steady >= s.w.excused:
		broken("I6", "%s was given out at %d and expired at %d", name, s.now, j.ExpiresAt)
	case !h.asks(j.Queue):
		broken("I2", "%s is in queue %s and was given to %s, who asked for %v", name, j.Queue, l.Holder, h.queues)
	}
	joins := s.joins(h, j, l)
	switch {
	case joins != nil:
	case h.behind != nil:
		s.goesOn(h, j)
	default:
		s.begins(h, j, l)
	}
	s.roomFor(h, l)
	s.meter(j)
	s.spend(j)
	s.tokens[l.Token] = grant{s.epoch, s.number, s.q.NonIdempotent || j.Order == job.OrderStrict}

	want := job.Lease{Token: l.Token, Holder: l.Holder, Kind: h.kind, Since: s.now, Exclusive: j.Isolated}
	if h.life > 0 {
		want.Until, want.Length = s.steady+h.life, h.life
	}
	want.RunEnd = s.timer(j.RunTimeout, s.q.RunTimeout)
	want.StartBy = s.timer(j.StartTimeout, s.q.StartTimeout)
	s.hasTurn(o, &want, l, joins)
	if joins == nil {
		s.turned(o, j)
	}
	if j.Isolated {
		o.note("delivered alone")
	}
	if len(j.Requires) > 0 {
		o.note("required a property")
	}
	if j.State == job.Leased {
		o.note("a further copy")
	}
	o.stats.Taken = 1
	if p := knownOf(j); p != nil && j.State == job.Ready { // a new attempt knows the checkpoint only
		if setProgress(j, nil); p.Checkpoint != nil {
			setProgress(j, &job.RunProgress{Fraction: job.FractionUnset, Checkpoint: p.Checkpoint, At: p.At})
			o.note("begun at a checkpoint")
		}
	}
	j.State, j.DequeuedAt = job.Leased, s.now
	j.Deliveries++
	if j.FailedBesideCopy = j.FailedBesideCopy && len(j.Leases) > 0; !j.FailedBesideCopy {
		j.Wait = job.Wait{}
	}
	j.Leases = append(j.Leases, want)
	return o
}

// begins holds a start against the order of all lines: only the member of a turn
// that is not its first has another reason.
func (s *scene) begins(h *holder, j *job.Job, l job.Lease) {
	name := s.name(j.ID)
	if why := s.unfit(h, l.Holder, j); why != "" {
		broken("core.md 1 to 4", "%s was given to %s: %s", name, l.Holder, why)
	}
	for _, other := range s.book.jobs {
		if s.sooner(other, j) && !s.mates(other, j) && !s.earning(other) && h.asks(other.Queue) && s.unfit(h, l.Holder, other) == "" {
			broken("core.md 1", "%s was given to %s before %s, which stands before it", name, l.Holder, s.name(other.ID))
		}
	}
	if p := s.aloneBefore(h, j); p != nil && h.turns == nil && !s.earning(p) && !s.othersFor(h, p) {
		broken("core.md 5", "%s was given to %s, which must be emptied for %s: nobody else is", name, l.Holder, s.name(p.ID))
	}
	s.passOver(h, j)
}

func (x *judge) token(t job.Token) bool { _, seen := x.tokens[t]; return seen }

// roomFor holds deliveries to the prefetch of a stream, the size of a call and
// the limit of all.
func (s *scene) roomFor(h *holder, l job.Lease) {
	held, all := 0, 0
	for _, j := range s.book.jobs {
		all += len(j.Leases)
		if j.HeldBy(l.Holder) {
			held++
		}
	}
	if h.kind != job.Unary && h.prefetch > 0 && held >= h.prefetch {
		broken("I3", "%s holds %d jobs and got one more; its prefetch is %d", l.Holder, held, h.prefetch)
	}
	if limit := s.w.setup.inFlight; limit > 0 && all >= limit {
		broken("I3", "%d leases are live, the limit is %d, and %s got one more", all, limit, l.Holder)
	}
}

// before is the order of core.md 1.
func (b *judge) before(x, y *job.Job) bool {
	switch {
	case x.Priority != y.Priority:
		return x.Priority < y.Priority
	case x.Band != y.Band:
		return x.Band < y.Band
	case x.Seq != y.Seq:
		return x.Seq < y.Seq
	}
	return x.ID.Before(y.ID)
}

func wants(j *job.Job) bool {
	return j.Park == "" && (j.State == job.Ready || j.State == job.Leased && len(j.Leases) < int(j.CopiesWanted))
}

// unfit says why a holder may not be given a job now; "" = it may.
func (x *judge) unfit(h *holder, name string, j *job.Job) string {
	for _, other := range x.book.jobs {
		for _, l := range other.Leases {
			if l.Holder == name && (j.Isolated || l.Exclusive) {
				return "one of them must be alone"
			}
		}
	}
	return x.unfitFree(h, name, j)
}

// unfitFree says why a holder could not be given a job if it had no other.
func (x *judge) unfitFree(h *holder, name string, j *job.Job) string {
	switch why := x.unfitAlone(h, name, j); {
	case why != "":
		return why
	case x.visited(h, j):
		return "the run visited its group"
	case j.Group != "":
		return x.barred(j)
	}
	return ""
}

// unfitAlone is that without what its group has to do with it.
func (x *judge) unfitAlone(h *holder, name string, j *job.Job) string {
	if !wants(j) {
		return fmt.Sprintf("it is %s, parked %q, with %d of %d copies out", j.State, j.Park, len(j.Leases), j.CopiesWanted)
	}
	if q := x.book.queue(j.Queue); q.Paused || q.HoldUntil > 0 {
		return "its queue is paused or held"
	}
	if why := x.notInTurn(h, j); why != "" {
		return why
	}
	if why := x.shut(j); why != "" {
		return why
	}
	if j.HeldBy(name) {
		return "the holder runs it already"
	}
	if key := x.short(j); key != "" {
		return "budget " + key + " has not what it needs"
	}
	for _, r := range j.Requires {
		if (h.props[r.Property] == r.Value) != (r.Op == "=") {
			return "the holder does not meet " + r.Property + r.Op + r.Value
		}
	}
	return ""
}

// aloneBefore is the foremost job that must be alone and that the holder would
// be given before j, if it had nothing; nil if there is none.
func (x *judge) aloneBefore(h *holder, j *job.Job) (first *job.Job) {
	for _, p := range x.book.jobs {
		foremost := x.sooner(p, j) && (first == nil || x.sooner(p, first))
		if p.Isolated && foremost && h.asks(p.Queue) && x.unfitFree(h, h.name, p) == "" {
			first = p
		}
	}
	return first
}

// othersFor reports whether a holder besides h may be emptied for the job.
func (x *judge) othersFor(h *holder, p *job.Job) bool {
	for _, other := range x.w.holders {
		if other != h && !other.gone && other.asks(p.Queue) && x.unfitFree(other, other.name, p) == "" {
			return true
		}
	}
	return false
}

// barred is core.md 2: why the gate of its group does not stand for the job.
func (x *judge) barred(j *job.Job) string {
	q, g := x.book.queue(j.Queue), x.book.gate(j.Queue, j.Group)
	switch {
	case g.Park != "":
		return "its group is parked: " + g.Park
	case g.Hold > 0:
		return "its group is held"
	case g.Paused:
		return "its group is paused"
	}
	live, one := 0, q.Order == job.OrderStrict || q.Turns // head or nobody
	for _, other := range x.book.jobs {
		member := other.Queue == j.Queue && other.Group == j.Group && (other.State.Open() || other.BlocksGroup)
		if !member {
			continue
		}
		live += len(other.Leases)
		if other == j {
			continue
		}
		ahead := x.ahead(other, j)
		switch {
		case other.BlocksGroup && !one:
			return "its group has a dead head"
		case one && ahead:
			return "I7: " + x.name(other.ID) + " is before it in its group"
		case one && len(other.Leases) > 0:
			return "I7: " + x.name(other.ID) + " of its group is out"
		case ahead && wants(other):
			return x.name(other.ID) + " of its group goes first"
		}
	}
	limit := q.Concurrency
	if q.Order == job.OrderStrict {
		limit = 1
	}
	if limit > 0 && live >= limit {
		return fmt.Sprintf("%d members of its group are out, %d may be", live, limit)
	}
	return ""
}

// ahead is the order inside a group.
func (x *judge) ahead(a, b *job.Job) bool {
	if a.Order == job.OrderNone || b.Order == job.OrderNone {
		return x.before(a, b)
	}
	return sortOf(a) < sortOf(b) || sortOf(a) == sortOf(b) && a.ID.Before(b.ID)
}

// row holds a write of a row against the laws: times do not come early,
// numbers do not go back.
func (x *judge) row(c *commit, ch *change) {
	before := x.book.rows[rowKey{ch.table, ch.key}]
	switch ch.table {
	case job.Queues:
		old, _ := before.(*job.Queue)
		row, ok := ch.row.(*job.Queue)
		if !ok {
			broken("I1", "the settings of queue %s were dropped", ch.key)
		}
		if asked := x.changed(c, old, row); !asked && old != nil && old.HoldUntil > c.now && row.HoldUntil != old.HoldUntil && !x.heldLonger(old, row) {
			broken("I6", "the hold of queue %s ended at %d, before %d", ch.key, c.now, old.HoldUntil)
		}
	case job.Gates:
		old, _ := before.(*job.Gate)
		row, _ := ch.row.(*job.Gate)
		if old != nil && row != nil && (row.Turn < old.Turn || row.LastSeq < old.LastSeq && old.Turn != 0) {
			broken("I7", "the gate %q went back from %+v to %+v", ch.key, *old, *row)
		}
		if old != nil && old.Hold > c.now && (row == nil || row.Hold < old.Hold) {
			broken("I6", "the hold of group %q ended at %d, before %d", ch.key, c.now, old.Hold)
		}
		x.heldBack(c, old, row)
		x.pausedOrNot(c, ch.key, old, row)
		if old != nil && old.Park != "" && (row == nil || row.Park != old.Park) {
			broken("core.md 2", "group %q was let go and its dead head is there", ch.key)
		}
	case job.Replays:
		old, _ := before.(*job.Replay)
		row, _ := ch.row.(*job.Replay)
		x.replayed(c, old, row)
	case job.Audits:
		if before != nil && (ch.row != nil || before.Due() > c.now) {
			broken("retry.md 3", "an entry of the audit log was changed or dropped early: %+v", before)
		}
	case job.Credentials, job.DoorSettings, job.Sessions, job.Affinities, job.Cursors:
	case job.Locks:
		old, _ := before.(*job.Lock)
		row, _ := ch.row.(*job.Lock)
		x.lockRow(c, old, row)
	case job.Budgets:
		x.budgetRow(ch)
	case job.CronEntries:
		old, _ := before.(*job.CronEntry)
		row, _ := ch.row.(*job.CronEntry)
		x.cron(c, old, row)
	case job.CronGroups:
		old, _ := before.(*job.CronGroup)
		row, _ := ch.row.(*job.CronGroup)
		x.cronGroupAsked(c, old, row)
	case job.Marks:
		x.marked(c, ch)
	case job.Receipts:
		old, _ := before.(*job.Receipt)
		if old != nil && old.Expires > c.now {
			broken("core.md 7", "a receipt was dropped or replaced at %d, it holds until %d", c.now, old.Expires)
		}
	case job.Reserves:
		old, _ := before.(*job.Reserve)
		row, ok := ch.row.(*job.Reserve)
		if ch.key == "clock skew" {
			return // follows the date, both ways
		}
		if !ok || old != nil && row.Next <= old.Next {
			broken("core.md 4", "the reserve %s went from %+v to %+v", ch.key, old, row)
		}
		if ok && ch.key == "start" {
			x.start = uint32(row.Next - 1)
		}
	case job.Holders:
		old, _ := before.(*job.Holder)
		if old != nil && ch.row == nil && x.holds(ch.key) {
			broken("I1", "%s was forgotten and holds leases", ch.key)
		}
		x.engineRow(old, ch)
	case job.Throttles:
		queue, group, _ := strings.Cut(ch.key, "\x00")
		old, row := x.book.throttle(queue, group), job.Throttle{Queue: queue, Group: group}
		if t, ok := ch.row.(*job.Throttle); ok {
			row = *t
		}
		x.throttle(c, old, row)
	case job.Tables:
	}
}

func (x *judge) holds(holder string) bool {
	for _, j := range x.book.jobs {
		if j.HeldBy(holder) {
			return true
		}
	}
	return false
}

// changed finds who asked for new settings of a queue.
func (x *judge) changed(c *commit, old, row *job.Queue) bool {
	for _, r := range x.asked {
		if r.kind != askQueue || r.name != row.Name || r.commit > 0 || r.lost {
			continue
		}
		q := *job.NewQueue(row.Name)
		if old != nil {
			q = *old
		}
		if r.edit(&q); reflect.DeepEqual(&q, row) { // what a row points to is another after the store was opened again
			r.commit = c.number
			return true
		}
	}
	return false
}

// heldBack finds who asked for the hold of a group.
func (x *judge) heldBack(c *commit, old, row *job.Gate) {
	if row == nil || row.Hold == 0 || old != nil && row.Hold == old.Hold {
		return
	}
	for _, r := range x.asked {
		if r.kind == askGroup && r.name == row.Key() && r.commit == 0 && !r.lost && r.until == row.Hold {
			r.commit = c.number
			return
		}
	}
	broken("I1", "the group %q is held until %d and nobody asked for it", row.Key(), row.Hold)
}
