package meter

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// Sessions come and go, so there may be more names in a minute than queues.
func TestRatesOfTooManyQueuesAreNotKnown(t *testing.T) {
	r := recent{max: 2, since: 5000, queues: map[string]*lately{}}
	enqueued := func(queue string, steady job.Millis) { r.add(queue, steady, &Tally{N: [Counts]uint64{Enqueued: 1}}) }
	enqueued("a", 5000)
	enqueued("b", 55_000)
	enqueued("c", 55_000)
	want := func(queue string, steady job.Millis, rate float64, known bool) {
		t.Helper()
		if got, ok := r.of(queue, steady); ok != known || got.Enqueued != rate {
			t.Errorf("%s at %d: %+v %v, want %v %v", queue, steady, got, ok, rate, known)
		}
	}
	want("a", 55_000, 1./50, true)
	want("b", 55_000, 1./50, true)
	want("c", 55_000, 0, false)
	enqueued("c", 65_000) // nothing happened in a for a minute, so it makes room
	want("c", 65_000, 1./59, true)
	want("b", 65_000, 1./59, true)
	want("a", 65_000, 0, false)
	enqueued("d", 124_999) // b would make room in a moment
	want("d", 124_999, 0, false)
	enqueued("d", 125_000)
	want("d", 125_000, 1./59, true)
}
