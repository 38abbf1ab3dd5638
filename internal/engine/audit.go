package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// How long the audit log keeps its entries. There are at most Options.AuditMax;
// the oldest leave first.
const (
	auditKeep = 90 * job.Day
	auditDrop = 100 // leave together, so that finding them costs little
)

// audit notes who did what, in the transaction in which it is done.
func (r *run) audit(by job.Actor, action, subject string, count int64, changes ...job.Change) error {
	if r.c.audits+r.audits >= r.e.opts.AuditMax {
		oldest, err := r.tx.Rows(job.Audits, "", auditDrop)
		if err != nil {
			return err
		}
		for _, row := range oldest {
			if err := r.tx.Unset(job.Audits, row.Key()); err != nil {
				return err
			}
		}
		r.audits -= len(oldest)
	}
	r.audits++
	r.tx.Durable()
	return r.tx.Set(&job.Audit{
		ID: r.ids.Next(r.now), At: r.now, By: by, Action: action, Subject: subject, Count: count,
		Changes: changes, Expires: r.now.Add(auditKeep),
	})
}

// QueueChanges names the settings that differ, but for Paused, in the words in
// which people set them.
type QueueChanges func(from, to *job.Queue) []job.Change

// auditQueue notes what an operator changed of a queue, if anything: stopping
// and starting it apart from the other settings.
func (r *run) auditQueue(by job.Actor, from, to *job.Queue) error {
	if from.Paused != to.Paused {
		action := map[bool]string{true: "pause", false: "resume"}[to.Paused]
		if err := r.audit(by, action, subjectOf(to.Name, ""), 0); err != nil {
			return err
		}
	}
	if r.e.opts.Changes == nil {
		return nil
	}
	if changes := r.e.opts.Changes(from, to); changes != nil {
		return r.audit(by, "set", subjectOf(to.Name, ""), 0, changes...)
	}
	return nil
}

// auditHold notes a hold that was set, or ended, if it was.
func (r *run) auditHold(by job.Actor, action, queue, group string, from, to job.Millis) error {
	if from == to {
		return nil
	}
	return r.audit(by, action, subjectOf(queue, group), 0, job.Change{
		Field: "hold_until", From: strconv.FormatInt(int64(from), 10), To: strconv.FormatInt(int64(to), 10),
	})
}

// subjectOf names a queue (group "") or a group in the audit log.
func subjectOf(queue, group string) string {
	if group == "" {
		return "queue " + queue
	}
	return "group " + group + " of queue " + queue
}

// Audits returns up to n entries of the audit log, newest first, those before
// an entry if that is given.
func (e *Engine) Audits(ctx context.Context, before job.ID, n int) (list []*job.Audit, err error) {
	err = e.view(ctx, func(v store.Reader) error {
		rows, err := v.Rows(job.Audits, "", e.opts.AuditMax+auditDrop)
		for _, row := range slices.Backward(rows) {
			if a := row.(*job.Audit); len(list) < n && (before.IsZero() || a.ID.Before(before)) {
				list = append(list, a)
			}
		}
		return err
	})
	return list, err
}

// Note writes an entry of the audit log for what was done in another call.
func (e *Engine) Note(ctx context.Context, by job.Actor, action, subject string, count int64) error {
	return e.do(ctx, 0, func(r *run) error { return r.audit(by, action, subject, count) })
}
