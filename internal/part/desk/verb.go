package desk

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

var (
	// Delete removes a job in any state; a running one is cancelled first, so a
	// later settle of its holder finds nothing.
	Delete = Verb{name: "delete", hidden: true, act: func(tx *engine.Tx, j *job.Job) (rule.Effect, error) {
		return rule.Effect{}, tx.Remove(j)
	}}

	// Pause takes an open job out of line until Resume; a running one once it is back.
	// Its due time stays. WrongState: it is finished.
	Pause = Verb{name: "pause", act: func(tx *engine.Tx, j *job.Job) (rule.Effect, error) {
		return tx.Step(j, rule.Command{Verb: rule.Patch, Edit: rule.Pause})
	}}

	// Resume brings a paused job back into line; one that is not paused stays as it is.
	Resume = Verb{name: "resume", act: func(tx *engine.Tx, j *job.Job) (rule.Effect, error) {
		return tx.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) { rule.Resume(n, tx.Paused) }})
	}}

	// RetryNow calls up a job that waits for its time, and brings a dead one back as a
	// replay does. WrongState: it is ready, runs, is done, or its strict group went on
	// without it.
	RetryNow = Verb{name: "retry now", act: func(tx *engine.Tx, j *job.Job) (rule.Effect, error) {
		return tx.Step(j, rule.Command{Verb: rule.Revive})
	}}

	// Skip gives up a job, so that its group goes on without it: it is dead, and does not
	// hold the group. WrongState: it is finished, and holds nobody up.
	Skip = Verb{name: "skip", act: skip}
)

func skip(tx *engine.Tx, j *job.Job) (rule.Effect, error) {
	c := rule.GiveUp(rule.BySkip, "skipped by an operator")
	if j.State == job.Dead && j.BlocksGroup { // it steps aside as it died
		c.Reason, c.Failure = j.Reason, job.Failure{}
		eff, err := tx.Step(j, rule.Command{Verb: rule.Revive, Remaining: true})
		if err != nil {
			return eff, err
		}
		j = eff.Job
	}
	return tx.Step(j, c)
}

// Cancel gives up an open job: it is dead, reason cancelled, with who did it and
// why as its failure. Who runs it by a named stream is told.
func Cancel(by job.Actor, why string) Verb {
	text := "cancelled by " + cmp.Or(by.Name, "an operator")
	if why != "" {
		text += ": " + why
	}
	c := rule.GiveUp(rule.ByPerson, text)
	return Verb{name: "cancel", open: true, hidden: true, act: func(tx *engine.Tx, j *job.Job) (rule.Effect, error) {
		return tx.Step(j, c)
	}}
}
