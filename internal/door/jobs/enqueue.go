package jobs

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// Enqueue reads the body of POST /jobs into a list of one; key is what the
// header Idempotency-Key holds.
func (r *Reader) Enqueue(key string) ([]engine.NewJob, error) {
	r.start("a JSON object", reflect.TypeFor[wire.Enqueue]())
	r.newJob()
	if err := r.end(); err != nil || key == "" {
		return r.jobs, err
	}
	n := &r.jobs[0]
	if n.Key != "" && n.Key != key {
		r.fail("idempotency_key", "differs from the header Idempotency-Key")
	}
	n.Key = r.label("the header Idempotency-Key", key)
	return r.jobs, r.err
}

// Bulk reads the body of POST /jobs/bulk.
func (r *Reader) Bulk() ([]engine.NewJob, error) {
	found := false
	r.whole(reflect.TypeFor[wire.Bulk](), func(name []byte) {
		if string(name) == "jobs" {
			found = r.entries("jobs", r.newJob)
		} else {
			unknown[wire.Bulk](r, name)
		}
	})
	r.must("jobs", found)
	return r.jobs, r.end()
}

// theJob is the field of a problem of a whole job.
const theJob = "the job"

// newJob reads one job to the end of r.jobs.
func (r *Reader) newJob() {
	r.jobs = slices.Grow(r.jobs, 1)[:len(r.jobs)+1]
	n := &r.jobs[len(r.jobs)-1]
	*n = engine.NewJob{Job: job.Job{
		Priority: job.PriorityDefault, Copies: 1, RetainDone: job.Unset, RetainDead: job.Unset,
	}}
	var says policy
	r.must(theJob, r.object(theJob, func(name []byte) { r.field(n, &says, name) }))
	r.must("type", n.Job.Type != "")
	r.must("queue", n.Job.Queue != "")
	r.must("payload", n.Payload != nil)
	if says.whole && says.inParts {
		r.fail("retry", "cannot be given together with backoff or retry_limit: it holds both")
	}
	if n.Job.ExpiresAt != 0 && n.Job.ExpiresAt <= n.Job.ReadyAt {
		r.fail("expires_at", "must be later than ready_at")
	}
	if n.Job.Extras != nil {
		r.keys(n)
	}
	if r.err == nil && !says.IsZero() {
		own := says.Retry // so that a job without one costs no memory
		n.Job.Retry = &own
	}
}

// policy is what a job says about its retries, and in which of the two shapes.
type policy struct {
	job.Retry
	whole, inParts bool
}

// field reads one member of a job.
func (r *Reader) field(n *engine.NewJob, says *policy, name []byte) {
	j := &n.Job
	if r.inTemplate && r.barred(name) {
		return
	}
	switch string(name) {
	case "type":
		j.Type = r.name("type", &r.kind)
	case "queue":
		j.Queue = r.name("queue", &r.queue)
	case "payload":
		n.Payload = r.payload("payload", r.value())
	case "priority":
		j.Priority = uint16(r.number("priority", 0, 1<<16-1, uint64(job.PriorityDefault)))
	case "ready_at":
		j.ReadyAt = r.millis("ready_at", 0, 0)
	case "retry_limit":
		if n := r.number("retry_limit", 0, uint32Max, none); n != none {
			says.Limit, says.inParts = job.LimitOf(uint32(n)), true
		}
	case "backoff":
		if curve := r.backoff(); curve != nil {
			says.Curve, says.inParts = curve, true
		}
	case "retry":
		r.retry(says)
	case "retention":
		r.retention(j)
	case "group":
		j.Group = r.label("group", r.string("group"))
	case "idempotency_key":
		n.Key = r.label("idempotency_key", r.string("idempotency_key"))
	case "place":
		n.Place, _ = oneOf(r, "place", places...)
	default:
		r.rarer(n, name)
	}
}

// rarer reads a member that few jobs have.
func (r *Reader) rarer(n *engine.NewJob, name []byte) {
	j := &n.Job
	switch string(name) {
	case "expires_at":
		j.ExpiresAt = r.millis("expires_at", 1, 0)
	case "run_timeout_ms":
		j.RunTimeout = r.millis("run_timeout_ms", 1, 0)
	case "start_timeout_ms":
		j.StartTimeout = r.millis("start_timeout_ms", 1, 0)
	case "copies":
		j.Copies = uint8(r.number("copies", 1, 1<<8-1, 1))
	case "requires":
		j.Requires = r.requires()
	case "labels":
		if list := r.labels(); list != nil {
			extrasOf(j).Labels = list
		}
	case "traceparent":
		if text := r.traceparent(); text != "" {
			extrasOf(j).Traceparent = text
		}
	case "unique_key":
		r.uniqueKey(j)
	case "unique_while":
		r.uniqueWhile(j)
	case "batch":
		if b := r.batch(); b != nil {
			extrasOf(j).Batch = b
		}
	case "budgets":
		r.budgets(n)
	default:
		unknown[wire.Enqueue](r, name)
	}
}

