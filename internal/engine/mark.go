package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
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
func (e *Engine) Mark(ctx context.Context, print job.Fingerprint, edit MarkEdit, by job.Actor) (job.Mark, error) {
	var out job.Mark
	err := e.Do(ctx, 0, func(r *Tx) error {
		old, err := r.mark(print)
		if err != nil {
			return err
		}
		if old.Blank() {
			rows, err := r.tx.Rows(job.Marks, "", marksMax)
			if err != nil {
				return err
			}
			if len(rows) == marksMax {
				return job.Errorf(job.OverLimit, "there may be %d marked fingerprints; take some marks back", marksMax)
			}
		}
		m := *old
		m.By, m.At = by, r.now
		if edit.Note != nil && *edit.Note != m.Note {
			m.Note = *edit.Note
			err = r.Audit(by, "note", print.String(), 0)
		}
		if edit.Muted != nil && *edit.Muted != m.Muted && err == nil {
			m.Muted = *edit.Muted
			err = r.Audit(by, map[bool]string{true: "mute", false: "unmute"}[m.Muted], print.String(), 0)
		}
		if edit.Paused != nil && *edit.Paused != m.Paused && err == nil {
			m.Paused, m.Releasing = *edit.Paused, 0
			if !m.Paused {
				m.Releasing = r.now
			}
			err = r.Audit(by, map[bool]string{true: "pause", false: "resume"}[m.Paused], print.String(), 0)
		}
		if err != nil {
			return err
		}
		out = m
		return r.setMark(&m)
	})
	if err != nil { // out may still be written to
		return job.Mark{}, err
	}
	return out, nil
}

// mark returns what is decided about a fingerprint; blank if nothing is.
func (r *Tx) mark(print job.Fingerprint) (*job.Mark, error) {
	row, err := r.tx.Row(job.Marks, print.String())
	if m, ok := row.(*job.Mark); ok {
		return m, err
	}
	return &job.Mark{Print: print}, err
}

func (r *Tx) setMark(m *job.Mark) error {
	r.tx.Durable()
	if m.Blank() {
		return r.tx.Unset(job.Marks, m.Key())
	}
	return r.tx.Set(m)
}

// paused tells the rules whether jobs of a fingerprint are held.
func (r *Tx) paused(print job.Fingerprint) bool {
	m, err := r.mark(print)
	return err == nil && m.Paused
}

// releaseSome lets some of the jobs go that a pause had held.
func (r *Tx) releaseSome(m *job.Mark) error {
	ids, err := r.tx.Parked(rule.PrintPark(m.Print), replayMost)
	if err != nil {
		return err
	}
	for _, id := range ids {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if _, err := r.step(j, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "" }}); err != nil {
			return err
		}
	}
	if len(ids) == replayMost {
		r.ticked = true
		return nil
	}
	done := *m
	done.Releasing = 0
	return r.setMark(&done)
}
