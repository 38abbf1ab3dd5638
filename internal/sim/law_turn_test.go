package sim_test

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// The laws of turns (core.md 2, inbox.md 1 to 7, docs/adr/0006), written without
// package rule.

const turnLaw = "I7, inbox.md 1 to 4"

// turnBook is what is known of turns.
type turnBook struct {
	begun map[int64]*begun  // by number; never taken back
	moved map[int64]bool    // a worker settled a member of it
	fresh []*begun          // those of the commit at hand
	cuts  map[job.ID]job.ID // who must go back in the commit at hand, and behind whom
}

// begun is a turn as it was given out.
type begun struct {
	number  int64
	h       *holder
	members []*job.Job // as they were before
	batch   int64      // number of the first turn of its batch
	seq     int64      // the latest number drawn by then
	at      job.Millis
}

func newTurnBook() turnBook {
	return turnBook{begun: map[int64]*begun{}, cuts: map[job.ID]job.ID{}, moved: map[int64]bool{}}
}

// sortOf is the place of a member in a group with an order.
func sortOf(j *job.Job) int64 {
	if j.Ranked {
		return j.Rank
	}
	return j.Seq
}

func noTurns(q *job.Queue) bool {
	return q.Turns && (q.Order == job.OrderNone || q.Order == job.OrderStart && q.Concurrency != 1 || q.Protection.Fair == nil)
}

func member(of, j *job.Job) bool {
	return j.Queue == of.Queue && j.Group == of.Group && of.Group != "" && (j.State.Open() || j.BlocksGroup)
}

// notInTurn says why who asks for jobs does not get one that comes in turns, or the
// other way round; "" = the holder may have it.
func (x *judge) notInTurn(h *holder, j *job.Job) string {
	switch turns := x.book.queue(j.Queue).Turns; {
	case turns && h.turns == nil:
		return "its queue is given out in turns"
	case !turns && h.turns != nil:
		return "its queue is not given out in turns"
	case turns && h.answered:
		return "the call was answered"
	}
	return ""
}

// visited reports whether a run had its start of the group of a job.
func (x *judge) visited(h *holder, j *job.Job) bool {
	return h.turns != nil && h.turns.Before > 0 && x.stand(j).seq >= h.turns.Before
}

// headOf is the first member of the group of a job.
func (x *judge) headOf(of *job.Job) job.ID {
	first := of
	for _, j := range x.book.jobs {
		if member(of, j) && x.ahead(j, first) {
			first = j
		}
	}
	return first.ID
}

// followsOne reports whether the job runs in a strict turn behind another that runs.
func (s *scene) followsOne() bool {
	if s.old.Order != job.OrderStrict || len(s.old.Leases) == 0 {
		return false
	}
	for _, j := range s.book.jobs {
		if member(s.old, j) && len(j.Leases) > 0 && s.ahead(j, s.old) {
			return true
		}
	}
	return false
}

// fellows reports whether two members may run in one turn.
func fellows(head, j *job.Job) bool {
	return !head.Isolated && !j.Isolated && len(j.Budgets()) == 0 && slices.Equal(head.Requires, j.Requires)
}

