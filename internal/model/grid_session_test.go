package model

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// The life of sessions and machines, and the clock of the grid.

func (s *session) ends() job.Millis {
	if s.set.Grid.Retain > 0 {
		return s.ended + s.set.Grid.Retain
	}
	return s.ended + job.Day
}

// clientUntil is when a session is cancelled unless something is heard of its
// client; 0 = it needs none: all is submitted, and may be collected later or never.
func (s *session) clientUntil() job.Millis {
	c := s.set.Grid.Collection
	alone := s.state == job.SessionClosed && (c == job.CollectLater || c == job.CollectNever)
	if s.set.Grid.ClientTimeout == 0 || s.state > job.SessionClosed || alone {
		return 0
	}
	return s.heard + s.set.Grid.ClientTimeout
}

func (g *grid) ofSession(s *session) []*task {
	return g.list(func(t *task) bool { return t.session == s })
}

// counts is how many tasks of a session came to each end, also those that are
// forgotten.
func (g *grid) counts(s *session) (n [4]int64) {
	for _, t := range g.tasks {
		if t.session == s {
			n[t.fate]++
		}
	}
	return n
}

// nextTime is when the clock has to do something, 0 = never.
func (g *grid) nextTime() (soonest job.Millis) {
	at := func(t job.Millis) {
		if t > 0 && (soonest == 0 || t < soonest) {
			soonest = t
		}
	}
	for _, t := range g.tasks {
		if t.state == job.Scheduled {
			at(t.due)
		}
		for _, r := range t.runs {
			at(r.runEnd)
			at(r.startBy)
		}
	}
	for _, m := range g.machines {
		at(m.until)
	}
	for _, s := range g.sessions {
		for _, t := range g.tasks {
			for _, r := range t.runs {
				if s.set.Grid.Urgent && r.since+protected > g.now {
					at(r.since + protected)
				}
			}
		}
	}
	for _, s := range g.sessions {
		at(s.clientUntil())
		if s.ended > 0 {
			at(s.ends())
			continue
		}
		for _, k := range s.strikes {
			if k.until < math.MaxInt64 {
				at(k.until)
			}
		}
	}
	return soonest
}

// tick does what is due: machines first, then sessions and their clients, then
// tasks; at last those who waited for what is over.
func (g *grid) tick() {
	due := map[*session]bool{} // what begins now the clock sees the next time
	for _, s := range g.sessions {
		due[s] = s.state == job.SessionCancelling
	}
	list := slices.SortedFunc(maps.Values(g.machines), func(a, b *machine) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.name, b.name))
	})
	for _, m := range list {
		if m.until <= g.now {
			g.silent(m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.sessions)) {
		g.turn(g.sessions[name], due[g.sessions[name]])
	}
	for _, s := range g.sessions {
		if at := s.clientUntil(); at > 0 && at <= g.now {
			s.state = job.SessionCancelling
		}
	}
	for _, t := range g.tasks {
		if t.state == job.Scheduled && t.due <= g.now {
			t.state = job.Ready
		}
	}
	g.timeOuts()
	g.settled()
}

// silent is a machine that was not heard of for too long. One that could not reach
// the server since its start is not to blame.
func (g *grid) silent(m *machine) {
	if m.lost {
		delete(g.machines, m.name)
		return
	}
	g.leaves(m, func(*attempt) job.Ending {
		if m.awaited {
			return job.ByRestart
		}
		return job.ByLapse
	})
	m.lost, m.stopping, m.until = true, nil, g.now+10*job.Minute
}

// turn is what the clock owes a session.
func (g *grid) turn(s *session, cancels bool) {
	switch {
	case cancels:
		g.swept = true
		for _, t := range g.ofSession(s) {
			if t.fate == open {
				g.cancel(t)
			}
		}
	case s.state.Ended() && (s.dropped || s.ends() <= g.now):
		for _, t := range g.ofSession(s) {
			t.gone = true
		}
		delete(g.sessions, s.name)
	default:
		g.look(s)
	}
}

// look forgets what was collected of a session, and forgives engines in time.
func (g *grid) look(s *session) {
	forgets := s.set.Grid.Collection == job.CollectImmediately || s.set.Grid.Collection == job.CollectAfterSubmit
	over := func(k *strike) bool { return k.until > 0 && k.until <= g.now }
	if forgets && s.forgotten < s.collected || !s.state.Ended() && slices.ContainsFunc(s.strikes, over) {
		g.exclude(s)
	}
	if s.forgotten = s.collected; forgets {
		for _, t := range g.ofSession(s) {
			t.gone = t.fate == done && t.number > 0 && t.number <= s.collected
		}
	}
}

// settled tells those who waited for tasks that are over, and ends the sessions
// whose last task is.
func (g *grid) settled() {
	g.judged()
	for ; len(g.over) > 0; g.over = g.over[1:] {
		for _, t := range g.list(func(t *task) bool { return t.aside == g.over[0] }) {
			g.depends(t)
		}
	}
	for _, s := range g.sessions {
		n := g.counts(s)
		if n[open] > 0 || s.state == job.SessionOpen || s.state.Ended() {
			continue
		}
		switch {
		case s.state == job.SessionCancelling:
			s.state = job.SessionCancelled
		case n[failed]+n[cancelled] > 0:
			s.state = job.SessionErrors
		default:
			s.state = job.SessionDone
		}
		s.ended = g.now
	}
}

// depends puts a task aside that waits for another one, or fails it with one that
// failed.
func (g *grid) depends(t *task) {
	t.aside = nil
	for _, o := range t.needs {
		if o.state == job.Dead && !o.gone && t.onFail == job.DepFail {
			g.fails(t, job.Killed, false)
			return
		}
	}
	for _, o := range t.needs {
		if o.fate == open {
			t.aside = o
			return
		}
	}
}

// restart stops the server for a while. Streams end; what runs goes on, and
// machines have the re-attach window to come back.
func (g *grid) restart(away job.Millis) {
	g.now += away
	g.start++
	for _, m := range g.machines {
		m.until, m.awaited = g.now+reattach, true
	}
	for _, s := range g.sessions {
		s.heard = g.now
	}
	for _, t := range g.list(func(t *task) bool { return len(t.runs) > 0 }) {
		for _, r := range t.runs {
			if r.runEnd > 0 {
				r.runEnd = min(max(r.runEnd, g.now+reattach), g.overrun(t.session, g.now))
			}
			if r.startBy > 0 {
				r.startBy = min(max(r.startBy, g.now+reattach), g.now+t.session.set.StartTimeout)
			}
		}
	}
}
