package grid

import (
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
)

// refuse is a request that is wrong, by the name of the field.
func refuse(field, format string, args ...any) error {
	e := job.Errorf(job.Invalid, format, args...)
	e.Field = field
	return e
}

// quote writes what was given into a message, short whatever it is.
func quote(s string) string { return strconv.Quote(short(s)) }
