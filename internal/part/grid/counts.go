package grid

import (
	"context"
	"sync"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Tally is what happened to the tasks of all sessions since the start, the
// metrics of the reference on GridServer, section 8.
type Tally struct {
	Outcomes    [TaskOutcomes]uint64             // tasks that ended
	Ended       [job.Endings]uint64              // runs that ended, by how
	Charged     [RetryCauses]uint64              // retries, by what for
	Evictions   uint64                           // runs given back by a drain, a logoff or for another session
	Reschedules uint64                           // copies asked for: by a strategy, a timeout or a person
	Started     [job.RedundancyStrategies]uint64 // copies that strategies asked for
	Won         [job.RedundancyStrategies]uint64 // tasks whose copy was first
	Suppressed  map[string]uint64                // stragglers that got no copy, by what barred it
	Late        map[string]uint64                // results that came after the end of their run, by the answer
	Useful      job.Millis                       // of accepted results
	Redundant   job.Millis                       // of runs that were superseded
	Lateness    histogram.Histogram              // Spans: from the end of a run's time until the server acted on it
	Detection   histogram.Histogram              // Spans: from the last word of an engine until it was lost
}

// TaskOutcome is how a task ended.
type TaskOutcome uint8

// The outcomes of tasks.
const (
	TaskDone TaskOutcome = iota
	TaskFailed
	TaskCancelled
	TaskOutcomes
)

func (o TaskOutcome) String() string { return [...]string{"done", "failed", "cancelled"}[o] }

// RetryCause is why a retry was charged. What an attempt was charged as is a
// job.Charge.
type RetryCause uint8

// The causes.
const (
	CauseError   RetryCause = iota // its engine told of a failure
	CauseTimeout                   // the run took too long
	CauseLoss                      // its engine was lost, where that is charged
	RetryCauses
)

func (c RetryCause) String() string { return [...]string{"error", "timeout", "loss"}[c] }

// newTally counts nothing yet, of everything.
func newTally() Tally {
	g := Tally{Suppressed: map[string]uint64{}, Late: map[string]uint64{}}
	for _, bar := range []string{plan.BarBusy.String(), plan.BarRunning.String(), plan.BarSeconds.String(), noHost, atLimit} {
		g.Suppressed[bar] = 0
	}
	for _, a := range []rule.Answer{rule.AnswerAccepted, rule.AnswerSuperseded, rule.AnswerIgnored} {
		g.Late[a.String()] = 0
	}
	return g
}

func (g *Tally) add(t *Tally) {
	for i, n := range t.Outcomes {
		g.Outcomes[i] += n
	}
	for i, n := range t.Ended {
		g.Ended[i] += n
	}
	for i, n := range t.Charged {
		g.Charged[i] += n
	}
	g.Evictions += t.Evictions
	g.Reschedules += t.Reschedules
	for i, n := range t.Started {
		g.Started[i] += n
		g.Won[i] += t.Won[i]
	}
	g.Suppressed = sum(g.Suppressed, t.Suppressed)
	g.Late = sum(g.Late, t.Late)
	g.Useful += t.Useful
	g.Redundant += t.Redundant
	g.Lateness.Add(&t.Lateness)
	g.Detection.Add(&t.Detection)
}

// sum adds counts to a map that others may be reading: it makes another one.
func sum(all, more map[string]uint64) map[string]uint64 {
	if len(more) == 0 {
		return all
	}
	out := make(map[string]uint64, len(all)+len(more))
	for _, m := range []map[string]uint64{all, more} {
		for k, n := range m {
			out[k] += n
		}
	}
	return out
}

// counts is the room of what is counted, for monitoring.
type counts struct {
	*Grid
	own  Tally // of the transaction
	seen bool  // something is in it

	mu    sync.Mutex // guards tally
	tally Tally
}

func newCounts(g *Grid) *counts { return &counts{Grid: g, tally: newTally()} }

func (g *counts) begin() {
	if g.seen {
		g.own, g.seen = Tally{}, false
	}
}

func (g *counts) publish() {
	if !g.seen {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tally.add(&g.own)
	g.begin()
}

// staged is what the transaction has seen of tasks.
func (g *counts) staged() *Tally {
	g.seen = true
	return &g.own
}

// task counts what a step did to a task.
func (g *counts) task(tx *engine.Tx, c *rule.Command, old, j *job.Job, eff *rule.Effect) {
	t := g.counts.staged()
	for i := range eff.Ended {
		l := &eff.Ended[i]
		how := eff.HowEnded(c.Verb, l)
		t.Ended[how]++
		switch took := max(0, tx.Now()-max(l.Since, l.Started)); {
		case how == job.ByOK:
			t.Useful += took
		case how == job.BySupersede:
			t.Redundant += took
		case how == job.ByTimeout && l.RunEnd > 0:
			t.Lateness.Observe(&histogram.Spans, max(0, int64(tx.Now()-l.RunEnd)))
		}
	}
	if eff.Late {
		t.late(rule.AnswerAccepted)
	}
	if eff.AtLimit {
		t.suppressed(atLimit)
	}
	if old == nil {
		return
	}
	if j.Attempts > old.Attempts {
		t.Charged[causeOf(c, eff)] += uint64(j.Attempts - old.Attempts)
	}
	if j.Evictions > old.Evictions {
		t.Evictions += uint64(j.Evictions - old.Evictions)
	}
	if j.Reschedules > old.Reschedules {
		t.Reschedules += uint64(j.Reschedules - old.Reschedules)
	}
	switch {
	case !old.State.Open():
	case j.State == job.Done:
		t.Outcomes[TaskDone]++
	case j.State == job.Dead && !rule.Fails(c):
		t.Outcomes[TaskCancelled]++
	case j.State == job.Dead:
		t.Outcomes[TaskFailed]++
	}
}

func causeOf(c *rule.Command, eff *rule.Effect) RetryCause {
	n := len(eff.Failures)
	switch {
	case n > 0 && eff.Failures[n-1].Timeout:
		return CauseTimeout
	case c.Verb == rule.Lapse:
		return CauseLoss
	}
	return CauseError
}

// refused counts a result of a task that was thrown away.
func (g *counts) refused(j *job.Job, o job.Outcome, eff rule.Effect, err error) {
	if j.Door != job.DoorGrid {
		return
	}
	a, ok := rule.Answered(o == job.OK, eff, err)
	if ok && (a == rule.AnswerSuperseded || a == rule.AnswerIgnored) {
		g.counts.staged().late(a)
	}
}

func (g *Tally) suppressed(bar string) {
	g.Suppressed = sum(g.Suppressed, map[string]uint64{bar: 1})
}

func (g *Tally) late(a rule.Answer) {
	g.Late = sum(g.Late, map[string]uint64{a.String(): 1})
}

// Now is the grid as it is now: of all sessions together that are not over.
type Now struct {
	Sessions int
	Target   int                   // slots they should have
	Actual   int                   // that they have
	Excluded int                   // engines that are given nothing, added up over the sessions
	Engines  [job.HealthStates]int // that are not lost, by health
}

// Measure tells what was counted, and how the grid is now; ok is false where the server
// cannot tell that.
func (g *Grid) Measure(ctx context.Context) (t Tally, now Now, ok bool) {
	g.counts.mu.Lock()
	t = g.counts.tally
	g.counts.mu.Unlock()
	now, err := engine.Ask(ctx, g.engine, func(tx *engine.Tx) (m Now, err error) {
		err = store.EachRow(tx.Store(), "", func(s *job.Session) error {
			if s.State >= job.SessionDone {
				return nil
			}
			m.Sessions++
			share, err := g.shares.of(tx, s)
			m.Target += share
			m.Actual += int(tx.Store().Depth(s.Name).Leases)
			m.Excluded += excludedBy(s)
			return err
		})
		if err != nil {
			return m, err
		}
		return m, g.fleet.each(tx, func(h *job.Holder) error {
			if !h.Engine.Lost {
				m.Engines[h.Engine.Health.State]++
			}
			return nil
		})
	})
	return t, now, err == nil
}

func excludedBy(s *job.Session) (n int) {
	for i := range s.Strikes {
		n += oneIf(s.Strikes[i].Out)
	}
	return n
}
