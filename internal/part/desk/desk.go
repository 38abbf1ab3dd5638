// Package desk is the part for what operators do: with jobs, one or many, and with the
// settings of queues (retry.md section 3; operations.md).
//
// Its state is rows: what doors keep beside the settings of queues.
package desk

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Desk is where operators are served.
type Desk struct{ engine *engine.Engine }

// Join implements engine.Part.
func (d *Desk) Join(e *engine.Engine) engine.Hooks {
	d.engine = e
	return engine.Hooks{Takes: takes}
}

// Verb is what an operator does to a job.
type Verb struct {
	name   string // in the audit log
	bytes  int    // that it brings in
	open   bool   // of many jobs it passes over those that are finished
	hidden bool   // it is also for jobs past their retention, which nobody sees any more
	act    func(*engine.Tx, *job.Job) (rule.Effect, error)
}

// Do does it to one job, and notes it. NotFound: there is none.
func (d *Desk) Do(ctx context.Context, by job.Actor, v Verb, id job.ID) (engine.Verdict, error) {
	return d.do(ctx, by, v, "", func(*engine.Tx) (job.ID, error) { return id, nil })
}

// DoHead does it to the head of a group, and notes it. NotFound: the group has no members.
func (d *Desk) DoHead(ctx context.Context, by job.Actor, v Verb, queue, group string) (engine.Verdict, error) {
	v.hidden = true // as long as it is there it holds the group
	return d.do(ctx, by, v, " of "+engine.SubjectOf(queue, group), func(tx *engine.Tx) (id job.ID, err error) {
		first, err := tx.Store().IDs(store.Members(queue, group), 1)
		switch {
		case err != nil:
			return id, err
		case len(first) == 0:
			return id, job.Errorf(job.NotFound, "group %q of queue %q has no members", group, queue)
		}
		return first[0], nil
	})
}

func (d *Desk) do(ctx context.Context, by job.Actor, v Verb, of string, which func(*engine.Tx) (job.ID, error)) (engine.Verdict, error) {
	var out engine.Verdict
	err := d.engine.Do(ctx, v.bytes, func(tx *engine.Tx) error {
		id, err := which(tx)
		if err != nil {
			return err
		}
		j, err := tx.Store().Get(id)
		if err != nil {
			return err
		}
		if j == nil || !v.hidden && !engine.Visible(tx.Store(), j) {
			return engine.NoJob(id)
		}
		eff, err := v.act(tx, j)
		if err != nil {
			return err
		}
		if out, err = engine.VerdictOf(eff, nil); err != nil {
			return err
		}
		return tx.Audit(by, v.name, id.String()+of, 1)
	})
	return engine.Answered(&out, err)
}

// DoAll does it to every job that the search chooses, see engine.Bulk. Refused are those
// that Do refuses with WrongState; any other refusal ends the call. The caller notes it.
func (d *Desk) DoAll(ctx context.Context, v Verb, s query.Search) (done, refused int64, err error) {
	if v.open {
		s = open(s)
	}
	return query.Of(d.engine).Bulk(ctx, s, func(tx *engine.Tx, j *job.Job) error { _, err := v.act(tx, j); return err })
}

// Reset removes every job, all cron groups, budgets and what is kept beside jobs; settings
// of queues, marks of fingerprints and the audit log stay.
func (d *Desk) Reset(ctx context.Context) (deleted int64, err error) {
	if err := d.engine.Wipe(ctx, false); err != nil {
		return 0, err
	}
	if deleted, _, err = d.DoAll(ctx, Delete, query.Search{}); err != nil {
		return deleted, err
	}
	return deleted, d.engine.Wipe(ctx, true)
}

// sampleMost is how many jobs a dry run shows.
const sampleMost = 5

// PreviewCancel counts what DoAll would cancel now, and shows some of it.
func (d *Desk) PreviewCancel(ctx context.Context, s query.Search) (n int64, sample []query.Listed, err error) {
	err = query.Of(d.engine).Each(ctx, open(s), func(l query.Listed) (bool, error) {
		if n++; len(sample) < sampleMost {
			sample = append(sample, l)
		}
		return true, nil
	})
	return n, sample, err
}

// open is the search among jobs that are not finished.
func open(s query.Search) query.Search {
	all := s.Where
	s.Where = func(j *job.Job) bool { return j.State.Open() && (all == nil || all(j)) }
	if s.Filter.States == nil { // however many are finished, nobody looks at them
		s.Filter.States = []job.State{job.Scheduled, job.Ready, job.Leased}
	}
	return s
}
