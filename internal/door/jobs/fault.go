package jobs

import (
	"context"
	"errors"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// Fault is how the wire names a kind of error.
type Fault struct {
	Status int // of HTTP
	Code   string
}

// faults is the one table from kinds to the wire. NotFound is 404 and
// WrongState 422 because Zizq's clients know them so.
var faults = [...]Fault{
	job.Internal:    {500, wire.CodeInternal},
	job.Invalid:     {400, wire.CodeInvalid},
	job.NotFound:    {404, wire.CodeNotFound},
	job.Exists:      {409, wire.CodeExists},
	job.WrongState:  {422, wire.CodeWrongState},
	job.Superseded:  {409, wire.CodeSuperseded},
	job.TokenNeeded: {422, wire.CodeTokenNeeded},
	job.OverLimit:   {429, wire.CodeOverLimit},
	job.Unavailable: {503, wire.CodeUnavailable},
	job.Corrupt:     {500, wire.CodeCorrupt},

	job.Unprocessable: {422, wire.CodeUnprocessable},
	job.Forbidden:     {403, wire.CodeForbidden},
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

// TextOf is what the wire says about an error. What is wrong inside, such as
// which file could not be written, is for the log.
func TextOf(err error) string {
	switch FaultOf(err) {
	case faults[job.Internal]:
		return "internal server error"
	case faults[job.Unavailable], faults[job.Corrupt]:
		if own, ok := errors.AsType[*job.Error](err); ok {
			return own.Text // without its cause
		}
	}
	return err.Error()
}

// AppendError appends an error body.
func AppendError(b []byte, code, text string) []byte {
	return append(word(quote(b, `{"error":`, text), `,"code":"`, code), '}')
}
