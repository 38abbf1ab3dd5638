package engine

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Folder says what becomes of a newcomer while another job waits for its
// batch: b is what that one was put with, existing its payload as it is now.
// It joins with the payload that the waiting job has then, or the waiting job
// takes nobody in any more. An error refuses the newcomer.
type Folder func(ctx context.Context, b *job.Batch, existing, newcomer []byte) (payload []byte, joins bool, err error)

// The committer runs no expressions (core.md section 9). A call with newcomers
// of batches therefore has two parts: a plan, made on a view of the store, of
// who joins whom and with which payload; and a put that carries it out if the
// jobs which take in newcomers are still those, with the same payload. If not,
// both begin anew.

// foldRounds is how often others may change what a plan was made for.
const foldRounds = 10

// ErrStale ends a put whose plan does not hold any more; nobody outside sees it.
var ErrStale = job.Errorf(job.WrongState, "the batch changed meanwhile")

var errFoldBusy = job.Errorf(job.Unavailable, "the batch was changed by others again and again; nothing was written. Send the request again in a moment")

// FoldPlan is the plan for one call. A nil one plans nothing.
type FoldPlan struct {
	batches []batchPlan
	bodies  [][]byte // by place in the call: the payload of its job in the end; nil = its own
	target  []int    // by place: whose job it becomes a part of, itself, an earlier place or -1-n for batches[n]
	known   []bool   // by place: a duplicate, by its idempotency key
}

// batchPlan is what was seen of a batch: who waits, and what it comes to.
type batchPlan struct {
	key   rule.Key
	job   *job.Job // nil = nobody waited
	body  []byte   // its payload in the end
	joins int      // how many it takes in
}

func (f *FoldPlan) body(list []NewJob, i int) []byte {
	if f == nil || f.bodies[i] == nil {
		return list[i].Payload
	}
	return f.bodies[i]
}

func (f *FoldPlan) into(i int) int {
	if f == nil {
		return i
	}
	return f.target[i]
}

func batchOf(j *job.Job) *job.Batch {
	if j.Extras == nil {
		return nil
	}
	return j.Extras.Batch
}

// Folded calls put with a plan until it holds. Whoever puts jobs with a batch
// must come through here, and give Tx.Put the plan.
func (e *Engine) Folded(ctx context.Context, list []NewJob, put func(*FoldPlan) error) error {
	return e.folded(ctx, list, nil, put)
}

func (e *Engine) folded(ctx context.Context, list []NewJob, receipts []*job.Receipt, put func(*FoldPlan) error) error {
	if e.opts.Fold == nil {
		return &job.Error{Kind: job.Invalid, Field: "batch", Text: "batch is not supported by this server"}
	}
	unlock, err := e.folding.lock(ctx, list)
	if err != nil {
		return err
	}
	defer unlock()
	for range foldRounds {
		plan, err := e.planFolds(ctx, list, receipts)
		if err == nil {
			err = put(plan)
		}
		if !errors.Is(err, ErrStale) {
			return err
		}
	}
	return errFoldBusy
}

// planFolds decides for every newcomer in the order of the call, so that later
// ones meet earlier ones.
func (e *Engine) planFolds(ctx context.Context, list []NewJob, receipts []*job.Receipt) (*FoldPlan, error) {
	f := &FoldPlan{bodies: make([][]byte, len(list)), target: make([]int, len(list)), known: make([]bool, len(list))}
	type waits struct { // for a batch
		batch  *job.Batch
		body   []byte
		target int
		owner  *job.Job // who waits
	}
	who := map[rule.Key]*waits{}
	var now job.Millis
	err := e.View(ctx, func(v store.Reader) error {
		now = v.Now()
		known := make([]Added, len(list))
		if _, err := recall(v, list, receipts, known); err != nil {
			return err
		}
		for i := range list {
			f.target[i], f.known[i] = i, known[i].Duplicate
			key := rule.KeyAsked(&list[i].Job)
			if !f.mayJoin(list, i, now) || who[key] != nil {
				continue
			}
			j, err := collector(v, key)
			if err != nil {
				return err
			}
			p := batchPlan{key: key, job: j}
			who[key] = &waits{target: -1 - len(f.batches)}
			if j != nil {
				if !list[i].sees(j) {
					return errElsewhere("batch.key")
				}
				p.body = v.Peek(j.Payload)
				who[key].batch, who[key].owner = batchOf(j), j
			}
			f.batches = append(f.batches, p)
		}
		return nil
	})
	if err == nil {
		err = e.readWaiting(f)
	}
	if err != nil {
		return nil, err
	}
	for n := range f.batches {
		who[f.batches[n].key].body = f.batches[n].body
	}
	for i := range list {
		if !f.mayJoin(list, i, now) {
			continue
		}
		w := who[rule.KeyAsked(&list[i].Job)]
		if w.batch != nil && rule.Reaches(w.owner, list[i].Job.Queue, list[i].Reach != nil) {
			body, joins, err := e.opts.Fold(ctx, w.batch, w.body, list[i].Payload)
			if err != nil {
				return nil, err
			}
			if joins {
				f.join(i, w.target, body)
				w.body = body
				continue
			}
		}
		*w = waits{batchOf(&list[i].Job), list[i].Payload, i, &list[i].Job}
	}
	return f, nil
}

