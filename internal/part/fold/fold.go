// Package fold is the part for batches: a job that comes while another one waits for its
// batch may become a part of that (core.md section 7).
//
// It has no rows and no memory: who waits is found by its key.
package fold

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/engine"
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

var errFoldBusy = job.Errorf(job.Unavailable, "the batch was changed by others again and again; nothing was written. Send the request again in a moment")

// plan is the plan for one call. A nil one plans nothing.
type plan struct {
	folds   *Folds
	batches []batch
	bodies  [][]byte // by place in the call: the payload of its job in the end; nil = its own
	target  []int    // by place: whose job it becomes a part of, itself, an earlier place or -1-n for batches[n]
	known   []bool   // by place: a duplicate, by its idempotency key
}

// batch is what was seen of a batch: who waits, and what it comes to.
type batch struct {
	key   rule.Key
	job   *job.Job // nil = nobody waited
	body  []byte   // its payload in the end
	joins int      // how many it takes in
}

// Body implements engine.Plan.
func (f *plan) Body(i int) []byte { return f.bodies[i] }

// Into implements engine.Plan.
func (f *plan) Into(i int) int { return f.target[i] }

func batchOf(j *job.Job) *job.Batch {
	if j.Extras == nil {
		return nil
	}
	return j.Extras.Batch
}

// Folds are the batches of a server.
type Folds struct {
	// Folder decides who joins whom; nil = jobs with a batch are refused.
	Folder Folder

	engine *engine.Engine
	locks  locks
	folded atomic.Uint64
}

// Folded is how many jobs waiting ones of their batches took in since the start.
func (s *Folds) Folded() uint64 { return s.folded.Load() }

// Join implements engine.Part.
func (s *Folds) Join(e *engine.Engine) engine.Hooks {
	s.engine, s.locks = e, newLocks()
	return engine.Hooks{Plan: s.plan}
}

// plan calls put with a plan until it holds, if any job of the call is for a batch.
func (s *Folds) plan(ctx context.Context, list []engine.NewJob, known engine.KnownJobs, put func(engine.Plan) error) (planned bool, err error) {
	if !slices.ContainsFunc(list, func(n engine.NewJob) bool { return batchOf(&n.Job) != nil }) {
		return false, nil
	}
	if s.Folder == nil {
		return true, &job.Error{Kind: job.Invalid, Field: "batch", Text: "batch is not supported by this server"}
	}
	unlock, err := s.locks.lock(ctx, list)
	if err != nil {
		return true, err
	}
	defer unlock()
	for range foldRounds {
		plan, err := s.planFolds(ctx, list, known)
		if err == nil {
			err = put(plan)
		}
		if !errors.Is(err, engine.ErrStale) {
			return true, err
		}
	}
	return true, errFoldBusy
}

