package guard

import (
	"context"
	"strconv"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Hold keeps a queue (group "") or a group out of line until about a date, see
// rule.HoldUntil. It returns the end of the hold. A hold that ends later stays.
func (s *Guard) Hold(ctx context.Context, queue, group string, until job.Millis, by job.Actor) (end job.Millis, err error) {
	err = s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		end = rule.HoldUntil(tx.Now(), until, tx.Uniform())
		return s.setHold(tx, by, "hold", queue, group, func(held job.Millis) job.Millis { end = max(held, end); return end })
	})
	return engine.Answered(&end, err)
}

// Release ends the hold of a queue (group "") or of a group.
func (s *Guard) Release(ctx context.Context, queue, group string, by job.Actor) error {
	return s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		return s.setHold(tx, by, "release", queue, group, func(job.Millis) job.Millis { return 0 })
	})
}

func (s *Guard) setHold(tx *engine.Tx, by job.Actor, action, queue, group string, end func(held job.Millis) job.Millis) error {
	tx.Store().Durable()
	tx.Wake(queue)
	if group != "" {
		old, err := tx.Gate(queue, group)
		if err != nil {
			return err
		}
		g := *old
		g.Hold = end(g.Hold)
		if err := tx.SetGate(&g); err != nil {
			return err
		}
		return auditHold(tx, by, action, queue, group, old.Hold, g.Hold)
	}
	q, err := tx.EditQueue(queue)
	if err != nil {
		return err
	}
	tx.SeeQueue(queue)
	held := q.HoldUntil
	q.HoldUntil = end(held)
	if err := tx.Store().Set(q); err != nil {
		return err
	}
	return auditHold(tx, by, action, queue, group, held, q.HoldUntil)
}

// auditHold notes a hold that was set, or ended, if it was.
func auditHold(tx *engine.Tx, by job.Actor, action, queue, group string, from, to job.Millis) error {
	if from == to {
		return nil
	}
	return tx.Audit(by, action, engine.SubjectOf(queue, group), 0, job.Change{
		Field: "hold_until", From: strconv.FormatInt(int64(from), 10), To: strconv.FormatInt(int64(to), 10),
	})
}

// ForceBreaker opens or closes the breaker of a queue (group "") or of a group
// until it is released, whether it has settings or not.
func (s *Guard) ForceBreaker(ctx context.Context, queue, group string, state job.BreakerState, by job.Actor) error {
	if state != job.BreakerOpen && state != job.BreakerClosed {
		return job.Errorf(job.Invalid, "a breaker can be forced open or closed")
	}
	return s.changeBreaker(ctx, by, "breaker "+state.String(), queue, group, func(_ *job.Breaker, t *job.Throttle, at rule.Moment) *job.Throttle {
		return rule.Force(t, state, at)
	})
}

// ReleaseBreaker lets a breaker decide by itself again. One that was open
// begins with a probe.
func (s *Guard) ReleaseBreaker(ctx context.Context, queue, group string, by job.Actor) error {
	return s.changeBreaker(ctx, by, "breaker auto", queue, group, rule.ReleaseForce)
}

func (s *Guard) changeBreaker(ctx context.Context, by job.Actor, action, queue, group string, change func(*job.Breaker, *job.Throttle, rule.Moment) *job.Throttle) error {
	return s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		q, err := tx.EditQueue(queue)
		if err != nil {
			return err
		}
		t, err := throttleOf(tx, queue, group)
		if err != nil {
			return err
		}
		tx.SeeQueue(queue)
		tx.Store().Durable()
		next := change(breakerOf(q, group), t, tx.Moment())
		if err := setThrottle(tx, next); err != nil {
			return err
		}
		if err := s.protect(tx, q); err != nil || next.Forced == t.Forced && next.State == t.State {
			return err
		}
		return tx.Audit(by, action, engine.SubjectOf(queue, group), 0)
	})
}
