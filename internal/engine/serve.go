package engine

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Who is given what: the holders with room, longest waiting first, get the ready jobs of
// their queues.

const (
	chunkMax  = 256  // jobs for one holder before the next one is served
	serveMax  = 8192 // deliveries in one transaction
	outputMax = 512  // jobs on their way to a stream that set no prefetch
)

// serving is who is given what.
type serving struct {
	*Tx
	list    []*Holder // who is being served
	round   int       // how often that was decided
	fed     bool      // all waiting holders are to be served again
	hadFed  bool      // it did so in the run before
	moved   bool      // a member of a group was given out, and its gate may stand for the next
	aside   int       // jobs that left their lines because a part put them aside
	emptied map[string]emptied
}

// RoomFor is how many more jobs the holder takes now.
func (r *serving) RoomFor(h *Holder) int {
	held := r.Has(h)
	switch {
	case h.gone || r.left[h]:
		return 0
	case h.Feeder != nil:
		return h.Feeder.Room(r.Tx, h)
	case h.Want > 0:
		return h.Want - held
	case h.Opts.Prefetch > 0:
		return h.Opts.Prefetch - held
	}
	return outputMax - h.unread + r.reads[h] - r.held[h]
}

// serve gives ready jobs to holders with room, the longest waiting first. A
// holder that gets something goes to the end of the line.
func (r *serving) serve() error {
	waiting := r.candidates()
	if len(waiting) == 0 {
		return nil
	}
	r.serveTo(waiting)
	empty := map[string]bool{} // holders with this key found nothing
	given := 0
	for again := true; again && given < serveMax; {
		again = false
		for _, h := range waiting {
			room := r.RoomFor(h)
			n := min(room, max(h.Want, chunkMax))
			if limit := r.e.opts.InFlightMax; limit > 0 {
				n = min(n, limit-r.c.leases-r.leases)
			}
			if n <= 0 || empty[h.Key] {
				continue
			}
			feed := r.feed
			if h.Feeder != nil {
				feed = func(h *Holder, n int) (int, bool, error) { return h.Feeder.Feed(r.Tx, h, n) }
			}
			took, dry, err := feed(h, n)
			if err != nil {
				return err
			}
			if dry {
				empty[h.Key] = true
			}
			given += took
			again = again || took > 0 && took < room && h.Want == 0
		}
		if r.moved { // a gate stands for its next member now, and others may have room for that
			r.moved, again = false, true
			clear(empty)
			waiting = r.candidates()
			r.serveTo(waiting)
		}
	}
	r.fed = r.fed || given >= serveMax
	if given < serveMax {
		r.dismiss(waiting)
	}
	return nil
}

// dismiss answers those who do not wait and found nothing.
func (r *serving) dismiss(waiting []*Holder) {
	for _, h := range waiting {
		if h.Once && r.Has(h) == 0 && !r.left[h] {
			r.left[h] = true
			r.ended = append(r.ended, h)
		}
	}
}

// serveTo notes who is served now.
func (r *serving) serveTo(list []*Holder) {
	r.list = list
	r.round++
}

// Serving are the holders that are served now; round is another number each time that
// they are looked for anew.
func (r *serving) Serving() (list []*Holder, round int) { return r.serving.list, r.round }

// Has is how many jobs a holder has.
func (r *crowd) Has(h *Holder) int { return h.held + r.held[h] }

// feed gives one holder up to n jobs. dry means that holders with the same
// key would find nothing either.
func (r *serving) feed(h *Holder, n int) (took int, dry bool, err error) {
	passes := false // what must be alone: another holder is emptied for it
	for took < n {
		s, err := r.Seeker(h)
		if err != nil {
			return took, false, err
		}
		held := s.Held
		if !passes { // it sees what must be alone, too, as if it had nothing
			s.Held = 0
		}
		list, err := r.tx.Ready(h.Opts.Queues, s, n-took)
		if err != nil || len(list) == 0 {
			return took, held == 0 && err == nil, err
		}
		out, err := r.hand(h, list, held)
		took, passes = took+out.took, passes || out.passed
		if err != nil || out.full || r.AsideEnough() || out.took == 0 && !out.passed && !out.aside {
			return took, false, err
		}
	}
	return took, false, nil
}

// handed is what one look at a line came to.
type handed struct {
	took   int
	full   bool // the holder gets no more now
	passed bool // a job must be alone, and another holder is emptied for it
	aside  bool // a job left its line
}

// hand gives a holder that has some jobs those of a list, as long as they are the next in
// line.
func (r *serving) hand(h *Holder, list []*job.Job, held int) (out handed, err error) {
	var next *rule.Pos // where a gate may stand now that was served from this list
	for _, j := range list {
		if next != nil {
			if p, err := r.place(j); err != nil || !p.Before(*next) {
				return out, err
			}
		}
		if j.HeldBy(h.Name) {
			continue
		}
		aside, err := r.PutAside(j)
		switch {
		case err != nil:
			return out, err
		case aside:
			out.aside = true
		case j.Isolated && held+out.took > 0:
			answered := h.Want > 0 && r.Has(h) > 0 // a call that got something: it waits no more
			out.full = answered || r.empties(h, j.Queue)
			out.passed = !out.full
			return out, nil
		default:
			if _, err := r.Grant(h, j, 0); err != nil {
				return out, err
			}
			if out.took++; j.Isolated || r.Full(h) {
				out.full = true
				return out, nil
			}
		}
		if next, err = r.standsNext(j, next); err != nil {
			return out, err
		}
		if aside && r.e.parts.limited(r.Tx, j.Queue) { // it was offered in place of another one
			return out, nil
		}
	}
	return out, nil
}

