package sim_test

import (
	"github.com/reprisehq/reprise/internal/job"
)

// place is where a job stands: in a fair queue its group goes behind all that
// waited when it was served last (retry.md 4, fair share).
type place struct {
	priority uint16
	band     uint8
	seq      int64
}

func (x *judge) stand(j *job.Job) place {
	p := place{j.Priority, j.Band, j.Seq}
	if x.book.queue(j.Queue).Protection.Fair != nil {
		if g := x.book.gate(j.Queue, j.Group); g.Place > 0 {
			p.seq = max(p.seq, g.Place)
		}
	}
	return p
}

// sooner reports whether a stands before b in the lines of a holder.
func (x *judge) sooner(a, b *job.Job) bool {
	if x.book.queue(a.Queue).Protection.Fair == nil && x.book.queue(b.Queue).Protection.Fair == nil {
		return x.before(a, b)
	}
	p, q := x.stand(a), x.stand(b)
	switch {
	case p.priority != q.priority:
		return p.priority < q.priority
	case p.band != q.band:
		return p.band < q.band
	case p.seq != q.seq:
		return p.seq < q.seq
	}
	return a.ID.Before(b.ID)
}

// mates reports whether two jobs stand behind one gate of a fair queue. Which
// of them goes first is said in barred; those without a group may go in turn.
func (x *judge) mates(a, b *job.Job) bool {
	return a.Queue == b.Queue && a.Group == b.Group && x.book.queue(a.Queue).Protection.Fair != nil
}

// patience is of a group that waits in a fair queue: where it stands, and how
// often each other group went before it.
type patience struct {
	at     place
	passed map[string]int
}

// passOver counts a take of a fair queue against the groups that wait there
// and could have had it. Between two of their own starts no other group may
// start more than its weight.
func (s *scene) passOver(h *holder, j *job.Job) {
	fair := s.q.Protection.Fair
	if fair == nil {
		return
	}
	delete(s.measured.waits, job.GateKey(j.Queue, j.Group))
	mine := s.stand(j)
	heads := map[string]*job.Job{}
	for _, other := range s.book.jobs {
		if other.Queue != j.Queue || other.Group == j.Group || s.unfit(h, h.name, other) != "" {
			continue
		}
		if first := heads[other.Group]; first == nil || s.before(other, first) {
			heads[other.Group] = other
		}
	}
	for group, head := range heads {
		at, key := s.stand(head), job.GateKey(j.Queue, group)
		if at.priority != mine.priority || at.band != mine.band {
			continue
		}
		p := s.measured.waits[key]
		if p == nil || p.at != at { // it stands elsewhere now
			p = &patience{at, map[string]int{}}
			s.measured.waits[key] = p
		}
		s.coverage.feature("a group passed over in its turn")
		if p.passed[j.Group]++; p.passed[j.Group] > fair.Weight(j.Group) {
			broken("retry.md 4", "group %q of fair queue %s was passed over %d times by group %q, whose weight is %d",
				group, j.Queue, p.passed[j.Group], j.Group, fair.Weight(j.Group))
		}
	}
}

// turned is the gate after a start in a fair queue: behind all others when its
// group had its weight. The number drawn stands in the row written next.
func (s *scene) turned(o *outcome, j *job.Job) {
	fair := s.q.Protection.Fair
	if fair == nil {
		return
	}
	g := s.g
	if o.gate != nil { // it took the turn of a strict group
		g = *o.gate
	}
	if g.Served++; g.Served >= fair.Weight(j.Group) {
		g.Served = 0
		if len(s.later) > 0 {
			if row, ok := s.later[0].row.(*job.Gate); ok {
				g.Place = row.Place
			}
		}
		o.draws = append(o.draws, g.Place)
	}
	o.gate = &g
}
