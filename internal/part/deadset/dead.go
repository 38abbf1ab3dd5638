package deadset

import (
	"cmp"
	"context"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Dead is a dead job with its latest failure; nil if it never failed.
type Dead struct {
	Job     *job.Job
	Failure *job.Failure
	Payload []byte // nil unless asked for
}

// filterOf is the part of a selection that a store's index answers.
func filterOf(s *job.Selection, after job.ID, now job.Millis) store.Filter {
	f := store.Filter{
		States: []job.State{job.Dead}, Queues: s.Queues, Types: s.Types, IDs: s.IDs, Prints: s.Prints, From: after, Alive: now,
	}
	if !rule.Cancelled(s) { // however many those are, nobody looks at them
		f.Statuses = []rule.Status{rule.StatusDead, rule.StatusBlocking}
	}
	return f
}

// selected reports whether a selection chooses a job. The failure is read only
// where the choice depends on it.
func selected(v store.Reader, s *job.Selection, j *job.Job) (bool, *job.Failure, error) {
	var f *job.Failure
	if s.Reads() {
		var err error
		if f, err = latestFailure(v, j.ID); err != nil {
			return false, nil, err
		}
	}
	return rule.Selects(s, j, f), f, nil
}

func latestFailure(v store.Reader, id job.ID) (*job.Failure, error) {
	list, err := v.Failures(id, 0, true, 1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// deadPage is how many dead jobs are looked at under one view of the store.
const deadPage = 500

// Page is one look at the dead set.
type Page struct {
	Select  *job.Selection
	Judge   query.Judge // nil = all
	From    job.ID      // exclusive; zero = from the end the order starts at
	Desc    bool
	Most    int
	Payload bool
	Room    engine.Room // for payloads; nil = as much as they need
	Bare    bool        // without failures, unless the selection depends on them
}

// Jobs returns up to q.Most selected jobs, by id, and whether there are more.
func (set *Set) Jobs(ctx context.Context, q Page) (out []Dead, more bool, err error) {
	look, bytes := q, 0
	look.Payload = q.Payload && q.Judge != nil // or when it is known whose
	for more = true; more && err == nil; err = cmp.Or(err, ctx.Err()) {
		var page []Dead
		page, look.From, more, err = set.lookAtDead(ctx, look, q.Most+1-len(out))
		for i := 0; i < len(page) && err == nil; i++ {
			size := page[i].bytes(&q)
			if len(out) == q.Most || bytes > 0 && bytes+size > engine.PageBytes {
				return out, true, set.deadPayloads(&q, out)
			}
			out, bytes = append(out, page[i]), bytes+size
			if q.Room != nil {
				err = q.Room(size)
			}
		}
	}
	if err != nil {
		return nil, false, err
	}
	return out, false, set.deadPayloads(&q, out)
}

// deadPayloads brings payloads into memory, unless they were judged and are there.
func (set *Set) deadPayloads(q *Page, list []Dead) error {
	if !q.Payload || q.Judge != nil || len(list) == 0 {
		return nil
	}
	refs := make([]job.ID, len(list))
	for i := range list {
		refs[i] = list[i].Job.Payload
	}
	bodies, err := set.engine.Bodies(refs...)
	for i := range bodies {
		if bodies[i] != nil {
			list[i].Payload = set.engine.Shown(list[i].Job, bodies[i])
		}
	}
	return err
}

// bytes is how much a row brings with it.
func (d *Dead) bytes(q *Page) (n int) {
	if q.Payload {
		n = int(d.Job.PayloadSize)
	}
	if d.Failure != nil {
		n += len(d.Failure.Message) + len(d.Failure.Backtrace)
	}
	return n
}

// lookAtDead looks at a bounded number of dead jobs with a bounded size. from is
// the last one it looked at.
func (set *Set) lookAtDead(ctx context.Context, q Page, most int) (out []Dead, from job.ID, more bool, err error) {
	from = q.From
	bytes := 0
	err = set.engine.View(ctx, func(v store.Reader) error {
		f := filterOf(q.Select, q.From, v.Now())
		f.Desc = q.Desc
		list, err := v.List(f, deadPage)
		if more = len(list) == deadPage; err != nil {
			return err
		}
		for _, j := range list {
			if len(out) == most {
				more = true
				break
			}
			ok, failure, err := selected(v, q.Select, j)
			if ok && failure == nil && err == nil && !q.Bare {
				failure, err = latestFailure(v, j.ID)
			}
			if err != nil {
				return err
			}
			if d := (Dead{Job: j, Failure: failure}); ok {
				if bytes += d.bytes(&q); len(out) > 0 && bytes > engine.PageBytes {
					more = true
					break
				}
				out = append(out, d)
			}
			from = j.ID
		}
		return nil
	})
	if err == nil && q.Judge != nil {
		out, err = set.judgeDead(ctx, &q, out)
		return out, from, more, err
	}
	if err == nil {
		err = set.deadPayloads(&q, out)
	}
	return out, from, more, err
}

// judgeDead leaves those whose payload is chosen.
func (set *Set) judgeDead(ctx context.Context, q *Page, list []Dead) (out []Dead, err error) {
	page, at := make([]query.Listed, len(list)), make(map[job.ID]Dead, len(list))
	for i, d := range list {
		page[i], at[d.Job.ID] = query.Listed{Job: d.Job}, d
	}
	_, err = query.Of(set.engine).Judged(ctx, &query.Search{Judge: q.Judge, Payload: q.Payload}, page, func(l query.Listed) (bool, error) {
		d := at[l.Job.ID]
		d.Payload = l.Payload
		out = append(out, d)
		return true, nil
	})
	return out, err
}

// Each calls f for every selected job, by id, a page in memory at a time,
// until it says that it has enough. What changes meanwhile may be seen or not.
func (set *Set) Each(ctx context.Context, s *job.Selection, judge query.Judge, f func(Dead) (more bool, err error)) error {
	return set.eachDead(ctx, Page{Select: s, Judge: judge, Payload: true}, f)
}

func (set *Set) eachDead(ctx context.Context, q Page, f func(Dead) (more bool, err error)) error {
	for more := true; more; {
		var page []Dead
		var err error
		if page, q.From, more, err = set.lookAtDead(ctx, q, deadPage); err != nil {
			return err
		}
		for _, d := range page {
			if on, err := f(d); err != nil || !on {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Job returns one dead job with its payload. One that is not dead is
// refused with WrongState, one that is not there with NotFound.
func (set *Set) Job(ctx context.Context, id job.ID) (d Dead, err error) {
	err = set.engine.View(ctx, func(v store.Reader) error {
		if d.Job, err = deadJob(v, id); err == nil {
			d.Failure, err = latestFailure(v, id)
		}
		return err
	})
	if err == nil {
		d.Payload, err = set.engine.Payload(d.Job.Payload)
	}
	if d.Payload != nil {
		d.Payload = set.engine.Shown(d.Job, d.Payload)
	}
	return d, err
}

// Group is the dead jobs of one fingerprint, with what is known of it.
type Group struct {
	store.Group
	Mark    job.Mark     // blank if nobody said anything about it
	Failure *job.Failure // of the sample; nil if it never failed
	Reason  job.Reason   // of the sample
	Held    int          // open jobs that a pause of it holds, at most HeldMost
}

// HeldMost is how many held jobs of a group are counted.
const HeldMost = 1000

// GroupQuery asks for groups of the dead set.
type GroupQuery struct {
	Queues  []string // groups with jobs in one of these; counts are of these alone
	Prints  []job.Fingerprint
	Muted   *bool // only those that are, or are not; nil = all
	ByLast  bool  // latest death first; otherwise most jobs first
	Buckets int   // of the trend
	Bucket  job.Millis
	Offset  int
	Most    int
}

// Groups returns a page of groups and how many there are in all.
func (set *Set) Groups(ctx context.Context, q GroupQuery) (page []Group, all int, err error) {
	err = set.engine.View(ctx, func(v store.Reader) error {
		edges := make([]job.Millis, q.Buckets)
		for i := range edges {
			edges[i] = v.Now() - q.Bucket*job.Millis(q.Buckets-i) + 1
		}
		groups, err := v.Groups(edges)
		if err != nil {
			return err
		}
		var list []Group
		for _, g := range groups {
			d := Group{Group: g, Mark: job.Mark{Print: g.Print}}
			m, err := store.Row[*job.Mark](v, g.Print.String())
			if err != nil {
				return err
			}
			if m != nil {
				d.Mark = *m
			}
			if d.keep(&q) {
				list = append(list, d)
			}
		}
		slices.SortStableFunc(list, func(a, b Group) int {
			if q.ByLast {
				return cmp.Compare(b.Last, a.Last)
			}
			return cmp.Compare(b.Count(), a.Count())
		})
		all = len(list)
		page = list[min(q.Offset, all):min(q.Offset+q.Most, all)]
		for i := range page {
			if err := page[i].look(v); err != nil {
				return err
			}
		}
		return nil
	})
	return page, all, err
}

// keep reports whether a query asks for the group, and takes the queues off it
// that are not asked for.
func (d *Group) keep(q *GroupQuery) bool {
	if len(q.Prints) > 0 && !slices.Contains(q.Prints, d.Print) || q.Muted != nil && *q.Muted != d.Mark.Muted {
		return false
	}
	if len(q.Queues) == 0 {
		return true
	}
	for name := range d.Queues {
		if !slices.Contains(q.Queues, name) {
			delete(d.Queues, name)
		}
	}
	return len(d.Queues) > 0
}

func (d *Group) look(v store.Reader) error {
	j, err := v.Get(d.Sample)
	if err != nil || j == nil {
		return err
	}
	d.Reason = j.Reason
	held, err := v.IDs(store.Parked(rule.PrintPark(d.Print)), HeldMost)
	if err != nil {
		return err
	}
	d.Held = len(held)
	d.Failure, err = latestFailure(v, d.Sample)
	return err
}

// Revival replays one dead job.
type Revival struct {
	Place      job.Place
	Remaining  bool
	Allow      bool
	MaxReplays uint32 // 0 = no guard
	Payload    []byte // a new one; nil = the old one
}

// Revive brings one dead job back; its history stays.
func (set *Set) Revive(ctx context.Context, id job.ID, ask Revival, by job.Actor) (engine.Verdict, error) {
	var out engine.Verdict
	err := set.engine.Do(ctx, len(ask.Payload), func(tx *engine.Tx) error {
		j, err := deadJob(tx.Store(), id)
		if err != nil {
			return err
		}
		if ask.MaxReplays > 0 && j.Replays >= ask.MaxReplays {
			return job.Errorf(job.WrongState, "job %s was replayed %d times, and max_replays is %d", id, j.Replays, ask.MaxReplays)
		}
		c := rule.Command{Verb: rule.Revive, Allow: ask.Allow, Remaining: ask.Remaining}
		c.Place = rule.ReplayPlace(&job.Replay{Place: ask.Place}, j)
		action := "replay"
		if ask.Payload != nil {
			if tx.DiskLow() {
				return engine.ErrDiskLow
			}
			if err := rule.NewPayload(j); err != nil {
				return err
			}
			action = "replay edited"
			ref := tx.NewID()
			c.Edit = func(j *job.Job) { j.Payload, j.PayloadSize = ref, uint32(len(ask.Payload)) }
		}
		eff, err := tx.Step(j, c)
		if err != nil {
			return err
		}
		if ask.Payload != nil {
			if err := tx.Store().PutPayload(eff.Job.Payload, ask.Payload); err != nil {
				return err
			}
		}
		if err := tx.Audit(by, action, id.String(), 1); err != nil {
			return err
		}
		out, err = engine.VerdictOf(eff, nil)
		return err
	})
	return engine.Answered(&out, err)
}

// Delete removes one dead job.
func (set *Set) Delete(ctx context.Context, id job.ID, by job.Actor) error {
	return set.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		j, err := deadJob(tx.Store(), id)
		if err != nil {
			return err
		}
		if _, err := tx.Step(j, rule.Command{Verb: rule.Purge}); err != nil {
			return err
		}
		return tx.Audit(by, "delete", id.String(), 1)
	})
}

func deadJob(v store.Reader, id job.ID) (*job.Job, error) {
	j, err := engine.JobOf(v, id)
	if err == nil && j.State != job.Dead {
		return nil, job.Errorf(job.WrongState, "job %s is %s, not dead", j.ID, j.State)
	}
	return j, err
}
