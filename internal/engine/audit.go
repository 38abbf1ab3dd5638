package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// How long the audit log keeps its entries. There are at most Options.AuditMax of
// admins and about tokens, and as many others. Of a full half the author with the
// most loses the oldest: nobody can push out what others did.
const (
	auditKeep = 90 * job.Day
	auditDrop = 100 // leave together at most, so that finding them costs little
	auditFew  = 10  // where nobody has so many to give, the oldest leave, whoever wrote them
)

// The actions about tokens, whose entries nobody but an admin pushes out.
const (
	auditToken  = "token"
	auditRevoke = "revoke"
)

// author is whose entries of the audit log count together.
type author struct {
	apart bool // in the half of the admins
	name  string
}

func authorOf(a *job.Audit) author {
	return author{a.By.Admin || a.Action == auditToken || a.Action == auditRevoke, a.By.Name}
}

// audits is how many entries of the audit log there are, or how that changes.
type audits map[author]int

func (a *audits) add(who author, n int) {
	if *a == nil {
		*a = audits{}
	}
	if (*a)[who] += n; (*a)[who] == 0 {
		delete(*a, who)
	}
}

// half counts one half, and finds who has the most in it.
func (r *Tx) half(apart bool) (all, most int, busiest author) {
	look := func(who author, n int) {
		if who.apart != apart {
			return
		}
		if all += n; n > most || n == most && who.name < busiest.name { // a transaction may run twice, and alike
			most, busiest = n, who
		}
	}
	for who, n := range r.c.audits {
		look(who, n+r.audits[who])
	}
	for who, n := range r.audits {
		if r.c.audits[who] == 0 {
			look(who, n)
		}
	}
	return all, most, busiest
}

// Audit notes who did what, in the transaction in which it is done.
func (r *Tx) Audit(by job.Actor, action, subject string, count int64, changes ...job.Change) error {
	entry := &job.Audit{
		ID: r.ids.Next(r.now), At: r.now, By: by, Action: action, Subject: subject, Count: count,
		Changes: changes, Expires: r.now.Add(auditKeep),
	}
	who := authorOf(entry)
	if all, most, busiest := r.half(who.apart); all >= r.e.opts.AuditMax {
		leave, anybody := min(most/2, auditDrop), false
		if leave < auditFew {
			leave, anybody = auditDrop, true
		}
		if err := r.dropAudits(leave, func(a author) bool { return a == busiest || anybody && a.apart == who.apart }); err != nil {
			return err
		}
	}
	r.audits.add(who, 1)
	r.tx.Durable()
	return r.tx.Set(entry)
}

// dropAudits drops the n oldest entries of some authors.
func (r *Tx) dropAudits(n int, of func(author) bool) error {
	rows, err := r.tx.Rows(job.Audits, "", 1<<30)
	if err != nil {
		return err
	}
	for _, row := range rows {
		who := authorOf(row.(*job.Audit))
		if !of(who) {
			continue
		}
		if n--; n < 0 {
			break
		}
		if err := r.tx.Unset(job.Audits, row.Key()); err != nil {
			return err
		}
		r.audits.add(who, -1)
	}
	return nil
}

// QueueChanges names the settings that differ, but for Paused, in the words in
// which people set them.
type QueueChanges func(from, to *job.Queue) []job.Change

// AuditQueue notes what an operator changed of a queue, if anything: stopping
// and starting it apart from the other settings.
func (r *Tx) AuditQueue(by job.Actor, from, to *job.Queue) error {
	if from.Paused != to.Paused {
		action := map[bool]string{true: "pause", false: "resume"}[to.Paused]
		if err := r.Audit(by, action, SubjectOf(to.Name, ""), 0); err != nil {
			return err
		}
	}
	if r.e.opts.Changes == nil {
		return nil
	}
	if changes := r.e.opts.Changes(from, to); changes != nil {
		return r.Audit(by, "set", SubjectOf(to.Name, ""), 0, changes...)
	}
	return nil
}

// AuditHold notes a hold that was set, or ended, if it was.
func (r *Tx) AuditHold(by job.Actor, action, queue, group string, from, to job.Millis) error {
	if from == to {
		return nil
	}
	return r.Audit(by, action, SubjectOf(queue, group), 0, job.Change{
		Field: "hold_until", From: strconv.FormatInt(int64(from), 10), To: strconv.FormatInt(int64(to), 10),
	})
}

// SubjectOf names a queue (group "") or a group in the audit log.
func SubjectOf(queue, group string) string {
	if group == "" {
		return "queue " + queue
	}
	return "group " + group + " of queue " + queue
}

// Audits returns up to n entries of the audit log, newest first, those before
// an entry if that is given.
func (e *Engine) Audits(ctx context.Context, before job.ID, n int) (list []*job.Audit, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		rows, err := v.Rows(job.Audits, "", 2*e.opts.AuditMax+auditDrop)
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
	return e.Do(ctx, 0, func(r *Tx) error { return r.Audit(by, action, subject, count) })
}
