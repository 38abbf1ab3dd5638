package model

import (
	"context"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// The model knows keys as events: who has a key lets it go when this happens,
// and has it again when that happens (zizq.md 1.15 and 1.16).

// owner is the job that has the key of a job, nil if none does.
func (m *model) owner(of *job.Job) *job.Job {
	for _, j := range m.jobs {
		if j.HoldsKey && sameKey(j, of) {
			return j
		}
	}
	return nil
}

func sameKey(a, b *job.Job) bool {
	x, y := a.Extras, b.Extras
	switch {
	case x == nil || y == nil:
		return false
	case x.Unique != nil && y.Unique != nil:
		return x.Unique.Key == y.Unique.Key
	case x.Batch != nil && y.Batch != nil:
		return x.Batch.Key == y.Batch.Key
	}
	return false
}

// meets is the answer to a newcomer that is turned away or taken in, nil if it
// is neither.
func (m *model) meets(n engine.NewJob) *engine.Added {
	o := m.owner(&n.Job)
	if o == nil {
		return nil
	}
	if u := n.Job.Extras.Unique; u != nil {
		inTheWay := map[job.UniqueScope][]job.State{
			job.WhileQueued: {job.Scheduled, job.Ready},
			job.WhileActive: {job.Scheduled, job.Ready, job.Leased},
			job.WhileExists: {job.Scheduled, job.Ready, job.Leased, job.Done, job.Dead},
		}
		if !slices.Contains(inTheWay[u.While], o.State) {
			return nil
		}
		m.stats.Duplicates++
		return &engine.Added{Job: o, ID: o.ID, Duplicate: true}
	}
	if n.Job.ReadyAt > m.now || int(o.PayloadSize) >= longest(o.Extras.Batch) {
		return nil
	}
	o.PayloadSize += uint32(1 + len(n.Payload))
	m.made[o.ID] = slices.Concat(m.made[o.ID], []byte("+"), n.Payload)
	m.folded++
	if n.Key != "" {
		m.receipts[keyOf(n)] = receipt{n, o.ID, m.now + idempotency}
	}
	return &engine.Added{Job: o, ID: o.ID, Folded: true}
}

// owns gives a newcomer its key; who had it has it no more.
func (m *model) owns(j *job.Job) {
	if x := j.Extras; x == nil || x.Unique == nil && x.Batch == nil || x.Batch != nil && j.State != job.Ready {
		return
	}
	if o := m.owner(j); o != nil {
		o.HoldsKey = false
	}
	j.HoldsKey = true
}

// taken: a job leaves the line for a worker.
func (m *model) taken(j *job.Job) {
	if x := j.Extras; x != nil && (x.Batch != nil || x.Unique != nil && x.Unique.While == job.WhileQueued) {
		j.HoldsKey = false
	}
}

// finished: a job is done or dead.
func (m *model) finished(j *job.Job) {
	if x := j.Extras; x != nil && (x.Batch != nil || x.Unique != nil && x.Unique.While != job.WhileExists) {
		j.HoldsKey = false
	}
}

// returns: a job comes back into line from a worker.
func (m *model) returns(j *job.Job) {
	if x := j.Extras; x != nil && x.Unique != nil && m.owner(j) == nil {
		j.HoldsKey = true
	}
}

// setBack: a patch may make a job wait for its time again.
func (m *model) setBack(j *job.Job) {
	if x := j.Extras; x != nil && x.Batch != nil && j.State == job.Scheduled {
		j.HoldsKey = false
	}
}

func longest(b *job.Batch) int {
	n, err := strconv.Atoi(b.When)
	if err != nil {
		panic(err)
	}
	return n
}

// joined is what the expressions of these batches say.
func joined(_ context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
	if len(existing) >= longest(b) {
		return nil, false, nil
	}
	return slices.Concat(existing, []byte("+"), newcomer), true, nil
}

func (w *world) drawKey(t *rapid.T) *job.Extras {
	switch one(t, "kind of key", 0, 0, 0, 1, 2) {
	case 1:
		return &job.Extras{Unique: &job.Unique{Key: one(t, "unique key", "k", "l"), While: one(t, "while", job.WhileQueued, job.WhileActive, job.WhileExists)}}
	case 2:
		return &job.Extras{Batch: &job.Batch{Key: one(t, "batch key", "k", "l"), When: one(t, "longest", "0", "9", "30"), Fold: "+"}}
	}
	return nil
}

// folded notes what became of the payload of a job that took newcomers in, and
// where it is kept, which only the engine can say: not where it was, unless the
// job is new itself.
func (w *world) folded(got, want *job.Job, isNew bool) {
	if (got.Payload == want.Payload) != isNew {
		w.Fatalf("the payload of %s is kept under %s, and was under %s", w.name(want), got.Payload, want.Payload)
	}
	want.Payload = got.Payload
	w.bodies[want.ID] = w.model.made[want.ID]
	_, body, err := w.Get(w.Context(), got.ID)
	w.must(err)
	w.body(got.ID, body)
}
