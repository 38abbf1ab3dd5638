package guard

import (
	"context"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Aside is a queue (Group "") or a group that is held or slowed down.
type Aside struct {
	Group    string
	Hold     job.Millis // held until then; 0 = not held
	Throttle *job.Throttle
	Until    job.Millis // when the clock moves its breaker on, as a date; 0 = never
	SlowTo   job.Millis // when its rate gives more, as a date; 0 = it does
}

// heldMax bounds the held groups, of all queues, that a list looks at.
const heldMax = 10_000

// Asides lists what is held or slowed down in a queue: the queue itself first,
// then at most n groups by name.
func (s *Guard) Asides(ctx context.Context, queue string, n int) ([]Aside, error) {
	var out []Aside
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) (err error) {
		out, err = s.asides(tx, queue, n)
		return err
	})
	return engine.Answered(&out, err)
}

func (s *Guard) asides(tx *engine.Tx, queue string, n int) ([]Aside, error) {
	q, err := tx.Queue(queue)
	if err != nil {
		return nil, err
	}
	found := map[string]*Aside{}
	of := func(group string) *Aside {
		if found[group] == nil {
			found[group] = &Aside{Group: group}
		}
		return found[group]
	}
	if q.HoldUntil > 0 {
		of("").Hold = q.HoldUntil
	}
	held, err := tx.Store().DueRows(job.Gates, job.MaxMillis, min(n, 1)*heldMax)
	if err != nil {
		return nil, err
	}
	for _, row := range held {
		if g := row.(*job.Gate); g.Queue == queue {
			of(g.Group).Hold = g.Hold
		}
	}
	at := rule.Situation{Moment: tx.Moment()}
	throttles, err := store.RowsOfQueue[*job.Throttle](tx.Store(), queue)
	if err != nil {
		return nil, err
	}
	for _, t := range throttles {
		a := of(t.Group)
		a.Throttle, a.Until, a.SlowTo = t, at.Date(t.Until), at.Date(t.Slow)
	}
	out := make([]Aside, 0, len(found))
	for _, group := range slices.Sorted(maps.Keys(found)) {
		if group != "" {
			if n--; n < 0 {
				break
			}
		}
		out = append(out, *found[group])
	}
	return out, nil
}
