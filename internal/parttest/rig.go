// Package parttest is what the tests of the engine and of its parts have in common: an
// engine with all parts, on a store in memory and in fake time, and words for what they do
// to jobs that have names.
package parttest

import (
	"syscall"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/fold"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Rig is an engine with all parts, and the jobs that were put by name.
type Rig struct {
	*enginetest.Rig
	Part   *part.Engine // the parts of this life
	Grid   grid.Options // of all lives
	Folder fold.Folder
	ByName int // queues that are measured by name; 0 = as by default
	Names  map[job.ID]string
	IDs    map[string]job.ID
}

// Scenario runs f with an engine, see enginetest.Scenario. wrap is what the tests of a
// package have around it.
func Scenario[R any](t *testing.T, wrap func(*Rig) R, f func(R), edits ...func(R)) {
	t.Helper()
	r := &Rig{Names: map[job.ID]string{}, IDs: map[string]job.ID{}}
	set := []func(*enginetest.Rig){func(in *enginetest.Rig) {
		in.Parts = func() []engine.Part {
			r.Part = part.All()
			r.Part.Grid.Options, r.Part.Folds.Folder = r.Grid, r.Folder
			r.Part.Meter.Named = r.ByName
			return r.Part.Parts()
		}
	}}
	for _, edit := range edits {
		set = append(set, func(in *enginetest.Rig) { r.Rig = in; edit(wrap(r)) })
	}
	enginetest.Scenario(t, func(in *enginetest.Rig) { r.Rig = in; f(wrap(r)) }, set...)
}

// Add takes one job in; its payload is its name.
func (r *Rig) Add(queue, name string, edits ...func(*engine.NewJob)) job.ID {
	r.Helper()
	added, err := r.Put(r.Context(), []engine.NewJob{NewNamed(queue, name, edits...)})
	if err != nil {
		r.Fatalf("putting %s: %v", name, err)
	}
	r.Call(added[0].ID, name)
	return added[0].ID
}

// Call notes the name of a job.
func (r *Rig) Call(id job.ID, name string) { r.Names[id], r.IDs[name] = name, id }

// NewNamed is a job whose payload is its name.
func NewNamed(queue, name string, edits ...func(*engine.NewJob)) engine.NewJob {
	n := engine.NewJob{
		Job: job.Job{
			Queue: queue, Type: "t", Priority: job.PriorityDefault, RetainDone: job.Unset, RetainDead: job.Unset,
		},
		Payload: []byte(name),
	}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

// AddAll takes jobs in with default settings.
func (r *Rig) AddAll(queue string, names ...string) {
	r.Helper()
	for _, name := range names {
		r.Add(queue, name)
	}
}

// Job reads a job; nil when it is gone.
func (r *Rig) Job(name string) *job.Job {
	r.Helper()
	j, _, err := r.Get(r.Context(), r.IDs[name])
	if err != nil && job.KindOf(err) != job.NotFound {
		r.Fatal(err)
	}
	return j
}

// Expect wants a job in a state; None = gone.
func (r *Rig) Expect(name string, want job.State) *job.Job {
	r.Helper()
	j := r.Job(name)
	if got := StateOf(j); got != want {
		r.Fatalf("%s is %s, want %s", name, got, want)
	}
	return j
}

// StateOf is None of a job that is gone.
func StateOf(j *job.Job) job.State {
	if j == nil {
		return job.None
	}
	return j.State
}

// SetQueue changes the settings of a queue.
func (r *Rig) SetQueue(name string, edit func(*job.Queue)) {
	r.Helper()
	if _, err := r.Part.Desk.SetQueue(r.Context(), name, func(q *job.Queue) error { edit(q); return nil }, job.Actor{}); err != nil {
		r.Fatal(err)
	}
}

// Configured gives the engine settings of the queue q.
func (r *Rig) Configured(edit func(*job.Queue)) {
	q := job.NewQueue("q")
	edit(q)
	r.Opts.Queues = []*job.Queue{q}
}

// Stats are the counters of the engine.
func (r *Rig) Stats() engine.Stats {
	r.Helper()
	s, err := enginetest.Stats(r.Context(), r.Engine)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// Settled ends an attempt under its token; it must be accepted.
func (r *Rig) Settled(d engine.Delivery, o job.Outcome, edits ...func(*engine.Settle)) engine.Verdict {
	r.Helper()
	s := engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: o, Failure: job.Failure{Type: "E", Message: "boom"}}
	for _, edit := range edits {
		edit(&s)
	}
	v := r.Try(s)
	if v.Err != nil {
		r.Fatalf("%s of %s: %v", o, r.Names[d.Job.ID], v.Err)
	}
	return v
}

// Try settles; the verdict may be a refusal.
func (r *Rig) Try(s engine.Settle) engine.Verdict {
	r.Helper()
	list, err := r.Settle(r.Context(), []engine.Settle{s})
	if err != nil || len(list) != 1 {
		r.Fatalf("%d verdicts, %v", len(list), err)
	}
	return list[0]
}

// IsRefused wants a call refused so.
func (r *Rig) IsRefused(kind job.Kind, err error) {
	r.Helper()
	if job.KindOf(err) != kind || err == nil {
		r.Fatalf("%v, want kind %d", err, kind)
	}
}

// Refused wants a settle refused so.
func (r *Rig) Refused(kind job.Kind, s engine.Settle) {
	r.Helper()
	if v := r.Try(s); v.Err == nil || job.KindOf(v.Err) != kind {
		r.Fatalf("%s: %v, want an error of kind %d", s.Outcome, v.Err, kind)
	}
}

// Operate applies a command of an operator.
func (r *Rig) Operate(name string, c rule.Command) engine.Verdict {
	r.Helper()
	v, err := enginetest.Operate(r.Context(), r.Engine, r.IDs[name], c)
	if err != nil || v.Err != nil {
		r.Fatalf("%s of %s: %v, %v", c.Verb, name, v.Err, err)
	}
	return v
}

// Rows counts the rows of a table.
func (r *Rig) Rows(t job.Table) (n int) {
	r.Helper()
	err := r.Mem.View(r.Context(), func(v store.Reader) error {
		list, err := v.Rows(t, "", 1000)
		n = len(list)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// GateOf reads the row of a group; blank if it has none.
func (r *Rig) GateOf(queue, group string) (g job.Gate) {
	r.Helper()
	err := r.Mem.View(r.Context(), func(v store.Reader) error {
		row, err := v.Row(job.Gates, job.GateKey(queue, group))
		if known, ok := row.(*job.Gate); ok {
			g = *known
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return g
}

// Recovered lets the engine open its store again after a failure.
func (r *Rig) Recovered() {
	r.Helper()
	for range 100 {
		if r.Pass(250); r.Ready() == nil {
			return
		}
	}
	r.Fatalf("the engine did not recover: %v", r.Ready())
}

// Jump lets the date step, and the engine notice it.
func (r *Rig) Jump(span job.Millis) {
	r.Helper()
	r.Pass(0)
	r.Clock.Step.Add(int64(span))
	r.Stats() // any command makes it look
	r.Pass(0)
}

// CPUTime is what this process has used on all cores, in nanoseconds.
func CPUTime() int64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return used.Utime.Nano() + used.Stime.Nano()
}
