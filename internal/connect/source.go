package connect

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
)

// Source reads records somewhere and brings them in. It decides nothing about what becomes
// of them.
type Source interface {
	// Run reads until ctx ends, or there is nothing more to read, and hands what it reads to
	// the intake. An error means that it cannot go on.
	Run(ctx context.Context, into Intake) error
}

// Intake takes the records of a source in.
type Intake interface {
	// Take returns when the records survive a power cut, so that the source may acknowledge
	// them (I5). It waits while the source shall pause, until ctx ends. An error means that
	// nothing was taken.
	Take(ctx context.Context, list ...Records) error
	// Cursors is how far the source had read, by the names of what it reads.
	Cursors(ctx context.Context) (map[string][]byte, error)
}

// Records are events of one tag, one behind the other (internal/record).
type Records struct {
	Tag    string
	Events []byte
	Count  int
	// At is how far the source has read with them, by the names of what it reads; it is
	// kept in the same transaction. A nil value forgets one.
	At map[string][]byte
}

// TagOf is the tag of a chunk, which is a label of its job.
func TagOf(j *job.Job) string { return j.Label(TagLabel) }

// TagLabel is the label of a job in which the tag of its chunk stands.
const TagLabel = "tag"
