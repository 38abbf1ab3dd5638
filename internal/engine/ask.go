package engine

import (
	"context"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Ask runs a command and returns what it Answered, once that is durable. With an
// error the answer is the zero value; when ctx has ended, the command may still take
// effect.
func Ask[T any](ctx context.Context, e *Engine, f func(*Tx) (T, error)) (T, error) {
	var out T
	err := e.Do(ctx, 0, func(r *Tx) (err error) {
		out, err = f(r)
		return err
	})
	return Answered(&out, err)
}

// Answered is what a command wrote for its caller. With an error it is the zero value:
// when ctx has ended the command may still be running, and write.
func Answered[T any](out *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *out, nil
}

// Store is the transaction of the store.
func (r *Tx) Store() store.Tx { return r.tx }

// Put puts jobs, by the plan that Planned made of them. out has a place for each.
func (r *intake) Put(list []NewJob, plan Plan, out []Added) error {
	return r.put(list, nil, plan, out)
}

// Now is the date of the transaction, Steady its time on the steady clock.
func (r *Tx) Now() job.Millis { return r.now }

// Steady is described at Now.
func (r *Tx) Steady() job.Millis { return r.steady }

// Moment is both.
func (r *Tx) Moment() rule.Moment { return rule.Moment{Now: r.now, Steady: r.steady} }

// Wake has all holders look at a queue again: something may have become ready.
func (r *names) Wake(queue string) { r.woken[queue] = true }

// Moved has holders be served once more in this transaction.
func (r *serving) Moved() { r.moved = true }

// Park takes a job out of its line under a label, or back into it if that is "".
func (r *Tx) Park(j *job.Job, label string) error {
	_, err := r.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) { n.Park = label }})
	return err
}

// KnowQueue notes, in Load, that a queue exists which has neither jobs nor settings.
func (e *Engine) KnowQueue(name string) { e.core.queues[name] = true }

// Rules are what applies everywhere.
func (r *Tx) Rules() *rule.Server { return r.e.rules() }

// ServeAll has all waiting holders be served again, in this transaction or the next.
func (r *serving) ServeAll() { r.fed = true }

// Limited reports whether a part limits a queue.
func (r *Tx) Limited(queue string) bool { return r.e.parts.limited(r, queue) }

// Ring tells those who wait for news of a name, once they are on disk.
func (r *Tx) Ring(name string) { r.news = append(r.news, name) }

// SparedUntil is until when no holder lapses, because the clock stepped; on the steady
// clock.
func (r *clockwork) SparedUntil() job.Millis { return r.watch.lapses }

// LastSeq is the latest line position that was drawn.
func (r *Tx) LastSeq() int64 { return r.seq.next - 1 }

// KnowsQueue reports whether a queue has jobs or settings.
func (r *names) KnowsQueue(name string) bool { return r.c.queues[name] || r.fresh[name] }

// OneMoreQueue refuses a queue above max_queues.
func (r *names) OneMoreQueue() error { return r.oneMoreQueue(0) }

// Lets reports whether no part would put a job aside that was given out now.
func (r *serving) Lets(j *job.Job) (bool, error) {
	park, err := r.e.parts.aside(r.Tx, j)
	return park == "" && err == nil, err
}

// OneMore reports whether the parts that limit its queue let one more job run, whatever
// they said before others were given out.
func (r *serving) OneMore(j *job.Job) (bool, error) {
	if !r.e.parts.limited(r.Tx, j.Queue) {
		return true, nil
	}
	return r.e.parts.lets(r.Tx, j)
}

// AsideEnough reports whether no more jobs may be put aside in this transaction. Then
// everybody is served again in the next one.
func (r *serving) AsideEnough() bool {
	enough := r.aside >= asideMax
	r.fed = r.fed || enough
	return enough
}

// Write writes a job in place of what it was, apart from any command.
func (r *Tx) Write(old, j *job.Job) error { return r.write(old, rule.Effect{Job: j}) }

// More has the next transaction follow at once: the clock left work behind.
func (r *clockwork) More() { r.ticked = true }

// Count adds to a counter of a part, when the transaction has taken effect.
func (r *Tx) Count(of *atomic.Uint64, n uint64) { r.counts = append(r.counts, count{of, n}) }

// NewID draws an id that is higher than all before.
func (r *Tx) NewID() job.ID { return r.ids.Next(r.now) }

// DiskLow reports whether the free disk space is below its reserve.
func (r *clockwork) DiskLow() bool { return r.disk.low }

// NewToken draws a token that was never given out.
func (r *Tx) NewToken() job.Token { return job.NewToken(r.c.start, r.e.rnd) }
