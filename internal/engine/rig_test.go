package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/fold"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// rig is an engine with all parts, and the jobs that were put by name.
type rig struct {
	*enginetest.Rig
	part   *part.Engine     // the parts of this life
	grid   gridpart.Options // of all lives
	fold   fold.Folder
	byName int // queues that are measured by name; 0 = as by default
	names  map[job.ID]string
	ids    map[string]job.ID
}

var quiet = enginetest.Quiet

func dice(seed uint64) *rand.Rand { return enginetest.Dice(seed) }

func scenario(t *testing.T, f func(r *rig), edits ...func(*rig)) {
	t.Helper()
	r := &rig{names: map[job.ID]string{}, ids: map[string]job.ID{}}
	set := []func(*enginetest.Rig){func(in *enginetest.Rig) {
		in.Parts = func() []engine.Part {
			r.part = part.All()
			r.part.Grid.Options, r.part.Folds.Folder = r.grid, r.fold
			r.part.Meter.Named = r.byName
			return r.part.Parts()
		}
	}}
	for _, edit := range edits {
		set = append(set, func(in *enginetest.Rig) { r.Rig = in; edit(r) })
	}
	enginetest.Scenario(t, func(in *enginetest.Rig) { r.Rig = in; f(r) }, set...)
}

// put takes one job in; its payload is its name.
func (r *rig) put(queue, name string, edits ...func(*engine.NewJob)) job.ID {
	r.Helper()
	added, err := r.Put(r.Context(), []engine.NewJob{newNamed(queue, name, edits...)})
	if err != nil {
		r.Fatalf("putting %s: %v", name, err)
	}
	r.call(added[0].ID, name)
	return added[0].ID
}

func (r *rig) call(id job.ID, name string) { r.names[id], r.ids[name] = name, id }

