package parttest

import (
	"slices"

	"github.com/reprisehq/reprise/internal/part/meter"
)

// Measures of a queue.
func (r *Rig) Measures(queue string) (meter.Measures, meter.Queue) {
	r.Helper()
	m := r.Part.Meter.Measure(r.Context())
	if i := slices.IndexFunc(m.Queues, func(q meter.Queue) bool { return q.Name == queue }); i >= 0 {
		return m, m.Queues[i]
	}
	return m, m.Other
}

// Counted wants exactly these counts, and no others, in a queue.
func (r *Rig) Counted(queue string, want map[meter.Count]uint64) {
	r.Helper()
	_, q := r.Measures(queue)
	for c := range meter.Counts {
		if q.N[c] != want[c] {
			family, word := c.Words()
			r.Errorf("%s: %s %s is %d, want %d", queue, family, word, q.N[c], want[c])
		}
	}
}
