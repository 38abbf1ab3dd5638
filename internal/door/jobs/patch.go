package jobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// fixed is what cannot change about a job once it is there.
var fixed = []string{
	"payload", "type", "unique_key", "unique_while", "batch", "budgets", "group", "copies", "requires", "place",
	"idempotency_key", "labels", "traceparent",
}

// patchAsk is the body of PATCH /jobs/{id} and PATCH /jobs: what is not there
// stays, null is back to the default.
type patchAsk struct {
	Queue          member[string]       `json:"queue"`
	Priority       member[uint16]       `json:"priority"`
	ReadyAt        member[uint64]       `json:"ready_at"`
	RetryLimit     member[uint32]       `json:"retry_limit"`
	Backoff        member[backoffAsk]   `json:"backoff"`
	Retry          member[job.Retry]    `json:"retry"`
	Retention      member[retentionAsk] `json:"retention"`
	ExpiresAt      member[spanned]      `json:"expires_at"`
	RunTimeoutMS   member[spanned]      `json:"run_timeout_ms"`
	StartTimeoutMS member[spanned]      `json:"start_timeout_ms"`
}

type backoffAsk struct {
	Exponent *float64 `json:"exponent"`
	BaseMS   *uint32  `json:"base_ms"`
	JitterMS *uint32  `json:"jitter_ms"`
}

type retentionAsk struct {
	CompletedMS member[uint64] `json:"completed_ms"`
	DeadMS      member[uint64] `json:"dead_ms"`
}

// ReadPatch reads what shall change about jobs. count is how a backoff counts.
func ReadPatch(body []byte, count job.Count, tell func(path, why string) error) (desk.Patch, error) {
	var a patchAsk
	var p desk.Patch
	err := problemsOf(body, &a, "", func(path, why string) error {
		if slices.Contains(fixed, path) {
			return refuse(path, path+" of a job cannot be changed")
		}
		return tell(path, why)
	}, func() (err error) { _, err = a.patch(count); return err })
	if err == nil {
		p, err = a.patch(count)
	}
	return p, unprocessable(OneRefusal(err))
}

// spanOf is the change of a time or a span that null sets back.
func spanOf[N uint64 | spanned](bad *[]error, field string, m *member[N], otherwise job.Millis) func(into *job.Millis) {
	n, err := millis(field, m.value, otherwise)
	*bad = append(*bad, err)
	return func(into *job.Millis) {
		if m.given {
			*into = n
		}
	}
}

// patch is the change that is asked for. Its error joins one for each problem.
func (a *patchAsk) patch(count job.Count) (p desk.Patch, err error) {
	bad := []error{notNull("priority", &a.Priority)}
	var ready, expiry job.Millis
	readyAt, expiresAt := spanOf(&bad, "ready_at", &a.ReadyAt, 0), spanOf(&bad, "expires_at", &a.ExpiresAt, 0)
	runTimeout, startTimeout := spanOf(&bad, "run_timeout_ms", &a.RunTimeoutMS, 0), spanOf(&bad, "start_timeout_ms", &a.StartTimeoutMS, 0)
	kept := a.Retention.or(retentionAsk{})
	kept.CompletedMS.given = kept.CompletedMS.given || a.Retention.value == nil // null clears both
	kept.DeadMS.given = kept.DeadMS.given || a.Retention.value == nil
	retainDone, retainDead := spanOf(&bad, "retention.completed_ms", &kept.CompletedMS, job.Unset), spanOf(&bad, "retention.dead_ms", &kept.DeadMS, job.Unset)
	readyAt(&ready)
	if expiresAt(&expiry); expiry != 0 && expiry <= ready {
		bad = append(bad, refuse("expires_at", "expires_at must be later than ready_at"))
	}
	if p.Queue = a.Queue.or(""); a.Queue.given {
		bad = append(bad, CheckName("queue", p.Queue))
	}
	retry, err := a.retry(count)
	bad = append(bad, err)
	p.Edit = func(j *job.Job, now job.Millis) {
		j.Priority = a.Priority.or(j.Priority)
		switch {
		case a.ReadyAt.value != nil:
			readyAt(&j.ReadyAt)
		case a.ReadyAt.given && j.State == job.Scheduled:
			j.ReadyAt = now
		}
		expiresAt(&j.ExpiresAt)
		runTimeout(&j.RunTimeout)
		startTimeout(&j.StartTimeout)
		retry(j)
		if !a.Retention.given {
			return
		}
		retainDone(&j.RetainDone)
		retainDead(&j.RetainDead)
		if j.Extras != nil && j.Extras.NoRetention { // what is left empty is cleared
			j.Extras = j.WithRetention()
		}
	}
	return p, errors.Join(bad...)
}

