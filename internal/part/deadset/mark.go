package deadset

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// marksMax bounds the fingerprints that somebody marked.
const marksMax = 10_000

// MarkEdit changes a mark; nil leaves as it is.
type MarkEdit struct {
	Muted, Paused *bool
	Note          *string
}

// Mark mutes, pauses or annotates a fingerprint, or takes that back. The group
// need not have jobs. Jobs that a pause held return in bounded steps once it
// is over.
func (set *Set) Mark(ctx context.Context, print job.Fingerprint, edit MarkEdit, by job.Actor) (job.Mark, error) {
	var out job.Mark
	err := set.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		old, err := tx.Mark(print)
		if err != nil {
			return err
		}
		if old.Blank() {
			rows, err := tx.Store().Rows(job.Marks, "", marksMax)
			if err != nil {
				return err
			}
			if len(rows) == marksMax {
				return job.Errorf(job.OverLimit, "there may be %d marked fingerprints; take some marks back", marksMax)
			}
		}
		m := *old
		m.By, m.At = by, tx.Moment().Now
		if edit.Note != nil && *edit.Note != m.Note {
			m.Note = *edit.Note
			err = tx.Audit(by, "note", print.String(), 0)
		}
		if edit.Muted != nil && *edit.Muted != m.Muted && err == nil {
			m.Muted = *edit.Muted
			err = tx.Audit(by, map[bool]string{true: "mute", false: "unmute"}[m.Muted], print.String(), 0)
		}
		if edit.Paused != nil && *edit.Paused != m.Paused && err == nil {
			m.Paused, m.Releasing = *edit.Paused, 0
			if !m.Paused {
				m.Releasing = tx.Moment().Now
			}
			err = tx.Audit(by, map[bool]string{true: "pause", false: "resume"}[m.Paused], print.String(), 0)
		}
		if err != nil {
			return err
		}
		out = m
		return setMark(tx, &m)
	})
	return engine.Answered(&out, err)
}

func setMark(tx *engine.Tx, m *job.Mark) error {
	tx.Store().Durable()
	if m.Blank() {
		return tx.Store().Unset(job.Marks, m.Key())
	}
	return tx.Store().Set(m)
}

// releaseSome lets some of the jobs go that a pause had held.
func releaseSome(tx *engine.Tx, m *job.Mark) error {
	ids, err := tx.Store().IDs(store.Parked(rule.PrintPark(m.Print)), replayMost)
	if err != nil {
		return err
	}
	for _, id := range ids {
		j, err := tx.Store().Get(id)
		if err != nil {
			return err
		}
		if _, err := tx.Step(j, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "" }}); err != nil {
			return err
		}
	}
	if len(ids) == replayMost {
		tx.More()
		return nil
	}
	done := *m
	done.Releasing = 0
	return setMark(tx, &done)
}