// planFolds decides for every newcomer in the order of the call, so that later
// ones meet earlier ones.
func (s *Folds) planFolds(ctx context.Context, list []engine.NewJob, there engine.KnownJobs) (*plan, error) {
	f := &plan{folds: s, bodies: make([][]byte, len(list)), target: make([]int, len(list)), known: make([]bool, len(list))}
	type waits struct { // for a batch
		batch  *job.Batch
		body   []byte
		target int
		owner  *job.Job // who waits
	}
	who := map[rule.Key]*waits{}
	var now job.Millis
	err := s.engine.View(ctx, func(v store.Reader) error {
		now = v.Now()
		known, err := there(v)
		if err != nil {
			return err
		}
		for i := range list {
			f.target[i], f.known[i] = i, known[i]
			key := rule.KeyAsked(&list[i].Job)
			if !f.mayJoin(list, i, now) || who[key] != nil {
				continue
			}
			j, err := collector(v, key)
			if err != nil {
				return err
			}
			p := batch{key: key, job: j}
			who[key] = &waits{target: -1 - len(f.batches)}
			if j != nil {
				if !list[i].Sees(j) {
					return engine.ErrElsewhere("batch.key")
				}
				p.body = v.Peek(j.Payload)
				who[key].batch, who[key].owner = batchOf(j), j
			}
			f.batches = append(f.batches, p)
		}
		return nil
	})
	if err == nil {
		err = s.readWaiting(ctx, f)
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
			body, joins, err := s.Folder(ctx, w.batch, w.body, list[i].Payload)
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
func (f *plan) mayJoin(list []engine.NewJob, i int, now job.Millis) bool {
	j := &list[i].Job
	return batchOf(j) != nil && !f.known[i] && j.ReadyAt <= now
}

// join plans that a newcomer becomes a part of a job, whose payload is then body.
func (f *plan) join(i, target int, body []byte) {
	f.target[i] = target
	if target >= 0 {
		f.bodies[target] = body
		return
	}
	p := &f.batches[-1-target]
	p.body, p.joins = body, p.joins+1
}

// readWaiting reads the payloads that were not at hand.
func (s *Folds) readWaiting(ctx context.Context, f *plan) error {
	for n := range f.batches {
		p := &f.batches[n]
		if p.job == nil || p.body != nil {
			continue
		}
		body, err := s.engine.Payload(p.job.Payload)
		if job.KindOf(err) == job.Corrupt {
			if err := s.engine.RejectUnread(ctx, p.job, err); err != nil {
				return err
			}
			return engine.ErrStale
		}
		if err != nil {
			return err
		}
		if p.body = body; body == nil { // it took in another one, or left
			return engine.ErrStale
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

// waiting is the job of a plan as it is now, or engine.ErrStale.
func (p *batch) waiting(tx *engine.Tx) (*job.Job, error) {
	j, err := collector(tx.Store(), p.key)
	if err != nil {
		return nil, err
	}
	if (j == nil) != (p.job == nil) || j != nil && (j.ID != p.job.ID || j.Payload != p.job.Payload || j.Queue != p.job.Queue) {
		return nil, engine.ErrStale
	}
	return j, nil
}

// Check implements engine.Plan: it marks who joins another job, or finds that the plan does not hold.
func (f *plan) Check(tx *engine.Tx, list []engine.NewJob, out []engine.Added) error {
	for n := range f.batches {
		if _, err := f.batches[n].waiting(tx); err != nil {
			return err
		}
	}
	for i := range out {
		if batchOf(&list[i].Job) != nil && f.known[i] != out[i].Duplicate {
			return engine.ErrStale
		}
		out[i].Folded = f.target[i] != i
	}
	return nil
}

// Admit implements engine.Plan.
func (f *plan) Admit(grow func(queue string, by int64) error) error {
	for n := range f.batches {
		if p := &f.batches[n]; p.joins > 0 {
			if err := grow(p.job.Queue, int64(len(p.body))-int64(p.job.PayloadSize)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Apply implements engine.Plan: it gives the jobs that take newcomers in their new payloads. leaving are
// jobs about to be pushed out, some of which may be among them.
func (f *plan) Apply(tx *engine.Tx, leaving []*job.Job, out []engine.Added) error {
	for n := range f.batches {
		p := &f.batches[n]
		if p.joins == 0 {
			continue
		}
		old, err := p.waiting(tx)
		if err != nil {
			return err
		}
		j, err := rule.Fold(old, tx.NewID(), uint32(len(p.body)))
		if err != nil {
			return err
		}
		if err := tx.Store().PutPayload(j.Payload, p.body); err != nil {
			return err
		}
		tx.Store().Durable()
		if err := tx.Write(old, j); err != nil {
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
			tx.Count(&f.folds.folded, 1)
		}
	}
	return nil
}

// locks let newcomers of one batch plan one after the other: those that
// plan side by side would all but one plan in vain. Batches may share a lock.
type locks [64]chan struct{}

func newLocks() (l locks) {
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

func (l *locks) lock(ctx context.Context, list []engine.NewJob) (unlock func(), err error) {
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
