package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var errDiskLow = job.Errorf(job.Unavailable,
	"the disk is below its reserve, so nothing new is accepted; work that is here goes on. Free space or lower disk_reserve")

// Put takes work in, all or nothing: one refused job refuses the call, and
// nothing was written. When it returns without an error, every job survives a
// power cut (I5). Jobs of one call get ids in their order.
func (e *Engine) Put(ctx context.Context, list []NewJob) ([]Added, error) {
	bytes := 0
	for i := range list {
		bytes += len(list[i].Payload)
	}
	receipts := receiptsOf(list)
	out := make([]Added, len(list))
	err := e.do(ctx, bytes, func(r *run) error { return r.put(list, receipts, out) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// receiptsOf hashes keys and contents, on the caller's goroutine; nil where a
// job has no key.
func receiptsOf(list []NewJob) []*job.Receipt {
	var out []*job.Receipt
	for i := range list {
		if n := &list[i]; n.Key != "" {
			if out == nil {
				out = make([]*job.Receipt, len(list))
			}
			out[i] = &job.Receipt{Hash: hash128(n.Job.Door.String(), n.Job.Queue, n.Key), Content: contentOf(n)}
		}
	}
	return out
}

// contentOf hashes what a job is. Its dates say when: whoever sends "in two
// hours" a second time has computed another one, for the same work (core.md 7).
func contentOf(n *NewJob) [16]byte {
	j := &n.Job
	retry := ""
	if j.Retry != nil {
		retry = string(j.Retry.AppendBinary(nil))
	}
	var labels []job.Label
	if j.Extras != nil {
		labels = j.Extras.Labels
	}
	return hash128(j.Queue, j.Type, j.Group, string(n.Payload), retry, rule.Canonical(j.Requires),
		fmt.Sprintf("%q", labels), fmt.Sprint(j.Priority, j.RunTimeout, j.StartTimeout, j.Copies, j.RetainDone, j.RetainDead, n.Place))
}

// hash128 hashes texts, each preceded by its length.
func hash128(parts ...string) (sum [16]byte) {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	full := sha256.Sum256(b)
	copy(sum[:], full[:])
	return sum
}

// intake is what one call adds to what is there.
type intake struct {
	fresh  map[string]bool       // queues not seen before
	quotas map[string]*admission // of the queues that have one
}

// admission is how much a queue would hold.
type admission struct {
	queue       *job.Queue
	jobs, bytes int64
	full        bool // older jobs must leave
}

func (r *run) put(list []NewJob, receipts []*job.Receipt, out []Added) error {
	clear(out)
	if r.disk.low {
		return errDiskLow
	}
	fresh, err := r.recall(list, receipts, out)
	if err != nil {
		return err
	}
	in := intake{fresh: map[string]bool{}, quotas: map[string]*admission{}}
	for i := range list {
		if !out[i].Duplicate {
			if err := r.admit(&in, &list[i]); err != nil {
				return err
			}
		}
	}
	leaving, err := r.oldest(in.quotas)
	if err != nil {
		return err
	}
	if err := r.evict(leaving); err != nil {
		return err
	}
	for i := range list {
		if out[i].Duplicate {
			continue
		}
		if out[i].Job, err = r.putOne(&list[i]); err != nil {
			return err
		}
		out[i].ID = out[i].Job.ID
		if receipts != nil && receipts[i] != nil {
			receipt := *receipts[i]
			receipt.Job, receipt.Expires = out[i].ID, r.now.Add(r.e.opts.Idempotency)
			if err := r.tx.Set(&receipt); err != nil {
				return err
			}
		}
	}
	return r.answerTwins(fresh, out)
}

// recall finds the jobs whose key was seen before. fresh maps the place of a
// job to that of an earlier one of the same call with the same key.
func (r *run) recall(list []NewJob, receipts []*job.Receipt, out []Added) (fresh map[int]int, err error) {
	if receipts == nil {
		return nil, nil
	}
	seen := map[[16]byte]int{}
	for i, want := range receipts {
		if want == nil {
			continue
		}
		if first, ok := seen[want.Hash]; ok {
			if receipts[first].Content != want.Content {
				return nil, keyTaken(list[i].Key)
			}
			if fresh == nil {
				fresh = map[int]int{}
			}
			fresh[i] = first
			out[i].Duplicate = true
			continue
		}
		seen[want.Hash] = i
		row, err := r.tx.Row(job.Receipts, want.Key())
		if err != nil {
			return nil, err
		}
		known, ok := row.(*job.Receipt)
		if !ok || known.Expires <= r.now {
			continue
		}
		if known.Content != want.Content {
			return nil, keyTaken(list[i].Key)
		}
		j, err := r.tx.Get(known.Job)
		if err != nil {
			return nil, err
		}
		out[i] = Added{Job: j, ID: known.Job, Duplicate: true}
		r.stats.Duplicates++
	}
	return fresh, nil
}

func (r *run) answerTwins(fresh map[int]int, out []Added) error {
	for i, first := range fresh {
		out[i].Job, out[i].ID = out[first].Job, out[first].ID
		r.stats.Duplicates++
	}
	return nil
}

func keyTaken(key string) *job.Error {
	return &job.Error{
		Kind: job.Exists, Field: "idempotency_key",
		Text: fmt.Sprintf("idempotency key %q was used for other content; use a new key for new work", key),
	}
}

// admit checks quotas before anything is written (core.md section 10).
func (r *run) admit(in *intake, n *NewJob) error {
	name := n.Job.Queue
	if !r.c.queues[name] && !r.fresh[name] && !in.fresh[name] {
		if err := r.oneMoreQueue(len(in.fresh)); err != nil {
			return err
		}
		in.fresh[name] = true
	}
	a := in.quotas[name]
	if a == nil {
		q, err := r.queue(name)
		if err != nil || q.MaxJobs == 0 && q.MaxBytes == 0 {
			return err
		}
		d := r.tx.Depth(name)
		a = &admission{queue: q, jobs: d.Open(), bytes: d.Bytes}
		in.quotas[name] = a
	}
	size := int64(len(n.Payload))
	evict, err := rule.Admit(a.queue, a.jobs, a.bytes, size)
	a.full = a.full || evict
	a.jobs++
	a.bytes += size
	return err
}

// oneMoreQueue refuses a queue above max_queues; coming are about to be made.
func (r *run) oneMoreQueue(coming int) error {
	if len(r.c.queues)+len(r.fresh)+coming < r.e.opts.QueuesMax {
		return nil
	}
	return &job.Error{
		Kind: job.OverLimit, Field: "queue",
		Text: fmt.Sprintf("there may be %d queues (max_queues); use an existing one", r.e.opts.QueuesMax),
	}
}

// seeQueue notes that a queue exists.
func (r *run) seeQueue(name string) {
	if r.c.queues[name] {
		return
	}
	if r.fresh == nil {
		r.fresh = map[string]bool{}
	}
	r.fresh[name] = true
}

// oldest picks the oldest waiting jobs of full queues, as many as must leave
// for the newcomers. What runs stays; if that leaves no room, it is refused.
func (r *run) oldest(quotas map[string]*admission) (leaving []*job.Job, err error) {
	const page = 256
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		a := quotas[name]
		q, jobs, bytes := a.queue, a.jobs, a.bytes
		over := func() bool { return q.MaxJobs > 0 && jobs > q.MaxJobs || q.MaxBytes > 0 && bytes > q.MaxBytes }
		waiting := store.Filter{Queues: []string{name}, States: []job.State{job.Ready, job.Scheduled}}
		for a.full && over() {
			list, err := r.tx.List(waiting, page)
			if err != nil {
				return nil, err
			}
			if len(list) == 0 {
				return nil, rule.Full(q, a.jobs, a.bytes)
			}
			for _, j := range list {
				if !over() {
					break
				}
				leaving = append(leaving, j)
				jobs--
				bytes -= int64(j.PayloadSize)
			}
			waiting.From = list[len(list)-1].ID
		}
	}
	return leaving, nil
}

// evict pushes jobs out of a full queue (I9).
func (r *run) evict(list []*job.Job) error {
	for _, j := range list {
		f := job.Failure{Type: "Evicted", Message: "pushed out by newer work: the queue is full and on_full is drop_oldest"}
		if _, err := r.step(j, rule.Command{Verb: rule.Cancel, Reason: job.Evicted, Failure: f}); err != nil {
			return err
		}
		r.stats.Evicted++
	}
	return nil
}

func (r *run) putOne(n *NewJob) (*job.Job, error) {
	v, err := r.view(nil, n.Job.Queue, n.Job.Group)
	if err != nil {
		return nil, err
	}
	id := r.ids.Next(r.now)
	n.Job.ID, n.Job.Payload, n.Job.PayloadSize = id, id, uint32(len(n.Payload))
	c := rule.Command{Verb: rule.Put, New: &n.Job, Place: n.Place}
	eff, err := rule.Step(v, c)
	if err != nil {
		return nil, err
	}
	if err := r.tx.PutPayload(id, n.Payload); err != nil {
		return nil, err
	}
	r.tx.Durable()
	r.seeQueue(n.Job.Queue)
	r.stats.Put++
	r.note(&c, nil, &eff)
	return eff.Job, r.write(nil, eff)
}
