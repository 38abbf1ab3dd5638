package model

import (
	"bytes"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// result is what a run made: the first OK decides (spec/core.md sections 4 and 7).
func (m *model) result(j *job.Job, s engine.Settle) {
	if s.Result == nil {
		return
	}
	m.results[j.ID] = s.Result
	x := job.Extras{Result: &job.Result{Size: uint32(len(s.Result))}}
	if len(s.Result) <= 256 { // in the job
		x.Result.Bytes = s.Result
	}
	if j.Extras != nil {
		x.Progress, x.Unique, x.Batch, x.Budgets = j.Extras.Progress, j.Extras.Unique, j.Extras.Batch, j.Extras.Budgets
	}
	j.Extras = &x
}

func (w *world) drawResult(t *rapid.T, o job.Outcome) []byte {
	if o != job.OK {
		return nil
	}
	return one(t, "result", nil, nil, []byte("1"), []byte(`{"made":2}`), bytes.Repeat([]byte("1"), 256), bytes.Repeat([]byte("1"), 257))
}

// result compares what is kept of a job's run.
func (w *world) result(got *job.Job) {
	body, err := w.Result(got)
	w.must(err)
	want := w.model.results[got.ID]
	if got.State != job.Done {
		want = nil
	}
	if !bytes.Equal(body, want) {
		w.Fatalf("the result of %s is %q, want %q", w.name(got), body, want)
	}
}