var places = []job.Place{job.PlaceFront, job.PlaceBack, job.PlaceKeep}

// payload is what is kept of a value, if clients can read it.
func (r *values) payload(field string, raw []byte) []byte {
	if at, why := job.Unreadable(raw); why != "" {
		r.fail(field+at, why)
	}
	return payload(raw)
}

// payload copies a value out of the buffer it was read from. A line break in
// it, which can only be white space, would end the line of a take stream.
func payload(raw []byte) []byte {
	own := bytes.Clone(raw)
	if bytes.IndexByte(own, '\n') >= 0 || bytes.IndexByte(own, '\r') >= 0 {
		_ = (*jsontext.Value)(&own).Compact() // what was just read is well formed
	}
	return own
}

// name reads a queue, a type or a worker; last is the one before it.
func (r *values) name(field string, last *string) string {
	content, ok := r.text(field)
	switch {
	case !ok:
		return "" // and so missing
	case string(content) == *last && *last != "":
		return *last
	}
	s := string(content)
	if why := job.WrongName(s, nameBytesMax); why != "" {
		r.fail(field, why)
		return ""
	}
	*last = s
	return s
}

// CheckName refuses what cannot be a name.
func CheckName(field, s string) error {
	if why := job.WrongName(s, nameBytesMax); why != "" {
		return refuse(field, field+" "+why)
	}
	return nil
}

// label checks a text of the caller's own, which may hold nearly anything.
func (r *values) label(field, s string) string {
	if len(s) > nameBytesMax {
		r.fail(field, "must not be longer than "+strconv.Itoa(nameBytesMax)+" bytes")
	} else if strings.IndexByte(s, 0) >= 0 {
		r.fail(field, "must not contain null bytes")
	}
	return s
}

// backoff reads Zizq's curve, which is given whole or not at all.
func (r *Reader) backoff() *job.Curve {
	exponent, base, jitter := math.NaN(), uint64(none), uint64(none)
	there := r.object("backoff", func(name []byte) {
		switch string(name) {
		case "exponent":
			exponent = r.float32("backoff.exponent")
		case "base_ms":
			base = r.number("backoff.base_ms", 0, uint32Max, none)
		case "jitter_ms":
			jitter = r.number("backoff.jitter_ms", 0, uint32Max, none)
		default:
			unknown[wire.Backoff](r, name)
		}
	})
	if !there {
		return nil
	}
	r.must("backoff.exponent", !math.IsNaN(exponent))
	r.must("backoff.base_ms", base != none)
	r.must("backoff.jitter_ms", jitter != none)
	curve := job.ZizqCurve(exponent, uint32(base), uint32(jitter))
	curve.Count = r.Count
	return &curve
}

// retry reads a policy in the shape of spec/retry.md.
func (r *Reader) retry(says *policy) {
	raw := r.given()
	if raw == nil {
		return
	}
	read, err := job.ParseRetry(raw)
	if err != nil {
		r.fail("retry", "is refused: "+err.Error())
		return
	}
	says.Retry, says.whole = read, true
}

// retention reads {completed_ms, dead_ms}, each of which may be left out.
func (r *Reader) retention(j *job.Job) {
	given := r.object("retention", func(name []byte) {
		switch string(name) {
		case "completed_ms":
			j.RetainDone = r.millis("retention.completed_ms", 0, job.Unset)
		case "dead_ms":
			j.RetainDead = r.millis("retention.dead_ms", 0, job.Unset)
		default:
			unknown[wire.Retention](r, name)
		}
	})
	if given && j.RetainDone == job.Unset && j.RetainDead == job.Unset {
		extrasOf(j).NoRetention = true
	}
}

// requires reads a list of conditions.
func (r *Reader) requires() (list []job.Requirement) {
	r.array("requires", requiresMax, func() {
		text := r.label("requires", r.string("requires"))
		one, err := rule.ParseRequirement(text)
		if err != nil {
			r.fail("requires", "is refused: "+err.Error())
		}
		list = append(list, one)
	})
	return rule.SortRequirements(list)
}
