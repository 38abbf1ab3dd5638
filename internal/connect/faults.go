package connect

import (
	"errors"

	"github.com/reprisehq/reprise/internal/job"
)

// Faults are all that is wrong with the options of a sink or a source, each
// named by its property.
type Faults []error

// Add says what a property must be.
func (f *Faults) Add(property, format string, args ...any) {
	e := job.Errorf(job.Invalid, property+" "+format, args...)
	e.Field = property
	*f = append(*f, e)
}

// Err is nil if nothing is wrong.
func (f Faults) Err() error { return errors.Join(f...) }
