package parttest

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Series are so many names of a kind.
func Series(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

// Poisonous is a job of the queue that must be alone: it was lost once, of a
// limit of two.
func (r *Rig) Poisonous(queue, name string, edits ...func(*engine.NewJob)) {
	r.Helper()
	r.Add(queue, name, append(edits, Retry(job.Retry{LossLimit: job.LimitOf(2)}))...)
	w := r.Anonymous(1, queue)
	w.Gets(name)
	w.End()
	if !r.Expect(name, job.Ready).Isolated {
		r.Fatalf("%s need not be alone", name)
	}
}

// Keyed gives a job an idempotency key.
func Keyed(key string) func(*engine.NewJob) { return func(n *engine.NewJob) { n.Key = key } }

// PutAgain puts a job that was put before and returns the answer.
func (r *Rig) PutAgain(list ...engine.NewJob) []engine.Added {
	r.Helper()
	added, err := r.Put(r.Context(), list)
	if err != nil {
		r.Fatal(err)
	}
	return added
}

// DepthOf is how much of a queue there is.
func (r *Rig) DepthOf(queue string) store.Depth {
	r.Helper()
	_, d, err := r.Queue(r.Context(), queue)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// TooMuch wants a put to be refused for a limit, and nothing to have changed.
func (r *Rig) TooMuch(list ...engine.NewJob) {
	r.Helper()
	before, _ := r.Count(r.Context(), All)
	_, err := r.Put(r.Context(), list)
	if after, _ := r.Count(r.Context(), All); job.KindOf(err) != job.OverLimit || after != before {
		r.Fatalf("%v; %d jobs, then %d", err, before, after)
	}
}
