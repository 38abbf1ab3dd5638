package jobs

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/wire"
)

// fixed is what cannot change about a job once it is there.
var fixed = []string{
	"payload", "type", "unique_key", "unique_while", "batch", "budgets", "group", "copies", "requires", "place",
	"idempotency_key", "labels", "traceparent",
}

// change is one field of a patch, as it is made to a copy of the job.
type change func(j *job.Job, now job.Millis)

// Patch reads the body of PATCH /jobs/{id} and PATCH /jobs: what is not there
// stays, null is back to the default.
func (r *Reader) Patch() (p engine.Patch, err error) {
	var changes []change
	var says policy
	var ready, expires job.Millis
	add := func(c change) { changes = append(changes, c) }
	r.whole(func(name []byte) {
		field := string(name)
		switch field {
		case "queue":
			if p.Queue = r.name(field, &r.queue); p.Queue == "" {
				r.fail(field, "must be the name of a queue")
			}
		case "priority":
			n := r.number(field, 0, 1<<16-1, none)
			r.must(field, n != none)
			add(func(j *job.Job, _ job.Millis) { j.Priority = uint16(n) })
		case "ready_at":
			if ready = r.millis(field, 0, job.Unset); ready == job.Unset {
				ready = 0
				add(func(j *job.Job, now job.Millis) {
					if j.State == job.Scheduled {
						j.ReadyAt = now
					}
				})
			} else {
				at := ready
				add(func(j *job.Job, _ job.Millis) { j.ReadyAt = at })
			}
		case "retry_limit":
			says.inParts = true
			limit := job.Limit{}
			if n := r.number(field, 0, uint32Max, none); n != none {
				limit = job.LimitOf(uint32(n))
			}
			add(retry(func(own *job.Retry) { own.Limit = limit }))
		case "backoff":
			says.inParts = true
			curve := r.backoff()
			add(retry(func(own *job.Retry) { own.Curve = curve }))
		case "retry":
			r.retry(&says)
			says.whole = true
			add(retry(func(own *job.Retry) { *own = says.Retry }))
		case "retention":
			r.patchRetention(add)
		case "expires_at":
			expires = r.millis(field, 1, 0)
			at := expires
			add(func(j *job.Job, _ job.Millis) { j.ExpiresAt = at })
		case "run_timeout_ms":
			span := r.millis(field, 1, 0)
			add(func(j *job.Job, _ job.Millis) { j.RunTimeout = span })
		case "start_timeout_ms":
			span := r.millis(field, 1, 0)
			add(func(j *job.Job, _ job.Millis) { j.StartTimeout = span })
		default:
			if slices.Contains(fixed, field) {
				r.value()
				r.fail(field, "of a job cannot be changed")
			} else {
				unknown[wire.Enqueue](r, name)
			}
		}
	})
	if says.whole && says.inParts {
		r.fail("retry", "cannot be given together with backoff or retry_limit: it holds both")
	}
	if expires != 0 && expires <= ready {
		r.fail("expires_at", "must be later than ready_at")
	}
	r.unprocessable()
	p.Edit = func(j *job.Job, now job.Millis) {
		for _, c := range changes {
			c(j, now)
		}
	}
	return p, r.end()
}

// retry changes the policy of a job; one that says nothing goes.
func retry(edit func(*job.Retry)) change {
	return func(j *job.Job, _ job.Millis) {
		var own job.Retry
		if j.Retry != nil {
			own = *j.Retry
		}
		if edit(&own); own.IsZero() {
			j.Retry = nil
			return
		}
		j.Retry = &own
	}
}

// patchRetention reads retention: null clears it, and so does null for a part.
func (r *Reader) patchRetention(add func(change)) {
	part := func(field string, set func(*job.Job, job.Millis)) {
		span := r.millis(field, 0, job.Unset)
		add(func(j *job.Job, _ job.Millis) { set(j, span) })
	}
	there := r.object("retention", func(name []byte) {
		switch string(name) {
		case "completed_ms":
			part("retention.completed_ms", func(j *job.Job, span job.Millis) { j.RetainDone = span })
		case "dead_ms":
			part("retention.dead_ms", func(j *job.Job, span job.Millis) { j.RetainDead = span })
		default:
			unknown[wire.Retention](r, name)
		}
	})
	add(func(j *job.Job, _ job.Millis) {
		if !there {
			j.RetainDone, j.RetainDead = job.Unset, job.Unset
		}
		if j.Extras != nil && j.Extras.NoRetention { // what is left empty is cleared
			j.Extras = j.WithRetention()
		}
	})
}

// Bulk is the query of a call over many jobs.
type Bulk struct {
	Query
	// All was said: every job is meant.
	All bool
}

