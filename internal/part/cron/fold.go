package cron

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// A tick of an entry whose job has a batch is planned outside the committer,
// like every newcomer of a batch (fold.go). The clock leaves it to a goroutine,
// and the entry comes up again after foldAgain if nothing came of that. The
// job and how far the entry has come are still in one transaction, and one that
// finds the entry past the tick does nothing: so no tick is folded in twice.

const (
	foldAgain = job.Second // for the clock to look again at a tick that it left to a goroutine
	folders   = 4          // goroutines at most
)

// fold is a tick that is to be planned.
type fold struct {
	entry *job.CronEntry // as it was; its Next is the tick

	// The outcome of planning.
	list  []engine.NewJob
	folds engine.Plan
	err   error // why it cannot be carried out
}

// fits reports whether what was planned is what the entry asks for now, and has
// not been refused since.
func (f *fold) fits(c *job.CronEntry) bool {
	return f != nil && c.Next == f.entry.Next && c.Failures == f.entry.Failures && sameTemplate(c, f.entry)
}

// joins reports whether a job is for a batch.
func joins(j *job.Job) bool { return j.Extras != nil && j.Extras.Batch != nil }

func sameTemplate(a, b *job.CronEntry) bool {
	return a.Place == b.Place && bytes.Equal(a.Payload, b.Payload) && reflect.DeepEqual(a.Job, b.Job)
}

// folding are the ticks that goroutines plan, one at a time of an entry.
type folding struct {
	ctx  context.Context //nolint:containedctx // of its goroutines, not of a call: it ends with the engine
	stop context.CancelFunc

	mu    sync.Mutex       // guards what follows
	next  map[string]*fold // by entry in line or at work: what is to be done for it; nil = nothing more
	line  []string         // keys of entries
	works int              // goroutines
}

// foldAll begins with ticks; the committer calls it once they are true.
func (s *Crons) foldAll(list []*fold) {
	w := &s.folding
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range list {
		key := f.entry.Key()
		_, known := w.next[key]
		if w.next[key] = f; known { // whoever is at work sees it
			continue
		}
		if w.line = append(w.line, key); w.works < folders {
			w.works++
			s.engine.Go(w.work(s))
		}
	}
}

// work does what is in line, and ends.
func (w *folding) work(s *Crons) func() {
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for len(w.line) > 0 {
			key := w.line[0]
			w.line = w.line[1:]
			f := w.next[key]
			w.next[key] = nil
			w.mu.Unlock()
			s.foldOne(w.ctx, f)
			w.mu.Lock()
			if w.next[key] != nil {
				w.line = append(w.line, key)
			} else {
				delete(w.next, key)
			}
		}
		w.works--
	}
}

// foldOne plans a tick and has the committer carry it out, or note why that
// cannot be. Where neither comes to the committer, the clock begins anew.
func (s *Crons) foldOne(ctx context.Context, f *fold) {
	turn := func() error {
		return s.engine.Do(ctx, len(f.entry.Payload), func(tx *engine.Tx) error {
			c, err := entryOf(tx.Store(), f.entry.Group, f.entry.Name)
			if job.KindOf(err) == job.NotFound {
				return nil // it was deleted
			}
			if err == nil && f.fits(c) {
				_, err = s.turn(tx, c, burst, f)
			}
			return err
		})
	}
	f.list = []engine.NewJob{jobOf(f.entry, f.entry.Next)}
	handed := false // to the committer, which notes refusals itself
	err := s.engine.Planned(ctx, f.list, func(plan engine.Plan) error {
		f.folds = plan
		err := turn()
		handed = !errors.Is(err, engine.ErrStale)
		return err
	})
	if err == nil || handed || ctx.Err() != nil {
		return
	}
	f.err = err
	_ = turn() // refused itself, it comes again
}

// put puts the job of an entry for a tick. It reports false if that was left
// to a goroutine.
func (s *Crons) put(tx *engine.Tx, c *job.CronEntry, tick job.Millis, f *fold) (a engine.Added, done bool, err error) {
	list, folds := []engine.NewJob(nil), engine.Plan(nil)
	switch {
	case !joins(c.Job):
		list = []engine.NewJob{jobOf(c, tick)}
	case f == nil || f.entry.Next != tick:
		left := *c
		left.Next = tick
		s.folds = append(s.folds, &fold{entry: &left})
		return a, false, nil
	case f.err != nil:
		return a, true, f.err
	default:
		list, folds = f.list, f.folds
	}
	out := make([]engine.Added, 1)
	err = tx.Put(list, folds, out)
	return out[0], true, err
}

// Run enqueues the job of an entry now, paused or not. Its ticks come
// as if nothing had happened.
func (s *Crons) Run(ctx context.Context, group, name string, by job.Actor) (engine.Added, engine.NewJob, error) {
	for {
		c, err := s.Entry(ctx, group, name)
		if err != nil {
			return engine.Added{}, engine.NewJob{}, err
		}
		list, out := []engine.NewJob{jobOf(c, 0)}, make([]engine.Added, 1)
		put := func(f engine.Plan) error {
			return s.engine.Do(ctx, len(c.Payload), func(tx *engine.Tx) error {
				now, err := entryOf(tx.Store(), group, name)
				if err != nil {
					return err
				}
				if !sameTemplate(now, c) {
					return errCronChanged
				}
				if err := tx.Put(list, f, out); err != nil {
					return err
				}
				return tx.Audit(by, "run cron", group+"/"+name, 1)
			})
		}
		if !joins(c.Job) {
			err = put(nil)
		} else {
			err = s.engine.Planned(ctx, list, put)
		}
		switch {
		case errors.Is(err, errCronChanged):
		case err != nil: // out may still be written to
			return engine.Added{}, engine.NewJob{}, err
		default:
			return out[0], list[0], nil
		}
	}
}

// errCronChanged has a run of an entry begin anew; nobody outside sees it.
var errCronChanged = job.Errorf(job.WrongState, "the cron entry changed meanwhile")