// joins is the turn that a member was given out in behind others, nil if it is the
// first of one, or has none. It must be the next one in the order of its group.
func (s *scene) joins(h *holder, j *job.Job, l job.Lease) *begun {
	if h.turns == nil || j.Group == "" {
		return nil
	}
	at := slices.IndexFunc(s.fresh, func(b *begun) bool { return b.number == l.Turn })
	if at < 0 {
		return nil
	}
	b, name := s.fresh[at], s.name(j.ID)
	last := b.members[len(b.members)-1]
	switch why := s.unfitAlone(h, l.Holder, j); {
	case b.h != h || !member(last, j):
		broken(turnLaw, "%s was given to %s in turn %d, which is of %s and another group", name, l.Holder, l.Turn, b.h.name)
	case why != "":
		broken("core.md 1 to 4", "%s was given to %s: %s", name, l.Holder, why)
	case !fellows(b.members[0], j):
		broken(turnLaw, "%s was given out in a turn with %s, and must not be", name, s.name(b.members[0].ID))
	case h.turns.Members >= 0 && len(b.members) >= max(h.turns.Members, 1):
		broken(turnLaw, "turn %d has %d members, and so many were asked for", l.Turn, len(b.members)+1)
	case s.ahead(j, last):
		broken(turnLaw, "%s was given out behind %s, and stands before it", name, s.name(last.ID))
	}
	if next := s.next(b); next == nil || next.ID != j.ID {
		broken(turnLaw, "%s was given out behind %s, and the next one is %v", name, s.name(last.ID), next)
	}
	b.members = append(b.members, j)
	s.coverage.feature("a turn of several")
	return b
}

// next is the member that must follow in a turn, if limits let it; nil if none may.
func (x *judge) next(b *begun) (next *job.Job) {
	head, last := b.members[0], b.members[len(b.members)-1]
	strict := last.Order == job.OrderStrict
	for _, j := range x.book.jobs {
		given := slices.ContainsFunc(b.members, func(m *job.Job) bool { return m.ID == j.ID })
		may := wants(j) && fellows(head, j) && !given && (b.h.behind == nil || j.Seq < b.batch)
		if member(last, j) && x.ahead(last, j) && (strict || may) && (next == nil || x.ahead(j, next)) {
			next = j
		}
	}
	if next != nil && (!wants(next) || !fellows(head, next) || b.h.behind != nil && next.Seq >= b.batch) {
		return nil
	}
	return next
}

// rest is the member with which a batch goes on behind a turn of it; nil if it does
// not. A batch is what was there when it began, whatever came of those before.
func (x *judge) rest(h *holder) (next *job.Job) {
	b := h.behind
	last := b.members[len(b.members)-1]
	g := x.book.gate(last.Queue, last.Group)
	if g.Turn != b.number {
		return nil
	}
	for _, j := range x.book.jobs {
		switch at := member(last, j); {
		case !at:
		case len(j.Leases) > 0, x.aside(j) && j.Park == "", last.Order == job.OrderStrict && !x.ahead(last, j):
			return nil
		case x.ahead(last, j) && (last.Order == job.OrderStrict || wants(j) && j.Seq < b.batch && h.meets(j)) && (next == nil || x.ahead(j, next)):
			next = j
		}
	}
	if next == nil || !wants(next) || next.Seq >= b.batch || !h.meets(next) {
		return nil
	}
	return next
}

// goesOn holds the first member of a turn against the batch that the turn goes on with.
func (s *scene) goesOn(h *holder, j *job.Job) {
	if why := s.unfitAlone(h, h.name, j); why != "" {
		broken("core.md 1 to 4", "%s was given to %s: %s", s.name(j.ID), h.name, why)
	}
	if next := s.rest(h); next == nil || next.ID != j.ID {
		broken("inbox.md 1 to 3", "%s was given out behind turn %d, and the next one is %v", s.name(j.ID), h.behind.number, next)
	}
	s.coverage.feature("a batch that goes on: " + s.q.Order.String())
}

// soMany reports whether a turn may end before its next member: as many were looked
// at as were asked for, or as there was room for. Who is passed by counts.
func (x *judge) soMany(b *begun, next *job.Job) bool {
	passed := 0
	for _, j := range x.book.jobs {
		if member(next, j) && x.ahead(j, next) && wants(j) {
			passed++
		}
	}
	asked := b.h.turns.Members
	return asked >= 0 && len(b.members)+passed >= max(asked, 1) || passed > 0 && x.w.setup.inFlight > 0
}

