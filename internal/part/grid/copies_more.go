package grid

import (
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
)

// The strategies that have no threshold for all runs: time_left looks at what
// engines tell of their progress, clone copies the tasks of a small session when
// they begin (reference section 4).

// headway is how far a run is that tells it. Its fraction is 0 if it is to be
// forgotten: it ended, or can have no copy.
type headway struct {
	id       job.ID
	since    job.Millis // when it began, on the steady clock
	fraction float64
}

// leftLook is a look at all runs of a session that tell their progress.
type leftLook struct {
	at  job.Millis // 0 = there was none
	due job.Millis // when one more of them may have too much left
}

func (g *copies) lookedAt(session string, l leftLook) {
	if g.copies.looks == nil {
		g.copies.looks = map[string]leftLook{}
	}
	g.copies.looks[session] = l
}

// headwayEvery is how often all runs that tell their progress are looked at
// again because one of them did: a look costs as much as there are.
const headwayEvery = job.Second

// tells notes what the run of a task told of its progress, and when there is
// nothing more to be heard. after is nil if the task is over.
func (p *paced) tells(tx *engine.Tx, q *job.Queue, c *rule.Command, old, after *job.Job) {
	if !q.Grid.Redundancy.Strategies.Has(job.RedundantTimeLeft) || leasesOf(old) == 0 {
		return
	}
	if after == nil || leasesOf(after) < leasesOf(old) || rule.NoCopy(after, q, tx.Rules()) != rule.CopyAllowed {
		p.head = &headway{id: old.ID}
		return
	}
	if c.Verb != rule.Extend || c.Progress == nil || c.Progress.Fraction == job.FractionUnset {
		return
	}
	if l := &after.Leases[after.LeaseOf(c.Token)]; l.Started > 0 {
		p.head = &headway{after.ID, tx.Steady() - (tx.Now() - l.Started), c.Progress.Fraction}
	}
}

// hear keeps what was told.
func (s *pace) hear(h *headway) {
	if h.fraction == 0 {
		delete(s.heads, h.id)
		return
	}
	if s.heads == nil {
		s.heads = map[job.ID]headway{}
	}
	s.heads[h.id] = *h
}

// endsLast is the run that ends last by what engines tell, if it is to have a
// copy.
func (g *copies) endsLast(tx *engine.Tx, l *look) (*job.Job, job.RedundancyStrategy, string, error) {
	const by = job.RedundantTimeLeft
	s := l.pace
	if !l.red.Strategies.Has(by) || len(s.heads) == 0 {
		return nil, by, "", nil
	}
	if next := min(s.left.at.Add(headwayEvery), s.left.due); s.left.at > 0 && next > tx.Steady() {
		l.due = min(l.due, next)
		return nil, by, "", nil
	}
	ids := make([]job.ID, 0, len(s.heads))
	for id := range s.heads {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, job.ID.Compare) // the same history has the same copies
	list := make([]plan.Headway, len(ids))
	expected, _ := s.own.Mean()
	looked := leftLook{at: tx.Steady(), due: job.MaxMillis}
	for i, id := range ids {
		h := s.heads[id]
		list[i] = plan.Headway{Age: tx.Steady() - h.since, Fraction: h.fraction}
		if at := plan.LeftAt(l.red, h.since, h.fraction, expected); at > tx.Steady() {
			looked.due = min(looked.due, at)
		}
	}
	l.due = min(l.due, looked.due)
	var j *job.Job
	for j == nil {
		i := plan.EndsLast(l.red, list, expected, s.own.Len())
		if i < 0 {
			g.copies.lookedAt(l.name, looked)
			return nil, by, "", nil
		}
		var err error
		if j, err = tx.Store().Get(ids[i]); err != nil {
			return nil, by, "", err
		}
		if j == nil || j.State != job.Leased || rule.NoCopy(j, l.q, tx.Rules()) != rule.CopyAllowed { // it ended just now, or the session was changed
			delete(s.heads, ids[i]) // also if this transaction does not commit: it tells again how far it is
			ids, list, j = slices.Delete(ids, i, i+1), slices.Delete(list, i, i+1), nil
		}
	}
	bar := noHost
	if fits, err := g.sight.canRun(tx, l.known, j); err != nil {
		return nil, by, "", err
	} else if fits {
		if bar, err = g.copies.bar(tx, l); err != nil {
			return nil, by, "", err
		}
	}
	if bar != "" {
		g.copies.lookedAt(l.name, looked)
	} // else perhaps there are more
	return j, by, bar, nil
}

// cloneable notes a task that runs for the first time.
func (p *paced) cloneable(q *job.Queue, c *rule.Command, old, j *job.Job) {
	if c.Verb == rule.Take && old.Deliveries == 0 && q.Grid.Redundancy.Strategies.Has(job.RedundantClone) {
		p.first = j.ID
	}
}

// clone is a task of a small session that is to have a copy because it began.
// What clones may cost is decided by their number.
func (g *copies) clone(tx *engine.Tx, l *look) (*job.Job, job.RedundancyStrategy, string, error) {
	const by = job.RedundantClone
	s := l.pace
	switch n := int(l.known.Submitted); {
	case n > l.red.CloneTasks:
		s.firsts, s.cloned = nil, 0
	case n != s.clonedOf: // of more tasks one is slow sooner
		s.cloned, s.clonedOf = 0, n
	}
	for s.cloned < len(s.firsts) {
		j, err := tx.Store().Get(s.firsts[s.cloned])
		if err != nil {
			return nil, by, "", err
		}
		switch {
		case j == nil || j.State != job.Leased || rule.NoCopy(j, l.q, tx.Rules()) != rule.CopyAllowed: // it has what it may, also if this transaction does not commit
			s.firsts = slices.Delete(s.firsts, s.cloned, s.cloned+1)
			continue
		case int(j.CopiesWanted) >= g.copies.clones(tx, l, j.Type):
			s.cloned++
			continue
		}
		if fits, err := g.sight.canRun(tx, l.known, j); err != nil || !fits {
			return nil, by, noHost, err
		}
		idle, err := g.copies.idleSlots(tx)
		return j, by, plan.CloneBar(l.red, idle, l.q.Grid.CopyPlace == job.PlaceFront).String(), err
	}
	return nil, by, "", nil
}

// clones is how many runs each task of a session is to have from the start, by
// what is known of the runs of its type.
func (g *copies) clones(tx *engine.Tx, l *look, kind string) int {
	known := g.copies.kinds[kind]
	if known == nil || known.Len() < l.red.HedgeSamples {
		return 1
	}
	return plan.Clones(l.red, int(l.known.Submitted), known.Slow(l.red.MedianFactor), job.Millis(known.Median()), l.pace.spend.Left(l.red, tx.Steady()))
}
