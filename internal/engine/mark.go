package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Mark returns what somebody decided about a fingerprint; blank if nothing.
func (r *Tx) Mark(print job.Fingerprint) (*job.Mark, error) {
	m, err := store.Row[*job.Mark](r.tx, print.String())
	if m == nil {
		m = &job.Mark{Print: print}
	}
	return m, err
}

// Paused reports whether jobs of a fingerprint are held.
func (r *Tx) Paused(print job.Fingerprint) bool {
	m, err := r.Mark(print)
	return err == nil && m.Paused
}
