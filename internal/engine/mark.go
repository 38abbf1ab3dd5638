package engine

import "github.com/reprisehq/reprise/internal/job"

// Mark returns what somebody decided about a fingerprint; blank if nothing.
func (r *Tx) Mark(print job.Fingerprint) (*job.Mark, error) {
	row, err := r.tx.Row(job.Marks, print.String())
	if m, ok := row.(*job.Mark); ok {
		return m, err
	}
	return &job.Mark{Print: print}, err
}

// Paused reports whether jobs of a fingerprint are held.
func (r *Tx) Paused(print job.Fingerprint) bool {
	m, err := r.Mark(print)
	return err == nil && m.Paused
}