// asideMax is how many jobs are put aside in one transaction.
const asideMax = 1000

// PutAside takes a job out of its line if a part says that it may not run yet.
func (r *serving) PutAside(j *job.Job) (aside bool, err error) {
	park, err := r.e.parts.aside(r.Tx, j)
	if park == "" || err != nil {
		return false, err
	}
	r.aside++
	r.moved = r.moved || j.Group != ""
	return true, r.Park(j, park)
}

// place is where a job that was offered stands in line, itself or its gate.
func (r *serving) place(j *job.Job) (rule.Pos, error) {
	q, err := r.Queue(j.Queue)
	p := rule.EntriesOf(j).Pos
	if err != nil || q.Protection.Fair == nil {
		return p, err
	}
	g, err := r.Gate(j.Queue, j.Group)
	if err != nil {
		return p, err
	}
	return rule.Stand(q, g, p), nil
}

// standsNext is the foremost of next and of where the gate of a job may stand
// that was just given out, or sooner. It need not be exact: who stops there
// asks again.
func (r *serving) standsNext(j *job.Job, next *rule.Pos) (*rule.Pos, error) {
	q, err := r.Queue(j.Queue)
	if err != nil || j.Order == job.OrderStrict && j.Group != "" || j.Group == "" && q.Protection.Fair == nil {
		return next, err
	}
	p, err := r.behind(q, j)
	if err != nil || p == nil || next != nil && next.Before(*p) {
		return next, err
	}
	return p, nil
}

// behind is where the gate of a job may stand for the next member; nil if it
// does not.
func (r *serving) behind(q *job.Queue, j *job.Job) (*rule.Pos, error) {
	at := rule.EntriesOf(j).Pos
	if j.Group != "" {
		m, some, err := r.nextMember(j)
		if err != nil || !some {
			return nil, err
		}
		if m == nil { // it is not among the first: it may stand anywhere
			return &rule.Pos{}, nil
		}
		at = rule.EntriesOf(m).Pos
	}
	if q.Protection.Fair != nil {
		g, err := r.Gate(j.Queue, j.Group)
		if err != nil {
			return nil, err
		}
		at = rule.Stand(q, g, at)
	}
	return &at, nil
}

// nextMember is the member that the gate of a job stands for now that the job
// runs, if that is one of the first two. some is whether there are others.
func (r *serving) nextMember(j *job.Job) (next *job.Job, some bool, err error) {
	ids, err := r.tx.IDs(store.Members(j.Queue, j.Group), 2) // it is one of them as long as it runs
	if err != nil || len(ids) < 2 {
		return nil, false, err
	}
	for _, id := range ids {
		if id == j.ID {
			continue
		}
		m, err := r.tx.Get(id)
		if err != nil || rule.EntriesOf(m).Wants {
			return m, true, err
		}
	}
	return nil, true, nil
}

// Grant leases one job to a holder. turn is the running turn of its group that it joins,
// 0 = none; the turn that it is in is answered.
func (r *serving) Grant(h *Holder, j *job.Job, turn int64) (int64, error) {
	q, err := r.Queue(j.Queue)
	if err != nil {
		return 0, err
	}
	l := &r.lease // the rule takes a copy
	*l = job.Lease{
		Token: job.NewToken(r.c.start, r.e.rnd), Holder: h.Name, Kind: h.Kind, Exclusive: j.Isolated,
	}
	if h.life > 0 {
		l.Until = r.steady.Add(h.life)
	}
	var begins job.Millis
	if h.Feeder != nil {
		if begins, err = h.Feeder.Lease(r.Tx, h, q, j, l); err != nil {
			return 0, err
		}
	}
	eff, err := r.Step(j, rule.Command{Verb: rule.Take, Lease: l, Turn: turn, Begins: begins})
	if err != nil {
		return 0, err
	}
	if q.NonIdempotent || j.Order == job.OrderStrict {
		r.tx.Durable()
	}
	if err := r.e.parts.given(r.Tx, q, j); err != nil {
		return 0, err
	}
	if j.Group != "" && j.CopiesWanted > 1 { // its gate may stand for the next now, which holders of another copy may take
		r.fed = true
	}
	r.filled(h, j)
	r.holds(h, j)
	if h.Want > 0 { // a call; its jobs take up room in the stream of the same name, and their end makes room there
		r.bytes[h] += int(j.PayloadSize)
		if s := r.Holder(h.Name); s != nil {
			r.holds(s, j)
		}
	}
	r.leases++
	r.stats.Taken++
	if eff.OutOfOrder {
		r.stats.OutOfOrder++
	}
	r.moved = r.moved || j.Group != "" && j.Order != job.OrderStrict || q.Protection.Fair != nil
	given := eff.Job.Leases[len(eff.Job.Leases)-1]
	r.gifts = append(r.gifts, gift{h, Delivery{Job: eff.Job, Lease: given, Payload: r.tx.Peek(j.Payload), StopAfter: rule.StopAfter(q, j)}})
	return given.Turn, nil
}

// holds counts a job that was granted among those of a holder.
func (r *crowd) holds(h *Holder, j *job.Job) {
	r.held[h]++
	r.alone[h] += oneIf(j.Isolated)
}

// candidates are the holders that may find something now: all of them when
// a queue woke, else those that are new or got room.
func (r *serving) candidates() []*Holder {
	var out []*Holder
	unblocked := r.leases < 0 && r.e.opts.InFlightMax > 0 // there may be room for any of them
	if len(r.woken) > 0 || r.hadFed || unblocked {
		out = slices.AppendSeq(out, r.c.hungry.all())
	} else {
		out = r.c.hungry.freed(r.Tx)
	}
	out = append(out, inOrder(r.joined)...)
	return append(out, r.asking...)
}
