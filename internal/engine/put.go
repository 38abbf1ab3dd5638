package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var ErrDiskLow = job.Errorf(job.Unavailable,
	"the disk is below its reserve, so nothing new is accepted; work that is here goes on. Free space or lower disk_reserve")

// Put takes work in, all or nothing: one refused job refuses the call, and
// nothing was written. When it returns without an error, every job survives a
// power cut (I5). Jobs of one call get ids in their order.
func (e *Engine) Put(ctx context.Context, list []NewJob) ([]Added, error) {
	bytes, extras := 0, false
	for i := range list {
		bytes += len(list[i].Payload)
		extras = extras || list[i].Job.Extras != nil
	}
	narrow(list)
	receipts := receiptsOf(list)
	out := make([]Added, len(list))
	put := func(p Plan) error {
		return e.Do(ctx, bytes, func(r *Tx) error { return r.put(list, receipts, p, out) })
	}
	var err error
	if extras {
		err = e.parts.planned(ctx, list, receipts, put)
	} else {
		err = put(nil)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// intake is what one call adds to what is there.
type intake struct {
	*Tx
	coming map[string]bool       // queues not seen before
	quotas map[string]*admission // of the queues that have one
	asked  []Intake              // what parts know of jobs with extras; nil = there are none
}

// begin forgets the call before.
func (r *intake) begin() {
	r.coming, r.quotas, r.asked = renewed(r.coming), renewed(r.quotas), nil
}

// admission is how much a queue would hold.
type admission struct {
	queue       *job.Queue
	jobs, bytes int64
	full        bool // older jobs must leave
}

// put refuses the call, or writes all of it: who is here already, what keeps a newcomer
// out, and then the jobs.
func (r *intake) put(list []NewJob, receipts []*job.Receipt, plan Plan, out []Added) error {
	clear(out)
	if plan == nil {
		plan = noPlan{}
	}
	if err := r.e.parts.coming(r.Tx, list); err != nil {
		return err
	}
	if r.disk.low {
		return ErrDiskLow
	}
	twins, err := recall(r.tx, list, receipts, out)
	if err != nil {
		return err
	}
	twins, heirs, err := r.meet(list, twins, out)
	if err != nil {
		return err
	}
	if err := plan.Check(r.Tx, list, out); err != nil {
		return err
	}
	if err := r.e.parts.check(r.Tx, list, out); err != nil {
		return err
	}
	if err := r.admitAll(list, plan, out); err != nil {
		return err
	}
	if err := r.putAll(list, receipts, plan, heirs, out); err != nil {
		return err
	}
	r.answerTwins(twins, out)
	return nil
}

// admitAll checks what queues and parts have against the newcomers of a call, and makes
// room for them.
func (r *intake) admitAll(list []NewJob, plan Plan, out []Added) error {
	r.begin()
	for i := range list {
		if !out[i].Duplicate && !out[i].Folded {
			if err := r.admit(i, &list[i], bodyOf(plan, list, i)); err != nil {
				return err
			}
		}
	}
	if err := plan.Admit(func(queue string, by int64) error { return r.grow(queue, by) }); err != nil {
		return err
	}
	leaving, err := r.oldest(r.quotas)
	if err != nil {
		return err
	}
	if err := plan.Apply(r.Tx, leaving, out); err != nil { // before one that took something in may be pushed out
		return err
	}
	if err := r.evict(leaving); err != nil {
		return err
	}
	for _, p := range r.asked {
		if err := p.Make(); err != nil {
			return err
		}
	}
	return nil
}

// putAll writes the newcomers of a call, each with its receipt.
func (r *intake) putAll(list []NewJob, receipts []*job.Receipt, plan Plan, heirs bool, out []Added) (err error) {
	var kept []job.Receipt // of this run: a store may hold on to them
	for i := range list {
		if out[i].Duplicate {
			continue
		}
		if !out[i].Folded {
			if out[i].Job, err = r.putOne(&list[i], bodyOf(plan, list, i), heirs); err != nil {
				return err
			}
			out[i].ID = out[i].Job.ID
		}
		if first := plan.Into(i); first != i && first >= 0 {
			out[i].Job, out[i].ID = out[first].Job, out[first].ID
		}
		if receipts == nil || receipts[i] == nil {
			continue
		}
		if kept == nil {
			kept = make([]job.Receipt, 0, len(list)-i)
		}
		receipt := *receipts[i]
		receipt.Job, receipt.Expires = out[i].ID, r.now.Add(r.e.opts.window(list[i].Job.Door))
		kept = append(kept, receipt)
		if err := r.tx.Set(&kept[len(kept)-1]); err != nil {
			return err
		}
	}
	return nil
}

// answerTwins answers those that are the same as an earlier one of their call,
// which may be such a one itself.
func (r *intake) answerTwins(twins map[int]int, out []Added) {
	for i := range out {
		if first, is := twins[i]; is {
			out[i].Job, out[i].ID = out[first].Job, out[first].ID
		}
		if out[i].Duplicate && out[i].Err == nil {
			r.stats.Duplicates++
		}
	}
}

// admit checks quotas, and what parts have against a job, before anything is written
// (core.md section 10).
func (r *intake) admit(i int, n *NewJob, body []byte) error {
	if err := r.admitQuota(n, body); err != nil || n.Job.Extras == nil {
		return err
	}
	if r.asked == nil {
		r.asked = r.e.parts.intakes(r.Tx)
	}
	for _, p := range r.asked {
		if err := p.Admit(i, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *intake) admitQuota(n *NewJob, body []byte) error {
	if err := r.submittable(&n.Job); err != nil {
		return err
	}
	return r.admitSize(n.Job.Queue, int64(len(body)))
}

// admitSize counts one more job of a size in a queue, or refuses it.
func (r *intake) admitSize(name string, size int64) error {
	if !r.c.queues[name] && !r.fresh[name] && !r.coming[name] {
		if err := r.oneMoreQueue(len(r.coming)); err != nil {
			return err
		}
		r.coming[name] = true
	}
	a, err := r.quota(name)
	if err != nil || a == nil {
		return err
	}
	evict, err := rule.Admit(a.queue, a.jobs, a.bytes, size)
	a.full = a.full || evict
	a.jobs++
	a.bytes += size
	return err
}

// quota is how much a queue would hold; nil = it may hold any amount.
func (r *intake) quota(name string) (*admission, error) {
	a := r.quotas[name]
	if a == nil {
		q, err := r.Queue(name)
		if err != nil || q.MaxJobs == 0 && q.MaxBytes == 0 {
			return nil, err
		}
		d := r.tx.Depth(name)
		a = &admission{queue: q, jobs: d.Open(), bytes: d.Bytes}
		r.quotas[name] = a
	}
	return a, nil
}

// submittable refuses a job that its queue does not take.
func (r *intake) submittable(j *job.Job) error {
	q, err := r.Queue(j.Queue)
	if err != nil {
		return err
	}
	return r.e.parts.takes(r.Tx, q, j)
}

// MakeRoom makes room for one more job of a size in a queue, or refuses it.
func (r *intake) MakeRoom(queue string, size int64) error {
	r.begin()
	if err := r.admitSize(queue, size); err != nil {
		return err
	}
	leaving, err := r.oldest(r.quotas)
	if err != nil {
		return err
	}
	return r.evict(leaving)
}

// oldest picks the oldest waiting jobs of full queues, as many as must leave
// for the newcomers. What runs stays; if that leaves no room, it is refused.
func (r *intake) oldest(quotas map[string]*admission) (leaving []*job.Job, err error) {
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
func (r *intake) evict(list []*job.Job) error {
	for _, j := range list {
		c := rule.GiveUp(rule.ByRoom, "pushed out by newer work: the queue is full and on_full is drop_oldest")
		if _, err := r.Step(j, c); err != nil {
			return err
		}
		r.stats.Evicted++
	}
	return nil
}

// putOne takes one job in; heir means that another one may stand under its
// unique key.
func (r *intake) putOne(n *NewJob, body []byte, heir bool) (*job.Job, error) {
	if err := r.e.parts.prepare(r.Tx, n); err != nil {
		return nil, err
	}
	v, err := r.view(nil, n.Job.Queue, n.Job.Group)
	if err != nil {
		return nil, err
	}
	id := r.ids.Next(r.now)
	n.Job.ID, n.Job.Payload, n.Job.PayloadSize = id, id, uint32(len(body))
	shares := !n.Shares.IsZero()
	if shares {
		n.Job.Payload = n.Shares
	}
	c := rule.Command{Verb: rule.Put, New: &n.Job, Place: n.Place}
	eff, err := rule.Step(v, c)
	if err != nil {
		return nil, err
	}
	if !shares {
		if err := r.tx.PutPayload(id, body); err != nil {
			return nil, err
		}
	}
	if eff.Job.HoldsKey && (heir || eff.Job.Extras.Batch != nil) {
		if err := r.succeed(n, rule.KeyOf(eff.Job)); err != nil {
			return nil, err
		}
	}
	r.tx.Durable()
	r.SeeQueue(n.Job.Queue)
	r.stats.Put++
	if err := r.write(nil, eff); err != nil {
		return nil, err
	}
	return eff.Job, r.e.parts.stepped(r.Tx, &c, nil, &eff)
}
