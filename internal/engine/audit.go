package engine

import "github.com/reprisehq/reprise/internal/job"

// Audit notes who did what, in the transaction in which it is done.
func (r *Tx) Audit(by job.Actor, action, subject string, count int64, changes ...job.Change) error {
	return r.e.parts.audit(r, &job.Audit{
		ID: r.ids.Next(r.now), At: r.now, By: by, Action: action, Subject: subject, Count: count, Changes: changes,
	})
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

// SubjectOf names a queue (group "") or a group in the audit log.
func SubjectOf(queue, group string) string {
	if group == "" {
		return "queue " + queue
	}
	return "group " + group + " of queue " + queue
}
