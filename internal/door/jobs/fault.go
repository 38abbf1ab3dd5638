package jobs

import (
	"context"
	"errors"

	"github.com/reprisehq/reprise/internal/job"
)

// Fault is how the wire names a kind of error. Codes are public and stay.
type Fault struct {
	Status int // of HTTP
	Code   string
}

// faults is the one table from kinds to the wire. NotFound is 404 and
// WrongState 422 because Zizq's clients tell them so.
var faults = [...]Fault{
	job.Internal:    {500, "internal"},
	job.Invalid:     {400, "invalid"},
	job.NotFound:    {404, "not_found"},
	job.Exists:      {409, "exists"},
	job.WrongState:  {422, "wrong_state"},
	job.Superseded:  {409, "superseded"},
	job.TokenNeeded: {422, "token_needed"},
	job.OverLimit:   {429, "over_limit"},
	job.Unavailable: {503, "unavailable"},
	job.Corrupt:     {500, "corrupt"},
}

// FaultOf translates an error. A call that was broken off before its outcome
// was known is unavailable.
func FaultOf(err error) Fault {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return faults[job.Unavailable]
	}
	if k := job.KindOf(err); int(k) < len(faults) {
		return faults[k]
	}
	return faults[job.Internal]
}

// TextOf is what the wire says about an error. What is wrong inside is for the
// log.
func TextOf(err error) string {
	if FaultOf(err).Status == 500 {
		return "internal server error"
	}
	return err.Error()
}

// AppendError appends an error body.
func AppendError(b []byte, text string) []byte { return append(quote(b, `{"error":`, text), '}') }