// mayJoin reports whether a newcomer is for a batch: one that is due at once
// and new.
func (f *FoldPlan) mayJoin(list []NewJob, i int, now job.Millis) bool {
	j := &list[i].Job
	return batchOf(j) != nil && !f.known[i] && j.ReadyAt <= now
}

// join plans that a newcomer becomes a part of a job, whose payload is then body.
func (f *FoldPlan) join(i, target int, body []byte) {
	f.target[i] = target
	if target >= 0 {
		f.bodies[target] = body
		return
	}
	p := &f.batches[-1-target]
	p.body, p.joins = body, p.joins+1
}

// readWaiting reads the payloads that were not at hand.
func (e *Engine) readWaiting(f *FoldPlan) error {
	for n := range f.batches {
		p := &f.batches[n]
		if p.job == nil || p.body != nil {
			continue
		}
		body, err := store.Payload(e.store, p.job.Payload)
		if job.KindOf(err) == job.Corrupt {
			if err := e.rejectWaiting(p.job, err); err != nil {
				return err
			}
			return ErrStale
		}
		if err != nil {
			return e.noted(err)
		}
		if p.body = body; body == nil { // it took in another one, or left
			return ErrStale
		}
	}
	return nil
}

// collector is the job that takes in newcomers of a batch, nil if none does.
// One that has expired does not, even before the clock takes it away.
func collector(v store.Reader, key rule.Key) (*job.Job, error) {
	id, ok := v.Owner(key)
	if !ok {
		return nil, nil
	}
	j, err := v.Get(id)
	if err != nil || j.ExpiresAt > 0 && j.ExpiresAt <= v.Now() {
		return nil, err
	}
	return j, nil
}

// waiting is the job of a plan as it is now, or errStale.
func (r *Tx) waiting(p *batchPlan) (*job.Job, error) {
	j, err := collector(r.tx, p.key)
	if err != nil {
		return nil, err
	}
	if (j == nil) != (p.job == nil) || j != nil && (j.ID != p.job.ID || j.Payload != p.job.Payload || j.Queue != p.job.Queue) {
		return nil, ErrStale
	}
	return j, nil
}

// foldable marks who joins another job, or finds that the plan does not hold.
func (r *Tx) foldable(f *FoldPlan, list []NewJob, out []Added) error {
	if f == nil {
		return nil
	}
	for n := range f.batches {
		if _, err := r.waiting(&f.batches[n]); err != nil {
			return err
		}
	}
	for i := range out {
		if batchOf(&list[i].Job) != nil && f.known[i] != out[i].Duplicate {
			return ErrStale
		}
		out[i].Folded = f.target[i] != i
	}
	return nil
}

// admitFolds checks what queues may hold in bytes: a job that takes something
// in must not grow beyond that.
func (r *Tx) admitFolds(in *intake, f *FoldPlan) error {
	if f == nil {
		return nil
	}
	for n := range f.batches {
		p := &f.batches[n]
		if p.joins == 0 {
			continue
		}
		a, err := r.quota(in, p.job.Queue)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		grows := int64(len(p.body)) - int64(p.job.PayloadSize)
		if a.bytes += grows; grows > 0 && a.queue.MaxBytes > 0 && a.bytes > a.queue.MaxBytes {
			return rule.Full(a.queue, a.jobs, a.bytes-grows)
		}
	}
	return nil
}

// fold gives the jobs that take newcomers in their new payloads. leaving are
// jobs about to be pushed out, some of which may be among them.
func (r *Tx) fold(f *FoldPlan, leaving []*job.Job, out []Added) error {
	if f == nil {
		return nil
	}
	for n := range f.batches {
		p := &f.batches[n]
		if p.joins == 0 {
			continue
		}
		old, err := r.waiting(p)
		if err != nil {
			return err
		}
		j, err := rule.Fold(old, r.ids.Next(r.now), uint32(len(p.body)))
		if err != nil {
			return err
		}
		if err := r.tx.PutPayload(j.Payload, p.body); err != nil {
			return err
		}
		r.tx.Durable()
		if err := r.write(old, rule.Effect{Job: j}); err != nil {
			return err
		}
		for i := range out {
			if f.target[i] == -1-n {
				out[i].Job, out[i].ID = j, j.ID
			}
		}
		if at := slices.IndexFunc(leaving, func(l *job.Job) bool { return l.ID == j.ID }); at >= 0 {
			leaving[at] = j
		}
	}
	for i := range out {
		if out[i].Folded {
			r.stats.Folded++
		}
	}
	return nil
}

// foldLocks let newcomers of one batch plan one after the other: those that
// plan side by side would all but one plan in vain. Batches may share a lock.
type foldLocks [64]chan struct{}

func newFoldLocks() (l foldLocks) {
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

func (l *foldLocks) lock(ctx context.Context, list []NewJob) (unlock func(), err error) {
	var need []int
	for i := range list {
		if b := batchOf(&list[i].Job); b != nil {
			sum := fnv.New32a()
			_, _ = sum.Write([]byte(b.Key))
			need = append(need, int(sum.Sum32()%uint32(len(l))))
		}
	}
	slices.Sort(need) // all take them in this order, so nobody waits in a ring
	need = slices.Compact(need)
	unlock = func() {
		for _, n := range need {
			<-l[n]
		}
	}
	for at, n := range need {
		select {
		case l[n] <- struct{}{}:
		case <-ctx.Done():
			need = need[:at]
			unlock()
			return nil, ctx.Err()
		}
	}
	return unlock, nil
}
