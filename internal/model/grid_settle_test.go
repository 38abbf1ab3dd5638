package model

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// What ends runs: engines by what they say of them, late or not, the clock, and
// engines that leave.

// settle ends a run by the word of its engine.
func (g *grid) settle(s engine.Settle) (job.State, job.Kind) {
	t := g.tasks[s.ID]
	if t == nil || t.gone {
		return job.None, job.NotFound
	}
	loading := s.Failure.Type == job.LoadError
	r := t.live(s.Token)
	if r == nil {
		return g.late(t, s)
	}
	why := job.AttemptError
	if s.Failure.Timeout { // its engine ended it by itself
		why = job.AttemptTimeout
	}
	t.losses, t.alone = 0, false
	switch s.Outcome {
	case job.OK:
		g.supersede(t, r)
		g.finish(t, r, job.ByOK, job.AttemptOK)
		t.result = s.Result
		g.overWith(t, done, job.Alive)
	case job.Retried:
		g.finish(t, r, job.ByRetry, why)
		t.charge(r)
		g.again(t, loading, t.session.set.Retry.Place)
		g.failed(t, r.machine)
	case job.Released:
		g.finish(t, r, job.ByRelease, job.AttemptReleased)
		t.evict(r)
		g.back(t, t.session.set.Grid.EvictedPlace)
	case job.Died:
		g.supersede(t, r)
		g.finish(t, r, job.ByDead, why)
		t.charge(r)
		g.fails(t, job.Killed, loading)
		g.failed(t, r.machine)
	}
	return t.state, accepted
}

func (t *task) evict(r *attempt) {
	t.evictions++
	r.charged = job.ChargedEviction
}

// late is the word about a run that is over: the same again is answered again, and
// a success counts yet if its engine had been given up for lost, while the task
// is open and nobody else commits.
func (g *grid) late(t *task, s engine.Settle) (job.State, job.Kind) {
	if s.Token.IsZero() {
		if t.state == job.Leased || t.state.Open() && s.Outcome == job.OK {
			return job.None, job.TokenNeeded
		}
		return job.None, job.NotFound
	}
	at := slices.IndexFunc(t.past, func(r *attempt) bool { return r.token == s.Token })
	known := at >= 0 && at >= len(t.past)-4 // of older ones only what became of them
	if known && t.past[at].how == endingOf[s.Outcome] {
		return t.state, accepted
	}
	commits := slices.ContainsFunc(t.runs, func(r *attempt) bool { return r.commits })
	lost := at < 0 || slices.Contains([]job.Ending{job.ByLapse, job.ByRestart, job.ByUndelivered}, t.past[at].how)
	if s.Outcome != job.OK || !t.state.Open() || commits || !lost || !known && s.Token.Start() >= g.start {
		return job.None, job.Superseded
	}
	for len(t.runs) > 0 {
		g.finish(t, t.runs[0], job.BySupersede, job.AttemptSuperseded)
	}
	r := &attempt{token: s.Token, since: g.now} // its take was forgotten by a crash, as far as anybody knows
	if at >= 0 {
		r = t.past[at]
	}
	t.past = slices.DeleteFunc(slices.Clone(t.past), func(o *attempt) bool { return o == r })
	g.finish(t, r, job.ByOK, job.AttemptLate)
	t.losses, t.result = 0, s.Result
	g.overWith(t, done, job.Alive)
	return t.state, accepted
}

// commit gives a run the word that its effects count.
func (g *grid) commit(t *task, token job.Token) bool {
	r := t.live(token)
	if r == nil {
		return false
	}
	g.supersede(t, r)
	r.commits, t.want = true, 1
	return true
}

// cancel gives a task up.
func (g *grid) cancel(t *task) {
	for len(t.runs) > 0 {
		g.finish(t, t.runs[0], job.ByCancel, job.AttemptCancelled)
	}
	g.overWith(t, cancelled, job.ReasonCancelled)
}

// timeOuts ends the runs that took too long, and those that did not begin in time.
func (g *grid) timeOuts() {
	late := func(at job.Millis) bool { return at > 0 && at <= g.now }
	for _, t := range g.list(func(t *task) bool { return len(t.runs) > 0 }) {
		var failures []string
		returned := 0
		for _, r := range slices.Clone(t.runs) {
			switch {
			case late(r.runEnd) && t.session.set.Grid.OnTimeout == job.TimeoutReschedule:
				if r.runEnd = 0; !t.barred() {
					g.oneMore(t)
				}
			case late(r.runEnd):
				g.finish(t, r, job.ByTimeout, job.AttemptTimeout)
				t.charge(r)
				g.toldToStop(r)
				failures = append(failures, r.machine)
			case late(r.startBy):
				g.finish(t, r, job.ByRelease, job.AttemptUndelivered)
				t.evict(r)
				returned++
			}
		}
		switch {
		case len(failures) > 0:
			g.again(t, false, t.session.set.Retry.Place)
		case returned > 0:
			t.want -= returned - 1 // back takes one off
			g.back(t, job.PlaceKeep)
		default:
			continue
		}
		g.fence(t)
		g.failed(t, failures...)
	}
}

// toldToStop: its engine gets nothing before it says that it stopped.
func (g *grid) toldToStop(r *attempt) {
	if m := g.machines[r.machine]; m != nil && !m.lost {
		m.stopping = append(m.stopping, r.token)
	}
}

// leaves ends the runs of a machine that is lost, logged off, or came back without
// them; keep says which it has yet.
func (g *grid) leaves(m *machine, how func(*attempt) job.Ending) {
	for _, t := range g.list(func(t *task) bool { return t.runsOn(m) }) {
		r := t.runs[slices.IndexFunc(t.runs, func(r *attempt) bool { return r.machine == m.name })]
		set := t.session.set
		switch how(r) {
		case job.ByLapse:
			g.finish(t, r, job.ByLapse, job.AttemptLost)
			g.lose(t, r)
		case job.ByEvict:
			g.finish(t, r, job.ByEvict, job.AttemptEvicted)
			t.evict(r)
			g.back(t, set.Grid.EvictedPlace)
		case job.ByUndelivered:
			g.finish(t, r, job.ByUndelivered, job.AttemptUndelivered)
			g.back(t, job.PlaceKeep)
		case job.ByRestart:
			g.finish(t, r, job.ByRestart, job.AttemptRestarted)
			g.back(t, job.PlaceKeep)
		default: // it goes on
			continue
		}
		g.fence(t)
	}
}

// lose is the loss of an engine: a failed attempt, or where losses are apart a
// loss. From half of their limit on only those count that had the task alone.
func (g *grid) lose(t *task, r *attempt) {
	set := t.session.set
	if set.Grid.LossesCharged {
		t.charge(r)
		g.again(t, false, cmp.Or(set.Grid.LostPlace, set.Retry.Place))
		return
	}
	if limit := set.Retry.LossLimitValue(); !t.alone || r.alone {
		t.losses++
		t.alone = 2*t.losses >= limit
		r.charged = job.ChargedLoss
	}
	if t.losses >= set.Retry.LossLimitValue() && len(t.runs) == 0 {
		t.want = 1
		g.fails(t, job.Lost, false)
		return
	}
	g.back(t, cmp.Or(set.Grid.LostPlace, job.PlaceFront))
}
