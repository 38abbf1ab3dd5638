package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Ages are how old the oldest job of a queue is, by its state; 0 = there is none.
// Completed ones, which only wait to be forgotten, are not looked at.
type Ages [job.States]job.Millis

// StatusAges are the same by status, of a queue whose groups are given out in turns.
type StatusAges [rule.Statuses]job.Millis

// measureAges looks at the first job by id in each state, and with byStatus in each
// status, which is the oldest: one read for each that there is, however long the queue.
func measureAges(v store.Reader, queue string, there *Depth, byStatus bool) (ages Ages, is StatusAges, err error) {
	f := store.Filter{Queues: []string{queue}}
	for state := job.Scheduled; state < job.States; state++ {
		if state == job.Done || there.States[state] == 0 {
			continue
		}
		f.States = []job.State{state}
		if ages[state], err = ageOfFirst(v, f); err != nil {
			return ages, is, err
		}
	}
	f.States = nil
	for status := range rule.Statuses {
		if !byStatus || there.Status[status] == 0 {
			continue
		}
		f.Statuses = []rule.Status{status}
		if is[status], err = ageOfFirst(v, f); err != nil {
			return ages, is, err
		}
	}
	return ages, is, nil
}

// ageOfFirst is how old the first job by id is that a filter chooses; 0 = there is none.
func ageOfFirst(v store.Reader, f store.Filter) (job.Millis, error) {
	list, err := v.List(f, 1)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return max(v.Now()-list[0].Created, 1), nil
}

// TurnTally is what happened to the members of groups that are given out in turns.
type TurnTally struct {
	Latency   histogram.Histogram // Spans: from when a member was taken in until it was done
	Done      histogram.Histogram // Tries: at the how-manieth charged try it was done, 1 = the first
	Exhausted histogram.Histogram // Tries: after how many it was given up

	Ended uint64 // how many members became either
}

// Tries are the edges of attempts.
var Tries = histogram.Edges{1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500}

func (t *TurnTally) add(u *TurnTally) {
	if u.Ended == 0 {
		return
	}
	t.Ended += u.Ended
	t.Latency.Add(&u.Latency)
	t.Done.Add(&u.Done)
	t.Exhausted.Add(&u.Exhausted)
}

// noteTurn measures what became of a member of a group. Whose groups are not given
// out in turns costs a look at a name.
func (r *Tx) noteTurn(t *Tally, old, j *job.Job, eff *rule.Effect) {
	if old.Group == "" || len(eff.Ended) == 0 && !eff.Late {
		return
	}
	switch q, err := r.Queue(old.Queue); {
	case err != nil || !q.Turns:
	case j.State == job.Done || eff.Gone == job.Done:
		t.Turns.Ended++
		t.Turns.Latency.Observe(&histogram.Spans, max(0, int64(r.now-old.Created)))
		t.Turns.Done.Observe(&Tries, int64(old.Attempts)+1)
	case died(old, eff) && j.Reason == job.Exhausted:
		t.Turns.Ended++
		t.Turns.Exhausted.Observe(&Tries, int64(j.Attempts))
	}
}

// QueueMeasured is a queue as Measure tells of it, and the ages of its oldest jobs.
// own: it is counted by name since the start of the process; else only what there is
// now is told.
func (e *Engine) QueueMeasured(ctx context.Context, name string) (m QueueMeasures, own bool, err error) {
	m.Name = name
	m.Tally, own = e.meter.named(name)
	err = e.View(ctx, func(v store.Reader) error {
		m.Depth = v.Depth(name)
		q, err := QueueOf(v, name)
		if err == nil {
			m.InTurns = q.Turns
			m.Ages, m.StatusAges, err = measureAges(v, name, &m.Depth, q.Turns)
		}
		return err
	})
	return m, own, err
}

// named is the tally of a queue that has one of its own.
func (m *meter) named(queue string) (Tally, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.queues[queue]
	if t == nil {
		return Tally{}, len(m.queues) < m.max
	}
	return *t, true
}
