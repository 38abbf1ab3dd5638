package model

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

// Engines that a session gives nothing more, because tasks failed there, and tasks
// that fail wherever they run (grid.md 9, reference section 6).

// strike is what a session holds against a machine, be it gone.
type strike struct {
	machine string
	tasks   []*task // whose failures count, until they are enough
	count   uint32
	last    job.Millis
	until   job.Millis // 0 = it did not fail often enough
	out     bool
}

// excludes reports whether a session gives a machine nothing.
func (s *session) excludes(m *machine) bool {
	return slices.ContainsFunc(s.strikes, func(k *strike) bool { return k.machine == m.name && k.out })
}

// failed counts that runs of a task failed there, all at once. Where the task failed
// on three hosts it is to blame, and not they.
func (g *grid) failed(t *task, machines ...string) {
	s, x := t.session, t.session.set.Grid.Exclusion
	if x == nil || len(machines) == 0 {
		return
	}
	for _, name := range machines {
		s.strike(x, t, name, g.now)
	}
	s.judge = true
	if x.EachFailure || t.failedOn() < 3 {
		return
	}
	for _, k := range s.strikes {
		kept := slices.DeleteFunc(slices.Clone(k.tasks), func(o *task) bool { return o == t })
		k.count -= uint32(len(k.tasks) - len(kept))
		if k.tasks = kept; len(kept) < x.Failures {
			k.until, k.out = 0, false
		}
	}
	s.strikes = slices.DeleteFunc(s.strikes, func(k *strike) bool { return len(k.tasks) == 0 })
	if t.fate == open {
		for len(t.runs) > 0 {
			g.finish(t, t.runs[0], job.ByCancel, job.AttemptCancelled)
		}
		g.fails(t, job.Exhausted, false)
	}
}

// failedOn is on how many hosts runs of a task failed.
func (t *task) failedOn() int {
	hosts := map[string]bool{}
	for _, r := range t.past {
		if r.why == job.AttemptError || r.why == job.AttemptTimeout {
			hosts[r.host] = true
		}
	}
	return len(hosts)
}

func (s *session) strike(x *job.Exclusion, t *task, name string, now job.Millis) {
	i := slices.IndexFunc(s.strikes, func(k *strike) bool { return k.machine == name })
	if i < 0 {
		i, s.strikes = len(s.strikes), append(s.strikes, &strike{machine: name})
	}
	k := s.strikes[i]
	if x.TTL > 0 && k.count > 0 && now >= k.last+x.TTL {
		*k = strike{machine: name}
	}
	k.count++
	k.last = now
	if len(k.tasks) < x.Failures && (x.EachFailure || !slices.Contains(k.tasks, t)) {
		k.tasks = append(k.tasks, t)
	}
	if len(k.tasks) == x.Failures {
		if k.until = math.MaxInt64; x.TTL > 0 {
			k.until = now + x.TTL
		}
	}
	slices.SortFunc(s.strikes, func(a, b *strike) int { return cmp.Compare(a.machine, b.machine) })
}

// judged looks again who is out where something failed, was forgiven, or may be
// given tasks now that could not, or the other way round.
func (g *grid) judged() {
	able := map[string]bool{}
	for name, m := range g.machines {
		if m.able() {
			able[name] = m.fast
		}
	}
	came := !maps.Equal(able, g.able)
	g.able = able
	for _, s := range g.sessions {
		if (came || s.judge) && !s.state.Ended() {
			g.exclude(s)
		}
		s.judge = false
	}
}

// exclude says who is out: who failed often enough, the worst first, and of those who
// may run what failed there no more than a part.
func (g *grid) exclude(s *session) {
	x := s.set.Grid.Exclusion
	if s.stuck = false; x == nil {
		return
	}
	bad := s.bad()
	if len(bad) == 0 {
		return
	}
	known, slow := 0, false // of what failed there
	for _, k := range bad {
		for _, t := range k.tasks {
			if !t.gone {
				known++
				slow = slow || !t.fast
			}
		}
	}
	may := func(m *machine) bool { return m != nil && m.able() && (m.fast || slow || known == 0) }
	all := 0
	for _, m := range g.machines {
		if may(m) {
			all++
		}
	}
	s.strikes = slices.DeleteFunc(s.strikes, func(k *strike) bool { return k.until > 0 && k.until <= g.now })
	bad = slices.DeleteFunc(s.bad(), func(k *strike) bool { return !may(g.machines[k.machine]) })
	slices.SortStableFunc(bad, func(a, b *strike) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.last, a.last))
	})
	for _, k := range s.strikes {
		k.out = false
	}
	for i, k := range bad {
		k.out = float64(i+1) <= x.MaxFraction*float64(all)
	}
	s.stuck = all > 0 && len(bad) == all
}

// bad are the machines that failed often enough.
func (s *session) bad() []*strike {
	return slices.DeleteFunc(slices.Clone(s.strikes), func(k *strike) bool { return k.until == 0 })
}

// clear forgets what a session holds against a machine, or against all.
func (w *gridWorld) clear(t *rapid.T) {
	s, name, want := w.session(t), one(t, "engine", "", "x", "y", "z"), accepted
	known := slices.ContainsFunc(s.strikes, func(k *strike) bool { return k.machine == name })
	switch {
	case s.state >= job.SessionCancelling:
		want = job.WrongState
	case name != "" && !known && w.grid.machines[name] == nil:
		want = job.NotFound
	}
	_, err := w.Grid.ClearExclusions(w.Context(), s.name, name, driver)
	if w.refused("clear exclusions", err, want) {
		return
	}
	s.strikes = slices.DeleteFunc(s.strikes, func(k *strike) bool { return name == "" || k.machine == name })
	s.judge = true
}

// sameStrikes compares what a session holds against engines, and whom it excludes.
func (w *gridWorld) sameStrikes(got []job.Strike, s *session) {
	want := make([]job.Strike, 0, len(s.strikes))
	for _, k := range s.strikes {
		ids := make([]job.ID, 0, len(k.tasks))
		for _, t := range k.tasks {
			ids = append(ids, t.id)
		}
		want = append(want, job.Strike{Engine: k.machine, Tasks: ids, Count: k.count, Last: k.last, Until: k.until, Out: k.out})
	}
	same := func(a, b job.Strike) bool {
		return a.Engine == b.Engine && slices.Equal(a.Tasks, b.Tasks) && a.Count == b.Count && a.Last == b.Last && a.Until == b.Until && a.Out == b.Out
	}
	if !slices.EqualFunc(got, want, same) {
		w.Fatalf("session %s holds against engines\n%+v, want\n%+v", s.name, got, want)
	}
}

func drawExclusion(t *rapid.T) *job.Exclusion {
	return one(t, "exclusion", nil, nil,
		&job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1},
		&job.Exclusion{Failures: 1, MaxFraction: 0.5},
		&job.Exclusion{Failures: 2, MaxFraction: 0.5, TTL: 4 * job.Second})
}