// retry is the change of a job's policy; one that says nothing goes.
func (a *patchAsk) retry(count job.Count) (func(*job.Job), error) {
	if a.Retry.given && (a.RetryLimit.given || a.Backoff.given) {
		return nil, refuse("retry", "retry cannot be given together with backoff or retry_limit: it holds both")
	}
	curve, err := a.Backoff.value.curve(count)
	return func(j *job.Job) {
		var own job.Retry
		if j.Retry != nil {
			own = *j.Retry
		}
		if a.Retry.given {
			own = a.Retry.or(job.Retry{})
		}
		if a.RetryLimit.given {
			if own.Limit = (job.Limit{}); a.RetryLimit.value != nil {
				own.Limit = job.LimitOf(*a.RetryLimit.value)
			}
		}
		if a.Backoff.given {
			own.Curve = curve
		}
		if j.Retry = nil; !own.IsZero() {
			j.Retry = &own
		}
	}, err
}

// curve is Zizq's, which is given whole or not at all.
func (a *backoffAsk) curve(count job.Count) (*job.Curve, error) {
	if a == nil {
		return nil, nil
	}
	err := errors.Join(
		missing("backoff.exponent", a.Exponent != nil), missing("backoff.base_ms", a.BaseMS != nil), missing("backoff.jitter_ms", a.JitterMS != nil),
	)
	if err == nil && math.Abs(*a.Exponent) > math.MaxFloat32 {
		err = refuse("backoff.exponent", "backoff.exponent must be a number that fits 32 bits")
	}
	if err != nil {
		return nil, err
	}
	curve := job.ZizqCurve(*a.Exponent, *a.BaseMS, *a.JitterMS)
	curve.Count = count
	return &curve, nil
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
	values, err := strict.Params(raw, "", append(slices.Clone(countParams), "all")...)
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
		if len(strict.Names(value)) == 0 {
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
	values, err := strict.Params(raw, "", "all")
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
	return strict.Shorten(strings.TrimPrefix(b.tail, "&"), nameBytesMax)
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
		n, _, err = e.Desk.DoAll(ctx, desk.Cancel(by, why), b.search())
		return err
	})
	return n, soFar(err, "cancelled", n)
}

// AppendCancelPreview appends what Cancel would do.
func (b *Bulk) AppendCancelPreview(ctx context.Context, out []byte, e *part.Engine) ([]byte, error) {
	var n int64
	var sample []query.Listed
	err := bounded(ctx, b.sieve, func(ctx context.Context) (err error) {
		n, sample, err = e.Desk.PreviewCancel(ctx, b.search())
		return err
	})
	return appendDryRun(out, n, sample, func(b []byte, l query.Listed) []byte { return AppendJob(b, l.Job) }), err
}

// Delete removes what the query chooses.
func (b *Bulk) Delete(ctx context.Context, e *part.Engine) (n int64, err error) {
	err = bounded(ctx, b.sieve, func(ctx context.Context) error {
		n, _, err = e.Desk.DoAll(ctx, desk.Delete, b.search())
		return err
	})
	return n, soFar(err, "deleted", n)
}

// Patch changes what the query chooses.
func (b *Bulk) Patch(ctx context.Context, e *part.Engine, p desk.Patch) (out wire.Patched, err error) {
	err = bounded(ctx, b.sieve, func(ctx context.Context) error {
		s := b.search()
		s.Refused = func(id job.ID, why error) {
			if out.Why == "" {
				out.Why = "job " + id.String() + ": " + TextOf(why)
			}
		}
		out.Patched, out.Refused, err = e.Desk.DoAll(ctx, p.Verb(), s)
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
