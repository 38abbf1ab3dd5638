package engine

import (
	"context"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// GridTally is what happened to the tasks of all sessions since the start, the
// metrics of the reference on GridServer, section 8.
type GridTally struct {
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
	Lateness    Histogram                        // Spans: from the end of a run's time until the server acted on it
	Detection   Histogram                        // Spans: from the last word of an engine until it was lost
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

// newGridTally counts nothing yet, of everything.
func newGridTally() GridTally {
	g := GridTally{Suppressed: map[string]uint64{}, Late: map[string]uint64{}}
	for _, bar := range []string{rule.BarBusy.String(), rule.BarRunning.String(), rule.BarSeconds.String(), noHost, atLimit} {
		g.Suppressed[bar] = 0
	}
	for _, a := range []rule.Answer{rule.AnswerAccepted, rule.AnswerSuperseded, rule.AnswerIgnored} {
		g.Late[a.String()] = 0
	}
	return g
}

func (g *GridTally) add(t *GridTally) {
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
	g.Lateness.add(&t.Lateness)
	g.Detection.add(&t.Detection)
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

// noteTask counts what a step did to a task.
func (r *Tx) noteTask(c *rule.Command, old, j *job.Job, eff *rule.Effect) {
	g := r.c.stage.ofGrid()
	for i := range eff.Ended {
		l := &eff.Ended[i]
		how := eff.HowEnded(c.Verb, l)
		g.Ended[how]++
		switch took := max(0, r.now-max(l.Since, l.Started)); {
		case how == job.ByOK:
			g.Useful += took
		case how == job.BySupersede:
			g.Redundant += took
		case how == job.ByTimeout && l.RunEnd > 0:
			g.Lateness.observe(&Spans, max(0, int64(r.now-l.RunEnd)))
		}
	}
	if eff.Late {
		g.late(rule.AnswerAccepted)
	}
	if eff.AtLimit {
		g.suppressed(atLimit)
	}
	if old == nil {
		return
	}
	if j.Attempts > old.Attempts {
		g.Charged[causeOf(c, eff)] += uint64(j.Attempts - old.Attempts)
	}
	if j.Evictions > old.Evictions {
		g.Evictions += uint64(j.Evictions - old.Evictions)
	}
	if j.Reschedules > old.Reschedules {
		g.Reschedules += uint64(j.Reschedules - old.Reschedules)
	}
	switch {
	case !old.State.Open():
	case j.State == job.Done:
		g.Outcomes[TaskDone]++
	case j.State == job.Dead && cancelled(c):
		g.Outcomes[TaskCancelled]++
	case j.State == job.Dead:
		g.Outcomes[TaskFailed]++
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

// noteAnswer counts a result of a task that was thrown away.
func (r *Tx) noteAnswer(o job.Outcome, eff rule.Effect, err error) {
	a, ok := rule.Answered(o == job.OK, eff, err)
	if ok && (a == rule.AnswerSuperseded || a == rule.AnswerIgnored) {
		r.c.stage.ofGrid().late(a)
	}
}

func (g *GridTally) suppressed(bar string) {
	g.Suppressed = sum(g.Suppressed, map[string]uint64{bar: 1})
}

func (g *GridTally) late(a rule.Answer) {
	g.Late = sum(g.Late, map[string]uint64{a.String(): 1})
}

// ofGrid is what one run of a batch has seen of tasks.
func (s *stage) ofGrid() *GridTally {
	s.gridSeen = true
	return &s.grid
}

// GridMeasures is the grid as it is now: of all sessions together that are not over.
type GridMeasures struct {
	Sessions int
	Target   int                   // slots they should have
	Actual   int                   // that they have
	Excluded int                   // engines that are given nothing, added up over the sessions
	Engines  [job.HealthStates]int // that are not lost, by health
}

// isSession reports whether a queue is one, whose name is an id.
func isSession(v store.Reader, name string) (bool, error) {
	q, err := queueOf(v, name)
	return err == nil && q.Grid != nil, err
}

// gridIn reports whether there is a session or an engine.
func gridIn(v store.Reader) (bool, error) {
	rows, err := v.Rows(job.Sessions, "", 1)
	if err != nil || len(rows) > 0 {
		return len(rows) > 0, err
	}
	rows, err = v.Rows(job.Holders, machinePrefix, 1)
	return len(rows) > 0 && strings.HasPrefix(rows[0].Key(), machinePrefix), err
}

// measureGrid looks at sessions and engines; they are the committer's.
func (e *Engine) measureGrid(ctx context.Context) (m GridMeasures, err error) {
	err = e.Do(ctx, 0, func(r *Tx) error {
		m = GridMeasures{}
		rows, err := r.tx.Rows(job.Sessions, "", 1<<30)
		if err != nil {
			return err
		}
		for _, row := range rows {
			s := row.(*job.Session)
			if s.State >= job.SessionDone {
				continue
			}
			m.Sessions++
			m.Target += r.shareOf(s.Name)
			m.Actual += int(r.tx.Depth(s.Name).Leases)
			m.Excluded += excludedBy(s)
		}
		return r.machines(func(h *job.Holder) error {
			if !h.Machine.Lost {
				m.Engines[h.Machine.Health.State]++
			}
			return nil
		})
	})
	return Answered(&m, err)
}

func excludedBy(s *job.Session) (n int) {
	for i := range s.Strikes {
		n += oneIf(s.Strikes[i].Out)
	}
	return n
}
