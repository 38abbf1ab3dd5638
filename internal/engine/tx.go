package engine

import (
	"errors"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// block is a durably reserved range of numbers.
type block struct{ next, end int64 }

const blockSize = 1 << 20

// Tx is one execution of a batch inside its transaction. What it changes outside the
// transaction is staged here, by rooms, and takes effect only if the transaction commits,
// because the store may run it twice. Each room has what it stages, and sees the others
// through its Tx.
type Tx struct {
	names     // of queues, and their settings
	intake    // of the call that brings work
	crowd     // who holds what
	serving   // who is given what
	settling  // what a call tells of runs
	clockwork // what the clock owes
	mending   // of faults
	recovery  // what a start owes

	e      *Engine
	c      *committer
	tx     store.Tx
	now    job.Millis
	steady job.Millis
	hooks  hooks
	ids    job.IDs
	seq    block
	news   []string             // names that somebody may wait for news of
	tell   []func(unknown bool) // what parts have to say when it is on disk
	stats  Stats
	counts []count // of parts
}

// count is what one counter of a part goes up by.
type count struct {
	of *atomic.Uint64
	n  uint64
}

// hooks are what a step may ask for. They are made once: a method made a value
// is a piece of memory each time.
type hooks struct {
	rand   func() float64
	seq    func() int64
	paused func(job.Fingerprint) bool
	kept   func(queue string) (int64, int)
}

// disk is what was seen of the free space.
type disk struct {
	low bool       // below the reserve
	at  job.Millis // when that was looked at
}

// all is what one transaction does, in this order.
func (r *Tx) all(b *batch) error {
	for _, step := range [...]struct {
		duty string // that rests for a fault, see duty; "" = none
		do   func() error
	}{
		{dutyAside, r.rejectFaulty}, // what was at fault in an earlier run of the batch
		{"", func() error { return r.commands(b.ops) }},
		{dutyTick, r.tick},
		{dutyOther, func() error { return r.e.parts.at(r, upkeeps) }},
		{dutyServe, r.serve},
		{dutyOther, func() error { return r.e.parts.at(r, served) }},
		{"", func() error { return r.e.parts.at(r, keeps) }},
	} {
		if err := r.duty(step.duty, step.do); err != nil {
			return err
		}
	}
	b.sleep = r.sleep()
	return nil
}

// commands runs what was asked for. A refusal is the answer to one of them.
func (r *Tx) commands(list []*op) error {
	for _, o := range list {
		if o.fault {
			o.err = errFault
			continue
		}
		r.doing = doing{op: o}
		switch o.err = o.run(r); {
		case !Fatal(o.err):
		case storeFailed(o.err):
			return o.err
		default: // it may be half done
			return &faulty{r.doing, o.err, nil}
		}
	}
	r.doing = doing{}
	return nil
}

// Fatal tells an error that ends the transaction from a refusal.
func Fatal(err error) bool {
	if err == nil {
		return false
	}
	switch job.KindOf(err) {
	case job.Unavailable:
		return !errors.Is(err, ErrDiskLow)
	case job.Internal, job.Corrupt:
		return true
	default:
		return false
	}
}

// reset begins anew: what was staged is forgotten, its memory is used again.
func (r *Tx) reset(e *Engine, tx store.Tx) {
	if r.hooks.rand == nil {
		r.hooks = hooks{rand: r.Uniform, seq: r.NextSeq, paused: r.Paused, kept: r.keptDone}
	}
	c := &e.core
	e.parts.begin()
	*r = Tx{
		e: e, c: c, tx: tx, now: tx.Now(), steady: e.clock.Steady(), hooks: r.hooks, ids: *c.ids, seq: c.seq, counts: r.counts[:0],
		names:     names{Tx: r, rows: renewed(r.rows), woken: renewed(r.woken), gaveBack: c.gaveBack},
		intake:    intake{Tx: r, coming: r.coming, quotas: r.quotas},
		crowd:     r.renewedCrowd(r, e),
		serving:   serving{Tx: r, hadFed: c.fed, emptied: c.emptied},
		settling:  settling{Tx: r},
		clockwork: clockwork{Tx: r, watch: c.watch, disk: c.disk},
		mending:   mending{Tx: r},
		recovery:  recovery{r},
	}
}

// renewed is an empty map, in the memory of one that is there.
func renewed[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	clear(m)
	return m
}

// publish makes staged changes true after the transaction was applied.
func (r *Tx) publish() {
	c := r.c
	r.report()
	r.e.latest.Store(int64(r.now))
	r.e.guarded.Store(int64(r.watch.guard))
	*c.ids, c.seq, c.fed, c.watch, c.disk = r.ids, r.seq, r.fed, r.watch, r.disk
	c.emptied = r.emptied
	r.e.parts.publish()
	r.tell = r.e.parts.announce()
	r.crowd.publish()
	r.names.publish()
	c.stats.add(r.stats)
	c.stats.Batches++
	for _, count := range r.counts {
		count.of.Add(count.n)
	}
	r.reportRejected()
	c.hungry.settle(r)
	c.streams[job.Unary] = c.hungry.unary
	r.e.figures.note(r.c)
	for _, h := range r.ended {
		h.finish(ErrStreamEnded)
	}
}

// NextSeq draws a line position, reserving a new block when the last is used up.
func (r *Tx) NextSeq() int64 {
	if r.seq.next == r.seq.end {
		r.seq.end += blockSize
		if err := r.tx.Set(&job.Reserve{Name: "seq", Next: r.seq.end}); err != nil {
			panic(err) // rows of this table have no refusal
		}
		r.tx.Durable()
	}
	n := r.seq.next
	r.seq.next++
	return n
}

func (r *Tx) Gate(queue, group string) (*job.Gate, error) {
	g, err := GateOf(r.tx, queue, group)
	if g == nil && err == nil {
		g = &job.Gate{Queue: queue, Group: group}
	}
	return g, err
}

// view collects what a step on the job may look at.
func (r *Tx) view(j *job.Job, queue, group string) (rule.View, error) {
	q, err := r.Queue(queue)
	if err != nil {
		return rule.View{}, err
	}
	v := rule.View{
		Now: r.now, Steady: r.steady, Job: j, Queue: q, Server: r.e.rules(),
		Rand: r.hooks.rand, Seq: r.hooks.seq, Paused: r.hooks.paused, Kept: r.hooks.kept, Start: r.c.start,
	}
	if j != nil && j.Extras != nil {
		v.Owner = r.otherOwner(j)
	}
	if v.Session, err = r.e.parts.session(r, q); err != nil {
		return v, err
	}
	if j == nil || group == "" && q.Protection.Fair == nil { // a newcomer asks for no gate
		return v, nil
	}
	if v.Gate, err = r.Gate(queue, group); err != nil {
		return v, err
	}
	if group == "" {
		return v, nil
	}
	if rule.NeedsHead(q, j) {
		first, err := r.tx.IDs(store.Members(queue, group), 1)
		if err != nil {
			return v, err
		}
		v.Head = len(first) > 0 && first[0] == j.ID
	}
	if j.Order == job.OrderStrict && len(j.Leases) > 0 {
		first, err := r.tx.IDs(store.Running(queue, group), 1)
		if err != nil {
			return v, err
		}
		v.Behind = len(first) > 0 && first[0] != j.ID
	}
	return v, nil
}

// Uniform draws from [0, 1).
func (r *Tx) Uniform() float64 { return float64(r.e.rnd()>>11) / (1 << 53) }

// Step applies a command to a job and writes the effect.
func (r *Tx) Step(j *job.Job, c rule.Command) (rule.Effect, error) {
	return r.stepAs(j, j, c)
}

// stepAs is Step on what a job is at the moment it is applied to, which nothing but its
// payload tells from what is stored.
func (r *Tx) stepAs(j, now *job.Job, c rule.Command) (rule.Effect, error) {
	r.doing.job = j.ID
	v, err := r.view(now, j.Queue, j.Group)
	if err != nil {
		return rule.Effect{}, err
	}
	eff, err := rule.Step(v, c)
	if err != nil || eff.Repeat {
		return eff, err
	}
	if err := r.write(j, eff); err != nil {
		return eff, err
	}
	if err := r.e.parts.stepped(r, &c, j, &eff); err != nil {
		return eff, err
	}
	if eff.Cut {
		if err := r.cutTurn(j); err != nil {
			return eff, err
		}
	}
	r.doing.job = job.ID{}
	return eff, nil
}

// Edit applies an edit to an open job, which may move it to the queue.
func (r *Tx) Edit(j *job.Job, queue string, edit func(*job.Job)) (rule.Effect, error) {
	v, err := r.view(j, queue, j.Group)
	if err != nil {
		return rule.Effect{}, err
	}
	eff, err := rule.Step(v, rule.Command{Verb: rule.Patch, Edit: edit})
	if err == nil {
		err = r.write(j, eff)
	}
	return eff, err
}

// write puts an effect into the transaction.
func (r *Tx) write(old *job.Job, eff rule.Effect) error {
	j := eff.Job
	if err := r.tx.Write(old, j); err != nil {
		return err
	}
	for i := range eff.Failures {
		if j == nil { // it left with its records
			break
		}
		f := &eff.Failures[i]
		if err := r.tx.PutFailure(j.ID, f); err != nil {
			return err
		}
		if old := rule.OutdatedBy(f.Number); old > 0 {
			if err := r.tx.DropFailure(j.ID, old); err != nil {
				return err
			}
		}
	}
	if err := r.e.parts.wrote(r, old, j); err != nil {
		return err
	}
	if eff.Gate != nil {
		if err := r.SetGate(eff.Gate); err != nil {
			return err
		}
	}
	if eff.Queue != nil {
		r.ForgetQueue(eff.Queue.Name)
		r.woken[eff.Queue.Name] = true // who is emptied for a job of it goes on
		if err := r.tx.Set(eff.Queue); err != nil {
			return err
		}
	}
	for i := range eff.Ended {
		r.freed(&eff.Ended[i])
	}
	for i := range eff.Voided {
		if err := r.tellVoid(old, &eff.Voided[i]); err != nil {
			return err
		}
	}
	r.wake(old, j)
	if old != nil && old.Group != "" && (j == nil || j.State.Terminal()) {
		return r.SweepGate(old.Queue, old.Group)
	}
	return nil
}

// wake notes queues in which something may have become ready.
func (r *Tx) wake(old, j *job.Job) {
	if j != nil && (j.State == job.Ready || j.CopiesWanted > 1) {
		r.woken[j.Queue] = true
	}
	if old != nil && (old.Group != "" || old.Isolated) { // its group, or who is emptied for it, may go on
		r.woken[old.Queue] = true
	}
}

// SetGate writes the row of a group, if there is anything to remember.
func (r *Tx) SetGate(g *job.Gate) error {
	if g.Blank() {
		return r.tx.Unset(job.Gates, g.Key())
	}
	return r.tx.Set(g)
}

// SweepGate forgets the row of a group that has no members any more.
func (r *Tx) SweepGate(queue, group string) error {
	g, err := r.Gate(queue, group)
	if err != nil || g.Blank() || rule.Aside(g) {
		return err
	}
	members, err := r.tx.IDs(store.Members(queue, group), 1)
	if err != nil || len(members) > 0 {
		return err
	}
	return r.tx.Unset(job.Gates, g.Key())
}

func (s *Stats) add(t Stats) {
	s.Put += t.Put
	s.Taken += t.Taken
	s.Done += t.Done
	s.Failed += t.Failed
	s.Died += t.Died
	s.Released += t.Released
	s.Lapsed += t.Lapsed
	s.Duplicates += t.Duplicates
	s.LateOK += t.LateOK
	s.OutOfOrder += t.OutOfOrder
	s.Suppressed += t.Suppressed
	s.Expired += t.Expired
	s.Purged += t.Purged
	s.Evicted += t.Evicted
	s.ClockSteps += t.ClockSteps
	s.Faults += t.Faults
}