// turnsEnd looks at what a commit made of turns: each has the members that it could
// have, and none runs on behind one that ended it.
func (x *judge) turnsEnd() {
	for _, b := range x.fresh {
		next := x.next(b)
		if next != nil && x.soMany(b, next) {
			continue
		}
		if next == nil || x.unfitAlone(b.h, b.h.name, next) != "" || x.allOut() {
			continue
		}
		broken(turnLaw, "turn %d of %s was given out without %s, which is next", b.number, b.h.name, x.name(next.ID))
	}
	for id, by := range x.cuts {
		broken("inbox.md 3", "%s runs on, and %s before it ended their turn", x.name(id), x.name(by))
	}
	x.fresh = nil
}

// allOut reports whether as many leases are live as may be.
func (x *judge) allOut() bool {
	n := 0
	for _, j := range x.book.jobs {
		n += len(j.Leases)
	}
	return x.w.setup.inFlight > 0 && n >= x.w.setup.inFlight
}

// hasTurn is the number of the turn on a lease, and what it makes of the gate.
func (s *scene) hasTurn(o *outcome, want *job.Lease, l job.Lease, joins *begun) {
	j := s.old
	if j.Group == "" || j.Order != job.OrderStrict && !s.q.Turns {
		return
	}
	g := s.g
	want.Turn = l.Turn
	if late := j.Order == job.OrderStrict && g.Turn != 0 && sortOf(j) < g.LastSeq; late {
		o.stats.OutOfOrder = 1
		o.note("out of order")
	}
	if joins != nil {
		if l.Turn != g.Turn {
			broken(turnLaw, "%s was given out in turn %d, and the latest of its group is %d", s.name(j.ID), l.Turn, g.Turn)
		}
		return
	}
	if j.Order == job.OrderStrict && (g.Turn == 0 || sortOf(j) > g.LastSeq) {
		g.LastSeq = sortOf(j)
	}
	g.Turn = l.Turn
	o.draws = append(o.draws, l.Turn)
	o.gate = &g
	b := &begun{l.Turn, s.w.holderOf(l.Holder), []*job.Job{j}, l.Turn, s.seq, s.now}
	if b.h.behind != nil {
		b.batch = b.h.behind.batch
	}
	if s.begun[l.Turn] = b; b.h.turns != nil {
		s.fresh = append(s.fresh, b)
		s.coverage.feature("a turn: " + s.q.Order.String())
	}
}

// passes: a member of a strict turn that was delivered is the highest so far.
func (s *scene) passes(list []*outcome) []*outcome {
	for _, o := range list {
		if s.old.Order != job.OrderStrict || s.old.Group == "" || o.verb == rule.SettleRelease || sortOf(s.old) <= s.g.LastSeq {
			continue
		}
		g := s.g
		if o.gate != nil {
			g = *o.gate
		}
		g.LastSeq = sortOf(s.old)
		o.gate = &g
	}
	return list
}

// outdated: in an inbox who expired holds nobody (inbox.md 9).
func (s *scene) outdated(j *job.Job) bool {
	return s.q.Turns && j.ExpiresAt > 0 && j.ExpiresAt <= s.now
}

func (s *scene) graceDelay() job.Millis {
	if s.q.GraceDelay > 0 {
		return s.q.GraceDelay
	}
	return s.w.setup.server.GraceDelay
}

// capped is a due time under a cap of the age (inbox.md 8).
func (s *scene) capped(j *job.Job, due job.Millis) job.Millis {
	if s.q.AgeCap == 0 {
		return due
	}
	return min(due, max(max(j.Created, j.RevivedAt)+s.q.AgeCap, s.now+s.graceDelay()))
}

// cutOff is a member of a strict turn that goes back untouched, because one before
// it ended the turn.
func (s *scene) cutOff(by job.ID) *outcome {
	o := &outcome{why: "the end of its turn by " + s.name(by), verb: rule.Lapse}
	j := s.old.Clone()
	end(j, 0, job.ByTurn)
	o.note("cut off a turn")
	o.recalls = true
	return s.back(o, j, job.PlaceKeep, 0)
}

