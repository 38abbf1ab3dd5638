package sim_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// valve lets the folds of ticks through, or keeps them waiting.
type valve struct {
	mu   sync.Mutex
	wait chan struct{} // nil = they go through
}

func (v *valve) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.wait == nil {
		v.wait = make(chan struct{})
	}
}

func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.wait != nil {
		close(v.wait)
		v.wait = nil
	}
}

func (v *valve) pass(ctx context.Context) error {
	v.mu.Lock()
	wait := v.wait
	v.mu.Unlock()
	if wait == nil {
		return nil
	}
	select {
	case <-wait:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *valve) shut() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wait != nil
}

// fold is what the engine calls for expressions; those of ticks may take long.
func (w *world) fold(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
	if newcomer[0] == 'c' {
		if err := w.folds.pass(ctx); err != nil {
			return nil, false, err
		}
	}
	return joined(ctx, b, existing, newcomer)
}

// drawCronBatch gives the job of an entry a batch, of which ticks and clients
// are newcomers. A payload with "!" cannot be taken in by another job.
func (w *world) drawCronBatch(n *engine.NewJob) {
	n.Job.Extras = &job.Extras{Batch: &job.Batch{Key: fmt.Sprint("b", w.dice.IntN(2)), When: fmt.Sprint(w.dice.IntN(90)), Fold: "+"}}
	if w.oneIn(6) {
		n.Payload = append(n.Payload, '!')
	}
}

// foldSlowly lets a tick come that takes long to be folded into a job that
// waits, and something else happen by then.
func (w *world) foldSlowly() {
	if !w.up() || w.folds.shut() {
		w.foldFast()
		return
	}
	e := w.foldsSoon()
	if e == nil {
		return
	}
	if j := w.judge.ownerOf(keyOf(e.Job)); j == nil {
		r := w.draft(true)
		r.put.Job.ReadyAt, r.put.Job.ExpiresAt = 0, 0
		r.put.Job.Extras = &job.Extras{Batch: &job.Batch{Key: e.Job.Extras.Batch.Key, When: "90", Fold: "+"}}
		r.text = "put " + r.label + described(&r.put)
		w.putAll([]*request{r})
	}
	w.folds.close()
	w.say("    the tick comes at %s", stamp(e.Next))
	w.pass(max(0, e.Next-w.now()))
	switch w.dice.IntN(9) {
	case 0, 1, 2:
		w.changeEntry(cronNames[0])
	case 3:
		w.powerCut()
	case 4:
		w.restart()
	case 5:
		w.commitFails()
	case 6:
		w.diskStalls()
	case 7:
		w.pass(w.between(job.Second, 8*job.Second))
	}
	if !w.oneIn(4) {
		w.settle()
		w.foldFast()
	}
}

// foldsSoon is an entry that folds and has a tick within 10 s; nil =
// there cannot be one now.
func (w *world) foldsSoon() *job.CronEntry {
	soon := func() *job.CronEntry {
		e, _ := w.judge.book.rows[rowKey{job.CronEntries, job.CronKey(cronGroup, cronNames[0])}].(*job.CronEntry)
		g, _ := w.judge.book.rows[rowKey{job.CronGroups, cronGroup}].(*job.CronGroup)
		if e == nil || !folds(e) || e.Paused || g.Paused || e.Next > w.now()+10*job.Second {
			return nil
		}
		return e
	}
	if e := soon(); e != nil {
		return e
	}
	ask := w.drawCronEntry(cronNames[0])
	at := w.now() + w.between(job.Second, 5*job.Second)
	ask.Expression = fmt.Sprintf("%d %d * * * *", at/job.Second%60, at/job.Minute%60)
	ask.Paused = new(false)
	w.drawCronBatch(&ask.Job)
	r := &request{kind: askCron, cron: &cronAsk{entry: ask.Name}, name: cronGroup}
	w.askCronEntry(r, ask)
	w.askCron(r)
	w.settle()
	return soon()
}

// foldFast lets the folds go on.
func (w *world) foldFast() {
	if w.folds.shut() {
		w.say("    what is being folded goes on")
		w.folds.open()
		w.settle()
	}
}
