package engine

import (
	"context"
	"slices"

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
func (r *run) audit(by job.Actor, action, subject string, count int64) error {
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
		ID: r.ids.Next(r.now), At: r.now, By: by, Action: action, Subject: subject, Count: count, Expires: r.now.Add(auditKeep),
	})
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