// moves notes a turn of which a worker settled a member: the next one is looked at.
func (x *judge) moves(s *scene, o *outcome) {
	if s.old == nil || o.req == nil || o.req.kind != askSettle {
		return
	}
	if i := s.old.LeaseOf(o.req.settle.Token); i >= 0 && s.q.Turns && s.old.Leases[i].Kind != job.Anonymous {
		x.moved[s.old.Leases[i].Turn] = true
	}
}

// recalled is the next member of a turn that goes back, because it must not be
// delivered any more (inbox.md 10).
func (s *scene) recalled() []*outcome {
	if !s.q.Turns || len(s.old.Leases) == 0 || s.new == nil || len(s.new.Leases) > 0 || !s.moved[s.old.Leases[0].Turn] {
		return nil
	}
	for _, j := range s.book.jobs {
		if member(s.old, j) && len(j.Leases) > 0 && s.ahead(j, s.old) {
			return nil
		}
	}
	expired := s.old.ExpiresAt > 0 && s.old.ExpiresAt <= s.now
	if !expired && !s.aside(s.old) {
		return nil
	}
	o := &outcome{why: "the end of its delivery", verb: rule.Lapse, recalls: true}
	j := s.old.Clone()
	end(j, 0, job.ByTurn)
	o.note("recalled from a turn")
	return []*outcome{s.back(o, j, job.PlaceKeep, 0)}
}

// aside reports whether a member, its group or its queue is out of line.
func (x *judge) aside(j *job.Job) bool {
	q, g := x.book.queue(j.Queue), x.book.gate(j.Queue, j.Group)
	return q.Paused || q.HoldUntil > 0 || j.Park != "" || j.Group != "" && (g.Paused || g.Park != "" || g.Hold > 0)
}

// turnLaws holds an accepted write against the order of its group.
func (x *judge) turnLaws(s *scene, o *outcome) {
	x.moves(s, o)
	if s.old == nil || s.old.Order != job.OrderStrict || s.old.Group == "" {
		return
	}
	delete(x.cuts, s.old.ID)
	if o.verb == rule.SettleOK {
		x.inOrder(s, o)
	}
	if len(s.old.Leases) == 0 || s.new != nil && len(s.new.Leases) > 0 {
		return
	}
	expired := s.old.ExpiresAt > 0 && s.old.ExpiresAt <= s.now
	switch o.verb {
	case rule.SettleRetry, rule.SettleDead:
	case rule.Lapse:
		if o.recalls && expired { // it leaves, and the others come closer
			return
		}
	case rule.SettleRelease:
		if expired {
			return
		}
	default:
		return
	}
	for _, j := range x.book.jobs {
		if member(s.old, j) && len(j.Leases) > 0 && x.ahead(s.old, j) {
			x.cuts[j.ID] = s.old.ID
		}
	}
}

// inOrder: what is done of a strict group is a prefix of its order, as far as its
// members were there together when the turn began.
func (x *judge) inOrder(s *scene, o *outcome) {
	var turn int64
	if i := s.old.LeaseOf(o.req.settle.Token); i >= 0 {
		turn = s.old.Leases[i].Turn
	} else if i := slices.IndexFunc(s.old.Ended, func(e job.Ended) bool { return e.Hash == o.req.settle.Token.Hash() }); i >= 0 {
		turn = s.old.Ended[i].Turn
	}
	b := x.begun[turn]
	if b == nil {
		return
	}
	for _, j := range x.book.jobs {
		together := j.Seq <= b.seq && j.RevivedAt < b.at && (j.ExpiresAt == 0 || j.ExpiresAt > s.now)
		if j.ID != s.old.ID && member(s.old, j) && x.ahead(j, s.old) && together {
			broken("I7", "%s is done, and %s, which is before it and was there when turn %d began, is %s", x.name(s.old.ID), x.name(j.ID), turn, brief(j))
		}
	}
}