// BulkQuery reads the query of PATCH /jobs and DELETE /jobs. A value that is
// empty is refused: it is more likely a mistake than the wish to change all.
func BulkQuery(raw string) (*Bulk, error) {
	values, err := Params(raw, "", append(slices.Clone(countParams), "all")...)
	if err != nil {
		return nil, err
	}
	b := &Bulk{Query: Query{path: "/jobs"}}
	if b.All, err = all(values); err != nil {
		return nil, err
	}
	for _, name := range countParams {
		if !values.Has(name) {
			continue
		}
		value := values.Get(name)
		if len(Names(value)) == 0 {
			return nil, refuse(name, name+" must not be empty; leave it out to choose by other filters only")
		}
		if err := b.set(name, value); err != nil {
			return nil, err
		}
	}
	if b.All && b.tail != "" {
		return nil, refuse("all", "all cannot be given together with a filter")
	}
	return b, nil
}

// SaidAll reads a query that may only say all=true, and tells whether it does.
func SaidAll(raw string) (bool, error) {
	values, err := Params(raw, "", "all")
	if err != nil {
		return false, err
	}
	return all(values)
}

func all(values url.Values) (bool, error) {
	text := values.Get("all")
	if values.Has("all") && text != "true" {
		return false, refuse("all", "all can only be true")
	}
	return text == "true", nil
}

// Narrow reports whether the query leaves anything out.
func (b *Bulk) Narrow() bool {
	open := func(s span) bool { return s.lo == 0 && s.hi == none }
	return len(b.filter.States)+len(b.filter.Queues)+len(b.filter.Types)+len(b.filter.IDs)+len(b.bound)+len(b.whys)+len(b.groups)+len(b.labels) > 0 || b.sieve != nil ||
		slices.ContainsFunc(b.ranges, func(s span) bool { return !open(s) })
}

// Subject is the query for the audit log.
func (b *Bulk) Subject() string {
	if b.tail == "" {
		return "all"
	}
	return shorten(strings.TrimPrefix(b.tail, "&"), nameBytesMax)
}

// Patchable refuses states that no patch can change.
func (b *Bulk) Patchable() error {
	for _, s := range b.filter.States {
		if s.Terminal() {
			return job.Errorf(job.WrongState, "cannot patch jobs in %s status", states[s])
		}
	}
	return nil
}

// Cancellable refuses what no open job can be.
func (b *Bulk) Cancellable() error {
	for _, s := range b.filter.States {
		if s.Terminal() {
			return job.Errorf(job.WrongState, "cannot cancel jobs in %s status", states[s])
		}
	}
	if b.whys != nil {
		return job.Errorf(job.WrongState, "cannot cancel jobs by reason: those that have one are dead")
	}
	return nil
}

// Cancel gives up what the query chooses.
func (b *Bulk) Cancel(ctx context.Context, e *part.Engine, by job.Actor, why string) (n int64, err error) {
	err = bounded(ctx, b.sieve, func(ctx context.Context) error {
		n, err = e.CancelAll(ctx, b.search(), by, why)
		return err
	})
	return n, soFar(err, "cancelled", n)
}

// AppendCancelPreview appends what Cancel would do.
func (b *Bulk) AppendCancelPreview(ctx context.Context, out []byte, e *part.Engine) ([]byte, error) {
	var n int64
	var sample []engine.Listed
	err := bounded(ctx, b.sieve, func(ctx context.Context) (err error) {
		n, sample, err = e.PreviewCancel(ctx, b.search())
		return err
	})
	out = number(out, `{"dry_run":true,"count":`, n)
	out = append(out, `,"sample":[`...)
	for _, l := range sample {
		out = AppendJob(comma(out), l.Job)
	}
	return append(out, `]}`...), err
}

// Delete removes what the query chooses.
func (b *Bulk) Delete(ctx context.Context, e *part.Engine) (n int64, err error) {
	err = bounded(ctx, b.sieve, func(ctx context.Context) error {
		n, err = e.DeleteAll(ctx, b.search())
		return err
	})
	return n, soFar(err, "deleted", n)
}

// Patch changes what the query chooses.
func (b *Bulk) Patch(ctx context.Context, e *part.Engine, p engine.Patch) (out wire.Patched, err error) {
	err = bounded(ctx, b.sieve, func(ctx context.Context) error {
		s := b.search()
		s.Refused = func(id job.ID, why error) {
			if out.Why == "" {
				out.Why = "job " + id.String() + ": " + TextOf(why)
			}
		}
		out.Patched, out.Refused, err = e.PatchAll(ctx, s, p)
		return err
	})
	return out, soFar(err, "patched", out.Patched)
}

// soFar says what a call that was broken off has done.
func soFar(err error, what string, n int64) error {
	own, ok := err.(*job.Error) //nolint:errorlint // what is wrapped is another error's
	if !ok || n == 0 {
		return err
	}
	said := *own
	said.Text = fmt.Sprintf("%s (%s before: %s)", own.Text, what, plural(n))
	return &said
}

func plural(n int64) string {
	if n == 1 {
		return "1 job"
	}
	return strconv.FormatInt(n, 10) + " jobs"
}