func newNamed(queue, name string, edits ...func(*engine.NewJob)) engine.NewJob {
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

// puts takes jobs in with default settings.
func (r *rig) puts(queue string, names ...string) {
	r.Helper()
	for _, name := range names {
		r.put(queue, name)
	}
}

// job reads a job; nil when it is gone.
func (r *rig) job(name string) *job.Job {
	r.Helper()
	j, _, err := r.Get(r.Context(), r.ids[name])
	if err != nil && job.KindOf(err) != job.NotFound {
		r.Fatal(err)
	}
	return j
}

// expect wants a job in a state; None = gone.
func (r *rig) expect(name string, want job.State) *job.Job {
	r.Helper()
	j := r.job(name)
	if got := stateOf(j); got != want {
		r.Fatalf("%s is %s, want %s", name, got, want)
	}
	return j
}

func stateOf(j *job.Job) job.State {
	if j == nil {
		return job.None
	}
	return j.State
}

func (r *rig) queue(name string, edit func(*job.Queue)) {
	r.Helper()
	if _, err := r.part.Desk.SetQueue(r.Context(), name, func(q *job.Queue) error { edit(q); return nil }, job.Actor{}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) stats() engine.Stats {
	r.Helper()
	s, err := enginetest.Stats(r.Context(), r.Engine)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// settle ends an attempt under its token; it must be accepted.
func (r *rig) settle(d engine.Delivery, o job.Outcome, edits ...func(*engine.Settle)) engine.Verdict {
	r.Helper()
	s := engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: o, Failure: job.Failure{Type: "E", Message: "boom"}}
	for _, edit := range edits {
		edit(&s)
	}
	v := r.try(s)
	if v.Err != nil {
		r.Fatalf("%s of %s: %v", o, r.names[d.Job.ID], v.Err)
	}
	return v
}

// try settles; the verdict may be a refusal.
func (r *rig) try(s engine.Settle) engine.Verdict {
	r.Helper()
	list, err := r.Settle(r.Context(), []engine.Settle{s})
	if err != nil || len(list) != 1 {
		r.Fatalf("%d verdicts, %v", len(list), err)
	}
	return list[0]
}

// isRefused wants a call refused so.
func (r *rig) isRefused(kind job.Kind, err error) {
	r.Helper()
	if job.KindOf(err) != kind || err == nil {
		r.Fatalf("%v, want kind %d", err, kind)
	}
}

func (r *rig) refused(kind job.Kind, s engine.Settle) {
	r.Helper()
	if v := r.try(s); v.Err == nil || job.KindOf(v.Err) != kind {
		r.Fatalf("%s: %v, want an error of kind %d", s.Outcome, v.Err, kind)
	}
}

// stream is a connection and what was read from it.
type stream struct {
	*engine.Stream
	r    *rig
	held map[string]engine.Delivery
}

func (r *rig) stream(o engine.StreamOptions) *stream {
	r.Helper()
	s, err := r.Stream(r.Context(), o)
	if err != nil {
		r.Fatal(err)
	}
	return &stream{s, r, map[string]engine.Delivery{}}
}

func (r *rig) anonymous(prefetch int, queues ...string) *stream {
	r.Helper()
	return r.stream(engine.StreamOptions{Prefetch: prefetch, Queues: queues})
}

func (r *rig) named(name string, prefetch int) *stream {
	r.Helper()
	return r.stream(engine.StreamOptions{Name: name, Prefetch: prefetch})
}

// gets wants exactly these jobs, in this order, among what was delivered by
// now; none = nothing.
func (s *stream) gets(want ...string) {
	s.r.Helper()
	if got := s.read(); !slices.Equal(got, want) {
		s.r.Fatalf("delivered [%s], want [%s]", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// read takes what has been delivered by now.
func (s *stream) read() (names []string) {
	s.r.Helper()
	ctx, cancel := context.WithCancel(s.r.Context())
	cancel()
	for {
		synctest.Wait()
		list, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return names
		}
		if err != nil {
			s.r.Fatal(err)
		}
		for _, d := range list {
			names = append(names, s.keep(d))
		}
	}
}

func (s *stream) keep(d engine.Delivery) string {
	s.r.Helper()
	name := s.r.names[d.Job.ID]
	if d.Voided {
		return fmt.Sprintf("%s: %s", name, d.Ending)
	}
	if string(d.Payload) != name || d.Job.State != job.Leased || d.Job.LeaseOf(d.Lease.Token) < 0 {
		s.r.Fatalf("delivered %s with payload %q as %s", name, d.Payload, d.Job.State)
	}
	s.held[name] = d
	return name
}

// ended wants the stream to be over.
func (s *stream) ended() {
	s.r.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(s.r.Context())
	cancel()
	if list, err := s.Next(ctx); !errors.Is(err, engine.ErrStreamEnded) {
		s.r.Fatalf("the stream is not over: %d deliveries, %v", len(list), err)
	}
}

func (s *stream) ok(names ...string) {
	s.r.Helper()
	for _, name := range names {
		s.r.settle(s.held[name], job.OK)
		delete(s.held, name)
	}
}

func (s *stream) fail(name string, edits ...func(*engine.Settle)) engine.Verdict {
	s.r.Helper()
	return s.r.settle(s.held[name], job.Retried, edits...)
}

func (s *stream) close() { s.Close(); synctest.Wait() }

// lease is one unary take that must find exactly these jobs at once.
func (r *rig) lease(o engine.LeaseOptions, want ...string) map[string]engine.Delivery {
	r.Helper()
	got, list := r.leaseNow(o), []string(nil)
	held := map[string]engine.Delivery{}
	for _, d := range got {
		list = append(list, r.names[d.Job.ID])
		held[r.names[d.Job.ID]] = d
	}
	if !slices.Equal(list, want) {
		r.Fatalf("leased %v, want %v", list, want)
	}
	return held
}

// leaseNow takes what is there and does not wait.
func (r *rig) leaseNow(o engine.LeaseOptions) []engine.Delivery {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond/2)
	defer cancel()
	list, err := r.Lease(ctx, o)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// Edits that many tests use.

func grouped(g string) func(*engine.NewJob) { return func(n *engine.NewJob) { n.Job.Group = g } }

func due(at job.Millis) func(*engine.NewJob) { return func(n *engine.NewJob) { n.Job.ReadyAt = at } }

func retry(p job.Retry) func(*engine.NewJob) { return func(n *engine.NewJob) { n.Job.Retry = &p } }

func wait(span job.Millis) *job.Curve { return &job.Curve{Kind: job.CurveConstant, Delay: span} }

func strict(q *job.Queue) { q.Order = job.OrderStrict }

// Operator's commands.

var (
	all    = store.Filter{}
	revive = rule.Command{Verb: rule.Revive}
	cancel = rule.Command{Verb: rule.Cancel}
)

func (r *rig) operate(name string, c rule.Command) engine.Verdict {
	r.Helper()
	v, err := enginetest.Operate(r.Context(), r.Engine, r.ids[name], c)
	if err != nil || v.Err != nil {
		r.Fatalf("%s of %s: %v, %v", c.Verb, name, v.Err, err)
	}
	return v
}

// rows counts the rows of a table.
func (r *rig) rows(t job.Table) (n int) {
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

// gateOf reads the row of a group; blank if it has none.
func (r *rig) gateOf(queue, group string) (g job.Gate) {
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

// recovered lets the engine open its store again after a failure.
func (r *rig) recovered() {
	r.Helper()
	for range 100 {
		if r.Pass(250); r.Ready() == nil {
			return
		}
	}
	r.Fatalf("the engine did not recover: %v", r.Ready())
}
