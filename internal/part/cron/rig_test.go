package cron_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/audit"
	"github.com/reprisehq/reprise/internal/part/budget"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/fold"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/store"
)

// rig is an engine with the part, new in each life.
type rig struct {
	*enginetest.Rig
	crons    *cron.Crons
	audit    *audit.Log
	desk     *desk.Desk
	budgets  *budget.Budgets
	grid     *grid.Grid
	folds    *fold.Folds
	folder   fold.Folder
	settings []cron.Setting
	zone     *time.Location
}

var ann = job.Actor{Name: "ann", From: "::1"}

func scenario(t *testing.T, f func(*rig), edits ...func(*rig)) {
	t.Helper()
	r := &rig{}
	enginetest.Scenario(t, func(*enginetest.Rig) { f(r) }, func(in *enginetest.Rig) {
		r.Rig = in
		for _, edit := range edits {
			edit(r)
		}
		in.Parts = r.parts
	})
}

func (r *rig) parts() []engine.Part {
	r.crons = &cron.Crons{Settings: r.settings, Zone: r.zone}
	r.audit, r.desk, r.budgets, r.grid = &audit.Log{}, &desk.Desk{}, &budget.Budgets{}, &grid.Grid{}
	r.folds = &fold.Folds{Folder: r.folder}
	return []engine.Part{r.audit, r.desk, r.grid, r.budgets, r.folds, r.crons}
}

// newNamed is a job whose payload is its name.
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

func (r *rig) put(queue, name string, edits ...func(*engine.NewJob)) job.ID {
	r.Helper()
	added, err := r.Put(r.Context(), []engine.NewJob{newNamed(queue, name, edits...)})
	if err != nil {
		r.Fatal(err)
	}
	return added[0].ID
}

// takes leases the one job that is there, by its payload, and ends it or keeps it.
func (r *rig) takes(want string, ends bool) error {
	list, err := r.Lease(r.Context(), engine.LeaseOptions{Max: 1, For: job.Day})
	if err != nil || len(list) != 1 || string(list[0].Payload) != want {
		return fmt.Errorf("leased %+v, %w; want %s", list, err, want)
	}
	if ends {
		_, err = r.Settle(r.Context(), []engine.Settle{{ID: list[0].Job.ID, Token: list[0].Lease.Token, Outcome: job.OK}})
	}
	return err
}

func (r *rig) queue(name string, edit func(*job.Queue)) {
	r.Helper()
	if _, err := r.desk.SetQueue(r.Context(), name, func(q *job.Queue) error { edit(q); return nil }, job.Actor{}); err != nil {
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

func (r *rig) isRefused(kind job.Kind, err error) {
	r.Helper()
	if job.KindOf(err) != kind || err == nil {
		r.Fatalf("%v, want kind %d", err, kind)
	}
}

// startFails wants the next start refused.
func (r *rig) startFails(kind job.Kind) {
	r.Helper()
	r.End()
	o := r.Opts
	o.Parts = r.parts()
	e := engine.New(r.Mem, r.Clock, func() uint64 { return 1 }, enginetest.Quiet, o)
	if err := e.Start(r.Context()); err == nil || job.KindOf(err) != kind {
		r.Errorf("started with %v, want an error of kind %d", err, kind)
		_ = e.Stop(r.Context())
	}
}

// jump has the date step.
func (r *rig) jump(span job.Millis) {
	r.Helper()
	r.Pass(0)
	r.Clock.Step.Add(int64(span))
	r.stats() // any command makes it look
	r.Pass(0)
}

// audited wants exactly these entries in the audit log: who, what, how many.
func (r *rig) audited(want ...string) {
	r.Helper()
	list, err := r.audit.List(r.Context(), job.ID{}, 100)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, a := range list {
		got = append(got, fmt.Sprintf("%s %s %d", a.By.Name, a.Action, a.Count))
	}
	if !slices.Equal(got, want) {
		r.Fatalf("the audit log is %q, want %q", got, want)
	}
}

func (r *rig) payload(id job.ID, want string) {
	r.Helper()
	j, body, err := r.Get(r.Context(), id)
	if err != nil || string(body) != want || int(j.PayloadSize) != len(want) {
		r.Fatalf("the payload is %q, want %q: %+v, %v", body, want, j, err)
	}
}

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

// Batches, without expressions: when is the longest payload that takes another one in,
// and fold what stands between the two.

var errFold = job.Errorf(job.Unprocessable, "batch fold: it failed")

func appends(_ context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
	var most int
	_, _ = fmt.Sscan(b.When, &most)
	switch {
	case len(existing) >= most:
		return nil, false, nil
	case string(newcomer) == "bad":
		return nil, false, errFold
	}
	return slices.Concat(existing, []byte(b.Fold), newcomer), true, nil
}

func folding(r *rig) { r.folder = appends }

func batched(key string, most int) func(*engine.NewJob) {
	return func(n *engine.NewJob) {
		n.Job.Extras = &job.Extras{Batch: &job.Batch{Key: key, When: fmt.Sprint(most), Fold: "+"}}
	}
}
