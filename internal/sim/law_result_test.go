package sim_test

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// resultOf is a result that a run of a job may have made: its job and its size
// tell all of it.
func resultOf(id job.ID, n int) []byte {
	return fmt.Appendf(nil, "%q", "made of "+id.String()+strings.Repeat("!", n))
}

// made is core.md 7: what goes with an OK stays with the done job: in it, or, if
// it is large, kept where only the engine can say. With a job that leaves at once
// it is gone.
func (s *scene) made(o *outcome, x *engine.Settle) *outcome {
	if x.Result == nil || o.want == nil {
		return o
	}
	made := &job.Result{Size: uint32(len(x.Result)), Bytes: x.Result}
	if o.note("a result"); len(x.Result) > job.ResultInline {
		o.note("a large result")
		made.Bytes = nil
		if kept := s.new.Result(); kept != nil && !kept.Ref.IsZero() {
			made.Ref = kept.Ref
		}
	}
	o.want.Extras = o.want.WithOutcome(made, o.want.History())
	return o
}

// results looks at what is kept of every job that made something.
func (w *world) results() {
	refs := map[job.ID]*job.Job{}
	for _, j := range w.judge.book.jobs {
		made := j.Result()
		if made == nil {
			continue
		}
		body := made.Bytes
		if body == nil {
			list, err := w.mem.Payloads(made.Ref)
			if err != nil {
				return // the store is down
			}
			if other := refs[made.Ref]; other != nil {
				broken("core.md 7", "%s has its result under %s, as %v has", w.judge.name(j.ID), made.Ref, other)
			}
			refs[made.Ref], body = j, list[0]
		}
		if j.State != job.Done {
			broken("core.md 7", "%s is %s with a result", w.judge.name(j.ID), j.State)
		}
		if n := int(made.Size) - len(resultOf(j.ID, 0)); n < 0 || string(body) != string(resultOf(j.ID, n)) {
			broken("I8", "%s made %q, and the job says %d bytes", w.judge.name(j.ID), body, made.Size)
		}
	}
}
