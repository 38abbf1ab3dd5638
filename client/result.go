package client

import (
	"encoding/json"
	"fmt"

	"github.com/reprisehq/reprise/wire"
)

// SetResult says what this attempt makes, any value that JSON can hold; of
// several calls the last counts. It goes with the outcome if that is OK, and
// stays as long as the completed job does: a job whose retention is 0, the
// default, leaves at once and takes it along. Client.Get has it in Job.Result.
// The server bounds it as it bounds a payload; an attempt with a result that is
// too large counts as failed.
func (d *Delivery) SetResult(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	d.result.Store(&text)
	return nil
}

// Result is what SetResult was given, as JSON; nil = nothing.
func (d *Delivery) Result() json.RawMessage {
	if text := d.result.Load(); text != nil {
		return *text
	}
	return nil
}

// resultsBytesMax bounds the results that are reported in one call, unless one
// is larger by itself.
const resultsBytesMax = 1 << 20

// fitting is how many of the outcomes go with one call.
func fitting(list []report) int {
	for i, bytes := 0, 0; i < len(list); i++ {
		if bytes += len(list[i].Result); bytes > resultsBytesMax {
			return max(i, 1)
		}
	}
	return len(list)
}

// tooLarge is what becomes of an outcome whose result the server does not take.
func tooLarge(s wire.Settle) wire.Settle {
	failure := &Failure{
		Type:    "ResultTooLarge",
		Message: fmt.Sprintf("the result has %d bytes, which is more than the server takes: keep what is large elsewhere, and its address in the result", len(s.Result)),
	}
	instead := Outcome(failure)
	instead.ID, instead.Lease, instead.StartedAt, instead.HoldMS = s.ID, s.Lease, s.StartedAt, s.HoldMS
	return instead
}
