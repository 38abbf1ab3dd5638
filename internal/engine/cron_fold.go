package engine

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
)

// A tick of an entry whose job has a batch is planned outside the committer,
// like every newcomer of a batch (fold.go). The clock leaves it to a goroutine,
// and the entry comes up again after cronFoldAgain if nothing came of that. The
// job and how far the entry has come are still in one transaction, and one that
// finds the entry past the tick does nothing: so no tick is folded in twice.

const (
	cronFoldAgain = job.Second // for the clock to look again at a tick that it left to a goroutine
	cronFolders   = 4          // goroutines at most
)

// cronFold is a tick that is to be planned.
type cronFold struct {
	entry *job.CronEntry // as it was; its Next is the tick

	// The outcome of planning.
	list  []NewJob
	folds *folding
	err   error // why it cannot be carried out
}

// fits reports whether what was planned is what the entry asks for now, and has
// not been refused since.
func (f *cronFold) fits(c *job.CronEntry) bool {
	return f != nil && c.Next == f.entry.Next && c.Failures == f.entry.Failures && sameTemplate(c, f.entry)
}

func sameTemplate(a, b *job.CronEntry) bool {
	return a.Place == b.Place && bytes.Equal(a.Payload, b.Payload) && reflect.DeepEqual(a.Job, b.Job)
}

// cronFolding are the ticks that goroutines plan, one at a time of an entry.
type cronFolding struct {
	ctx  context.Context //nolint:containedctx // of its goroutines, not of a call: it ends with the engine
	stop context.CancelFunc

	mu    sync.Mutex           // guards what follows
	next  map[string]*cronFold // by entry in line or at work: what is to be done for it; nil = nothing more
	line  []string             // keys of entries
	works int                  // goroutines
}

// foldCrons begins with ticks; the committer calls it once they are true.
func (e *Engine) foldCrons(list []*cronFold) {
	w := &e.cronFolds
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range list {
		key := f.entry.Key()
		_, known := w.next[key]
		if w.next[key] = f; known { // whoever is at work sees it
			continue
		}
		if w.line = append(w.line, key); w.works < cronFolders {
			w.works++
			e.loops.Go(w.work(e))
		}
	}
}

// work does what is in line, and ends.
func (w *cronFolding) work(e *Engine) func() {
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for len(w.line) > 0 {
			key := w.line[0]
			w.line = w.line[1:]
			f := w.next[key]
			w.next[key] = nil
			w.mu.Unlock()
			e.foldCron(w.ctx, f)
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

// foldCron plans a tick and has the committer carry it out, or note why that
// cannot be. Where neither comes to the committer, the clock begins anew.
func (e *Engine) foldCron(ctx context.Context, f *cronFold) {
	turn := func() error {
		return e.do(ctx, len(f.entry.Payload), func(r *Tx) error {
			c, err := cronEntryOf(r.tx, f.entry.Group, f.entry.Name)
			if job.KindOf(err) == job.NotFound {
				return nil // it was deleted
			}
			if err == nil && f.fits(c) {
				_, err = r.turnCron(c, cronBurst, f)
			}
			return err
		})
	}
	f.list = []NewJob{cronJob(f.entry, f.entry.Next)}
	handed := false // to the committer, which notes refusals itself
	err := e.folded(ctx, f.list, nil, func(plan *folding) error {
		f.folds = plan
		err := turn()
		handed = !errors.Is(err, errStale)
		return err
	})
	if err == nil || handed || ctx.Err() != nil {
		return
	}
	f.err = err
	_ = turn() // refused itself, it comes again
}

// putCron puts the job of an entry for a tick. It reports false if that was left
// to a goroutine.
func (r *Tx) putCron(c *job.CronEntry, tick job.Millis, f *cronFold) (a Added, done bool, err error) {
	list, folds := []NewJob(nil), (*folding)(nil)
	switch {
	case batchOf(c.Job) == nil:
		list = []NewJob{cronJob(c, tick)}
	case f == nil || f.entry.Next != tick:
		left := *c
		left.Next = tick
		r.cronFolds = append(r.cronFolds, &cronFold{entry: &left})
		return a, false, nil
	case f.err != nil:
		return a, true, f.err
	default:
		list, folds = f.list, f.folds
	}
	out := make([]Added, 1)
	err = r.put(list, nil, folds, out)
	return out[0], true, err
}

// RunCronEntry enqueues the job of an entry now, paused or not. Its ticks come
// as if nothing had happened.
func (e *Engine) RunCronEntry(ctx context.Context, group, name string, by job.Actor) (Added, NewJob, error) {
	for {
		c, err := e.CronEntry(ctx, group, name)
		if err != nil {
			return Added{}, NewJob{}, err
		}
		list, out := []NewJob{cronJob(c, 0)}, make([]Added, 1)
		put := func(f *folding) error {
			return e.do(ctx, len(c.Payload), func(r *Tx) error {
				now, err := cronEntryOf(r.tx, group, name)
				if err != nil {
					return err
				}
				if !sameTemplate(now, c) {
					return errCronChanged
				}
				if err := r.put(list, nil, f, out); err != nil {
					return err
				}
				return r.Audit(by, "run cron", group+"/"+name, 1)
			})
		}
		if batchOf(c.Job) == nil {
			err = put(nil)
		} else {
			err = e.folded(ctx, list, nil, put)
		}
		switch {
		case errors.Is(err, errCronChanged):
		case err != nil: // out may still be written to
			return Added{}, NewJob{}, err
		default:
			return out[0], list[0], nil
		}
	}
}

// errCronChanged has a run of an entry begin anew; nobody outside sees it.
var errCronChanged = job.Errorf(job.WrongState, "the cron entry changed meanwhile")
