package sim_test

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
)

// What engines say of their runs, and settings of sessions under which a history
// of 60 to 100 steps comes to copies by every strategy, exclusions, fences, tags
// and clients that are given up.

// drawGrid draws the settings of a session that are about more than its limits.
func (w *world) drawGrid(q *job.Queue, number int) {
	g := q.Grid
	switch w.dice.IntN(6) {
	case 0, 1, 2, 3: // one strategy, mostly: of several the first to say so is told
		by := job.RedundancyStrategy(w.dice.IntN(int(job.RedundancyStrategies)))
		red := job.DefaultRedundancy()
		red.Strategies, red.AlsoBusy, red.RunningShare, red.SecondsShare = job.RedundancyOf(by), !w.oneIn(4), 1, 1
		red.MinSamples, red.HedgeSamples, red.TailDone, red.MedianDone = 1, 1, 0, 0.2
		red.MeanFactor, red.MedianFactor, red.LeftFactor, red.Deviations = 1, 1, 1, 0
		red.MedianAge, red.HedgeQuantile, red.CloneTasks, red.CloneRisk = 1, 0.5, 100, 0.001
		if w.oneIn(6) {
			red.RunningShare, red.SecondsShare, red.SecondsBurst = 0, 0, 5*job.Second // one at a time, and not for long
		}
		g.Redundancy, g.MaxCopies, g.MaxReschedules, q.RunTimeout = &red, uint8(2+w.dice.IntN(2)), uint32(1+w.dice.IntN(3)), 0
	case 4:
		q.NonIdempotent, g.FenceWait = true, job.Millis(w.dice.IntN(3))*5*job.Second
	}
	if w.oneIn(3) {
		g.Exclusion = &job.Exclusion{Failures: 1 + w.dice.IntN(2), EachFailure: w.oneIn(2), MaxFraction: 0.5, TTL: pick(w, []job.Millis{0, 20 * job.Second})}
	}
	if w.oneIn(2) {
		g.AffinityWait = pick(w, []job.Millis{3 * job.Second, 20 * job.Second})
	}
	if number > 0 && w.oneIn(3) {
		g.ClientTimeout, g.Collection = 30*job.Second, job.CollectImmediately
	}
}

// holes are the settings by which engines are taken for black holes.
func (w *world) holes() *job.BlackHoles {
	if w.grid == nil || w.seed/gridShare%2 == 0 {
		return nil
	}
	return &job.BlackHoles{Failures: 2, Fast: job.Minute, Elsewhere: 0.5, Suspended: 5 * job.Second, Quarantined: 20 * job.Second, MaxFraction: 0.5}
}

// beginRuns says of some runs that they began, and how far they are; at times one
// asks whether its effects count.
func (w *world) beginRuns() {
	if w.beat(); len(w.hands) == 0 {
		return
	}
	if w.oneIn(6) {
		w.tryCommit()
		return
	}
	w.begin()
}

// begin says of most runs that they began.
func (w *world) begin() {
	var list []engine.Extension
	c := &call{}
	for _, h := range w.hands {
		if w.oneIn(6) {
			continue
		}
		x := engine.Extension{ID: h.d.Job.ID, Token: h.d.Lease.Token, Started: true}
		if w.grid.began[x.Token] == 0 {
			w.grid.began[x.Token] = w.clock.mono()
		}
		if w.oneIn(2) {
			x.Progress = &job.RunProgress{Fraction: pick(w, []float64{0, 0.1, 0.5})}
		}
		list = append(list, x)
		c.reqs = append(c.reqs, &request{kind: askExtend, id: x.ID, extension: x, text: fmt.Sprintf("%s begins %s %x", h.h.name, w.judge.name(x.ID), x.Token[:6])})
		w.say("    %s", c.reqs[len(c.reqs)-1])
	}
	if len(list) == 0 {
		return
	}
	var out []engine.Verdict
	var err error
	c.finish = func() string {
		if err != nil {
			return w.refusal("begin", err)
		}
		for i, r := range c.reqs {
			w.verdict(r, out[i])
		}
		return "begun"
	}
	w.start(c, func() { out, err = w.e.Extend(w.ctx, list) })
}

// gridTime lets time pass, mostly for engines that work and say so.
func (w *world) gridTime() {
	switch w.dice.IntN(4) {
	case 0:
		w.beat()
	case 1, 2:
		w.beginRuns()
	default:
		w.overrun()
		return
	}
	w.settle()
	w.timePasses()
}

// tryCommit asks for a run whether its effects count.
func (w *world) tryCommit() {
	h := pick(w, w.hands)
	j, token := w.judge.book.jobs[h.d.Job.ID], h.d.Lease.Token
	if j == nil {
		return
	}
	live := j.LeaseOf(token) >= 0
	sure := w.sure()
	r := &request{kind: askExtend, id: j.ID, extension: engine.Extension{ID: j.ID, Token: token}}
	r.text = fmt.Sprintf("%s asks to commit %s", h.h.name, w.judge.name(j.ID))
	w.say("    %s", r)
	var yes bool
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		switch {
		case err != nil:
			return w.refusal("commit", err, job.NotFound)
		case sure && yes != live:
			broken("A19", "%s: %t, and the run is live: %t", r, yes, live)
		case yes:
			r.acked = r.commit > 0
			w.judge.coverage.feature("a run may commit")
		}
		return fmt.Sprintf("told %t", yes)
	}
	w.start(c, func() { yes, _, err = w.e.Grid.TryCommit(w.ctx, j.Queue, j.ID, token) })
}

// redundant notes what fired in the sessions of this life.
func (w *world) redundant() {
	for _, name := range w.grid.sessions {
		var s grid.SessionState
		var err error
		w.start(&call{finish: func() string {
			if err == nil {
				w.fired(&s.Redundant)
			}
			return name + " was looked at"
		}}, func() { s, err = w.e.Grid.Session(w.ctx, name) })
	}
}

func (w *world) fired(r *grid.Redundant) {
	for by, n := range r.Started {
		if n > 0 {
			w.judge.coverage.feature("copies by " + job.RedundancyStrategy(by).String())
		}
	}
	for why := range r.Suppressed {
		w.judge.coverage.feature("no copy: " + why)
	}
	if r.Withdrawn > 0 {
		w.judge.coverage.feature("a copy withdrawn")
	}
}
