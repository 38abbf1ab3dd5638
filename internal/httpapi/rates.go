package httpapi

import (
	"math"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// withRates reads ?rates of GET /queues, whose other parameters are ignored, as
// Zizq does.
func withRates(values []string) (bool, error) {
	if len(values) == 1 && (values[0] == "true" || values[0] == "false") {
		return values[0] == "true", nil
	}
	if values != nil {
		return false, &job.Error{Kind: job.Invalid, Field: "rates", Text: "rates must be true or false, once"}
	}
	return false, nil
}

// rates are those of a queue to the thousandth; nil if they are not known.
func (h *queueRoom) rates(queue string) *wire.QueueRates {
	r, known := h.engine.Meter.Rates(queue)
	if !known {
		return nil
	}
	rounded := func(v float64) float64 { return math.Round(v*1000) / 1000 }
	return &wire.QueueRates{
		WindowMS: int64(r.Window), Enqueued: rounded(r.Enqueued), Taken: rounded(r.Taken),
		Completed: rounded(r.Completed), Failed: rounded(r.Failed),
	}
}
