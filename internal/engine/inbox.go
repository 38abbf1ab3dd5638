package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Pause takes an open job out of line until Resume; a running one once it is back.
// Its due time stays. WrongState: it is finished.
func (e *Engine) Pause(ctx context.Context, by job.Actor, id job.ID) (Verdict, error) {
	return e.operated(ctx, by, "pause", id, (*Tx).pause)
}

// Resume brings a paused job back into line; one that is not paused stays as it is.
func (e *Engine) Resume(ctx context.Context, by job.Actor, id job.ID) (Verdict, error) {
	return e.operated(ctx, by, "resume", id, (*Tx).resume)
}

// RetryNow calls up a job that waits for its time, and brings a dead one back as a
// replay does. WrongState: it is ready, runs, is done, or its strict group went on
// without it.
func (e *Engine) RetryNow(ctx context.Context, by job.Actor, id job.ID) (Verdict, error) {
	return e.operated(ctx, by, "retry now", id, (*Tx).retryNow)
}

// PauseAll, ResumeAll and RetryAllNow change every job that the search chooses, see
// DeleteAll. Refused are those that the call for one of them refuses with
// WrongState. The caller notes them in the audit log (Note).
func (e *Engine) PauseAll(ctx context.Context, s Search) (done, refused int64, err error) {
	return e.Bulk(ctx, s, func(r *Tx, j *job.Job) error { _, err := r.pause(j); return err })
}

// ResumeAll is described at PauseAll.
func (e *Engine) ResumeAll(ctx context.Context, s Search) (done, refused int64, err error) {
	return e.Bulk(ctx, s, func(r *Tx, j *job.Job) error { _, err := r.resume(j); return err })
}

// RetryAllNow is described at PauseAll.
func (e *Engine) RetryAllNow(ctx context.Context, s Search) (done, refused int64, err error) {
	return e.Bulk(ctx, s, func(r *Tx, j *job.Job) error { _, err := r.retryNow(j); return err })
}

func (r *Tx) pause(j *job.Job) (rule.Effect, error) {
	return r.Step(j, rule.Command{Verb: rule.Patch, Edit: rule.Pause})
}

func (r *Tx) resume(j *job.Job) (rule.Effect, error) {
	return r.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) { rule.Resume(n, r.paused) }})
}

func (r *Tx) retryNow(j *job.Job) (rule.Effect, error) {
	return r.Step(j, rule.Command{Verb: rule.Revive})
}

// operated does what an operator asks of one job, and notes it.
func (e *Engine) operated(ctx context.Context, by job.Actor, action string, id job.ID, act func(*Tx, *job.Job) (rule.Effect, error)) (Verdict, error) {
	var out Verdict
	err := e.Do(ctx, 0, func(r *Tx) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if j == nil || !Visible(r.tx, j) {
			return NoJob(id)
		}
		eff, err := act(r, j)
		if err != nil {
			return err
		}
		if out, err = VerdictOf(eff, nil); err != nil {
			return err
		}
		return r.Audit(by, action, id.String(), 1)
	})
	return Answered(&out, err)
}

// PauseGroup takes a whole group out of line, whoever arrives, until ResumeGroup.
func (e *Engine) PauseGroup(ctx context.Context, by job.Actor, queue, group string) error {
	return e.pauseGroup(ctx, by, queue, group, true)
}

// ResumeGroup ends what PauseGroup began.
func (e *Engine) ResumeGroup(ctx context.Context, by job.Actor, queue, group string) error {
	return e.pauseGroup(ctx, by, queue, group, false)
}

func (e *Engine) pauseGroup(ctx context.Context, by job.Actor, queue, group string, paused bool) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		g, err := r.Gate(queue, group)
		if err != nil || g.Paused == paused {
			return err
		}
		changed := *g
		changed.Paused = paused
		r.tx.Durable()
		r.woken[queue] = true
		if err := r.SetGate(&changed); err != nil {
			return err
		}
		action := map[bool]string{true: "pause", false: "resume"}[paused]
		if err := r.Audit(by, action, SubjectOf(queue, group), 0); err != nil {
			return err
		}
		return r.sweepGate(queue, group)
	})
}

// RetryHead does RetryNow on the head of a group. NotFound: the group has no members.
func (e *Engine) RetryHead(ctx context.Context, by job.Actor, queue, group string) (Verdict, error) {
	return e.headed(ctx, by, "retry now", queue, group, (*Tx).retryNow)
}

// SkipHead gives up the head of a group, see SkipJob. NotFound: the group has no members.
func (e *Engine) SkipHead(ctx context.Context, by job.Actor, queue, group string) (Verdict, error) {
	return e.headed(ctx, by, "skip", queue, group, (*Tx).skip)
}

// SkipJob gives up a job, so that its group goes on without it: it is dead, and does not
// hold the group. WrongState: it is finished, and holds nobody up.
func (e *Engine) SkipJob(ctx context.Context, by job.Actor, id job.ID) (Verdict, error) {
	return e.operated(ctx, by, "skip", id, (*Tx).skip)
}

// SkipAll does so with every job that the search chooses, see PauseAll.
func (e *Engine) SkipAll(ctx context.Context, s Search) (done, refused int64, err error) {
	return e.Bulk(ctx, s, func(r *Tx, j *job.Job) error { _, err := r.skip(j); return err })
}

func (r *Tx) skip(j *job.Job) (rule.Effect, error) {
	c := rule.Command{Verb: rule.Cancel, Reason: job.Killed, Failure: job.Failure{Type: "Skipped", Message: "skipped by an operator"}}
	if j.State == job.Dead && j.Blocks { // it steps aside as it died
		c.Reason, c.Failure = j.Reason, job.Failure{}
		eff, err := r.Step(j, rule.Command{Verb: rule.Revive, Remaining: true})
		if err != nil {
			return eff, err
		}
		j = eff.Job
	}
	return r.Step(j, c)
}

// headed does what an operator asks of the head of a group, and notes it.
func (e *Engine) headed(ctx context.Context, by job.Actor, action, queue, group string, act func(*Tx, *job.Job) (rule.Effect, error)) (Verdict, error) {
	var out Verdict
	err := e.Do(ctx, 0, func(r *Tx) error {
		first, err := r.tx.Members(queue, group, 1)
		if err != nil {
			return err
		}
		if len(first) == 0 {
			return job.Errorf(job.NotFound, "group %q of queue %q has no members", group, queue)
		}
		j, err := r.tx.Get(first[0])
		if err != nil {
			return err
		}
		eff, err := act(r, j)
		if err != nil {
			return err
		}
		if out, err = VerdictOf(eff, nil); err != nil {
			return err
		}
		return r.Audit(by, action, first[0].String()+" of "+SubjectOf(queue, group), 1)
	})
	return Answered(&out, err)
}
