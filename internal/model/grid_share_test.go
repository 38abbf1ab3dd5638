package model

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// Who is next: an urgent session, then the one that is furthest below its share for
// its weight, and in it the foremost task that the engine may run (reference section 6).

// room is how many more tasks a machine may be given.
func (g *grid) room(m *machine) int {
	if !m.able() {
		return 0
	}
	return m.slots - g.running(m)
}

// able reports whether a machine may be given tasks, be it busy now.
func (m *machine) able() bool { return !m.lost && !m.draining && len(m.stopping) == 0 }

func (g *grid) running(m *machine) int {
	return len(g.list(func(t *task) bool { return t.runsOn(m) }))
}

// slots is how many there are that may be given tasks.
func (g *grid) slots() (n int) {
	for _, m := range g.machines {
		if m.able() {
			n += m.slots
		}
	}
	return n
}

// claim is what a session asks for.
type claim struct {
	*session
	weight, waiting, running int
	most                     int // slots it can use
	target                   int
}

func (g *grid) claim(s *session) *claim {
	c := &claim{session: s, weight: int(s.set.Grid.Weight)}
	if s.set.Grid.Suspended || s.state >= job.SessionCancelling {
		c.weight = 0
	}
	for _, t := range g.ofSession(s) {
		c.running += len(t.runs)
		if t.inLine() {
			c.waiting++
		}
	}
	c.most = c.waiting + c.running
	if limit := s.set.Grid.MaxEngines; limit > 0 {
		c.most = min(c.most, limit)
	}
	if c.weight == 0 {
		c.most = 0
	}
	return c
}

// claims fills the sessions with the slots there are like vessels: each by its
// weight, and what one cannot use goes to the others; those that are not urgent
// with what the urgent ones leave. Oldest first.
func (g *grid) claims() (all []*claim) {
	for _, s := range g.sessions {
		all = append(all, g.claim(s))
	}
	slices.SortFunc(all, func(a, b *claim) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.name, b.name)) })
	active := slices.DeleteFunc(slices.Clone(all), func(c *claim) bool { return c.most == 0 })
	left := fill(slices.DeleteFunc(slices.Clone(active), func(c *claim) bool { return !c.set.Grid.Urgent }), g.slots())
	fill(slices.DeleteFunc(active, func(c *claim) bool { return c.set.Grid.Urgent }), left)
	return all
}

// fill shares slots out among sessions that are urgent, or are not, and returns what
// they leave.
func fill(active []*claim, slots int) int {
	open := slices.Clone(active)
	for full := true; full; { // who has all it can use leaves the rest to the others
		full = false
		weights, left := 0, slots
		for _, c := range open {
			weights += c.weight
		}
		open = slices.DeleteFunc(open, func(c *claim) bool {
			if left*c.weight < c.most*weights {
				return false
			}
			c.target, full = c.most, true
			slots -= c.most
			return true
		})
	}
	weights, spare := 0, slots
	for _, c := range open {
		weights += c.weight
	}
	if len(open) == 0 {
		return slots
	}
	for _, c := range open {
		c.target = slots * c.weight / weights
		spare -= c.target
	}
	slices.SortStableFunc(open, func(a, b *claim) int { // the largest remainders, then weights
		return cmp.Or(cmp.Compare(slots*b.weight%weights, slots*a.weight%weights), cmp.Compare(b.weight, a.weight))
	})
	for _, c := range open[:spare] {
		c.target++
	}
	total := 0
	for _, c := range active {
		total += c.target
	}
	slices.Reverse(active)
	for _, poor := range active { // everybody has one if there are as many; who has most gives
		if poor.target == 0 && total >= len(active) {
			rich := slices.MaxFunc(active, func(a, b *claim) int {
				return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(b.weight, a.weight))
			})
			rich.target--
			poor.target++
		}
	}
	return 0
}

// pick is the task that a machine is given next, of the sessions that it serves;
// nil = none.
func (g *grid) pick(m *machine, serves []string) *task {
	all := slices.DeleteFunc(g.claims(), func(c *claim) bool {
		limit := c.set.Grid.MaxEngines
		return c.weight == 0 || c.waiting == 0 || limit > 0 && c.running >= limit || len(serves) > 0 && !slices.Contains(serves, c.name) || c.excludes(m)
	})
	slices.SortStableFunc(all, func(a, b *claim) int {
		if a.set.Grid.Urgent != b.set.Grid.Urgent {
			if a.set.Grid.Urgent {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare((b.target-b.running)*a.weight, (a.target-a.running)*b.weight), cmp.Compare(b.weight, a.weight))
	})
	for _, c := range all {
		line := slices.DeleteFunc(g.ofSession(c.session), func(t *task) bool { return !t.inLine() || !t.fits(m) })
		if len(line) > 0 {
			return slices.MinFunc(line, foremost)
		}
	}
	return nil
}

// fits reports whether a machine may run a task: what it is good enough for, and
// has not already; and a copy of which no other runs on its host.
func (t *task) fits(m *machine) bool {
	return (m.fast || !t.fast) && !slices.ContainsFunc(t.runs, func(r *attempt) bool {
		return r.machine == m.name || r.host == m.host && !t.session.set.Grid.AnyHost
	})
}

// reluctance is how little a task should run on a machine again: 3 = it was not
// begun there just now, 2 = it failed there, 1 = it failed on its host.
func (t *task) reluctance(m *machine) (most int) {
	if t.undelivered() && t.past[len(t.past)-1].machine == m.name {
		return 3
	}
	for _, r := range t.past {
		switch {
		case r.why != job.AttemptError && r.why != job.AttemptTimeout:
		case r.machine == m.name:
			return 2
		case r.host == m.host:
			most = 1
		}
	}
	return most
}

// undelivered reports whether the latest engine of a task did not begin it.
func (t *task) undelivered() bool {
	return len(t.past) > 0 && t.past[len(t.past)-1].why == job.AttemptUndelivered
}
