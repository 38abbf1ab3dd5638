package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

// queueRoom serves queues and what protects their targets.
type queueRoom struct{ *core }

func (h *queueRoom) routes() []route {
	return []route{
		get("/queues", reads, ownOnly, h.bare(h.list)),
		get("/queues/{name}", reads, pathQueue, h.bare(h.show)),
		patch("/queues/{name}", operates, pathQueue, h.raw(h.set)),
		get("/queues/{name}/groups", reads, pathQueue, h.bare(h.asides)),
		post("/queues/{name}/hold", operates, pathQueue, optionally(h.core, h.hold)),
		post("/queues/{name}/release", operates, pathQueue, optionally(h.core, h.release)),
		post("/queues/{name}/breaker", operates, pathQueue, optionally(h.core, h.forceBreaker)),
		get("/policies/preview", anybody, noQueue, h.bare(h.previewPolicy)),
	}
}

// settings are those of a queue on the wire. In a PATCH what is named changes
// and null is the default.
type settings struct {
	Paused         bool       `json:"paused"`
	Order          string     `json:"order"`
	Concurrency    int64      `json:"concurrency"` // per group; 0 = no limit
	OnDead         string     `json:"on_dead"`
	FrontOrder     string     `json:"front_order"`
	Retry          *job.Retry `json:"retry,omitzero"`
	LateOK         string     `json:"late_ok"`
	RequireToken   bool       `json:"require_token"`
	NonIdempotent  bool       `json:"non_idempotent"`
	MaxJobs        int64      `json:"max_jobs"` // 0 = no limit
	MaxBytes       int64      `json:"max_bytes"`
	OnFull         string     `json:"on_full"`
	RunTimeoutMS   int64      `json:"run_timeout_ms"` // 0 = none
	StartTimeoutMS int64      `json:"start_timeout_ms"`
	Retention      retention  `json:"retention"`
	jobs.Protection
}

// retention is how long finished jobs stay; what is left out is the server's.
type retention struct {
	CompletedMS *int64 `json:"completed_ms,omitzero"`
	DeadMS      *int64 `json:"dead_ms,omitzero"`
}

// queueState is the answer of GET and PATCH /queues/{name}.
type queueState struct {
	Name string `json:"name"`
	settings
	Session      string             `json:"session,omitzero"` // the state of the session that it is
	HoldUntil    int64              `json:"hold_until,omitzero"`
	BreakerState *wire.BreakerState `json:"breaker_state,omitzero"` // where it is not simply closed
	Jobs         wire.JobCounts     `json:"jobs"`
	Bytes        int64              `json:"bytes"` // payloads of jobs that are not finished
	OldestReady  int64              `json:"oldest_ready_at,omitzero"`
	Rates        *wire.QueueRates   `json:"rates,omitzero"`
}

// The words of late_ok.
const (
	lateUntilTerminal = "until_terminal"
	lateNever         = "never"
)

func settingsOf(q *job.Queue) settings {
	s := settings{
		Paused: q.Paused, Order: q.Order.String(), Concurrency: int64(q.Concurrency), OnDead: q.OnDead.String(),
		FrontOrder: q.FrontOrder.String(), LateOK: lateUntilTerminal, RequireToken: q.RequireToken,
		NonIdempotent: q.NonIdempotent, MaxJobs: q.MaxJobs, MaxBytes: q.MaxBytes, OnFull: q.OnFull.String(),
		RunTimeoutMS: int64(q.RunTimeout), StartTimeoutMS: int64(q.StartTimeout),
		Protection: jobs.ProtectionOf(&q.Protection),
		Retention:  retention{CompletedMS: unlessUnset(q.RetainDone), DeadMS: unlessUnset(q.RetainDead)},
	}
	if q.LateOKNever {
		s.LateOK = lateNever
	}
	if own := q.Retry; !own.IsZero() {
		s.Retry = &own
	}
	return s
}

func unlessUnset(m job.Millis) *int64 {
	if m == job.Unset {
		return nil
	}
	return (*int64)(&m)
}

// apply checks the settings and writes them to q.
func (s *settings) apply(q *job.Queue) error {
	orUnset := func(ms *int64) int64 {
		if ms == nil {
			return 0
		}
		return *ms
	}
	most := int64(job.MaxMillis)
	err := cmp.Or(
		oneOf(&q.Order, "order", s.Order, job.OrderNone, job.OrderStart, job.OrderStrict),
		oneOf(&q.OnDead, "on_dead", s.OnDead, job.DeadSkip, job.DeadBlock, job.DeadPark),
		oneOf(&q.FrontOrder, "front_order", s.FrontOrder, job.FrontBySeq, job.FrontLIFO),
		oneOf(&q.OnFull, "on_full", s.OnFull, job.FullReject, job.FullDropOldest),
		within("concurrency", s.Concurrency, 0, math.MaxInt32),
		within("max_jobs", s.MaxJobs, 0, 1<<53),
		within("max_bytes", s.MaxBytes, 0, 1<<50),
		within("run_timeout_ms", s.RunTimeoutMS, 0, most),
		within("start_timeout_ms", s.StartTimeoutMS, 0, most),
		within("retention.completed_ms", orUnset(s.Retention.CompletedMS), 0, most),
		within("retention.dead_ms", orUnset(s.Retention.DeadMS), 0, most),
	)
	if err == nil && s.LateOK != "" && s.LateOK != lateUntilTerminal && s.LateOK != lateNever {
		err = job.Errorf(job.Invalid, "late_ok must be one of %s %s%s", lateUntilTerminal, lateNever, spell.Hint(s.LateOK, []string{lateUntilTerminal, lateNever}))
	}
	q.Paused, q.Concurrency, q.LateOKNever = s.Paused, int(s.Concurrency), s.LateOK == lateNever
	q.RequireToken, q.NonIdempotent = s.RequireToken, s.NonIdempotent
	q.MaxJobs, q.MaxBytes = s.MaxJobs, s.MaxBytes
	q.RunTimeout, q.StartTimeout = job.Millis(s.RunTimeoutMS), job.Millis(s.StartTimeoutMS)
	q.Retry, q.RetainDone, q.RetainDead = job.Retry{}, job.Unset, job.Unset
	if s.Retry != nil {
		q.Retry = *s.Retry
	}
	if ms := s.Retention.CompletedMS; ms != nil {
		q.RetainDone = job.Millis(*ms)
	}
	if ms := s.Retention.DeadMS; ms != nil {
		q.RetainDead = job.Millis(*ms)
	}
	return cmp.Or(err, oneRefusal(s.Apply(&q.Protection)))
}

// oneRefusal makes one refusal of several: it names the field of the first,
// and tells all.
func oneRefusal(err error) error {
	var first *job.Error
	if !errors.As(err, &first) {
		return err
	}
	return &job.Error{Kind: first.Kind, Field: first.Field, Text: err.Error()}
}

// oneOf reads a word; the empty one, which null leaves, is the first.
func oneOf[T interface{ String() string }](into *T, field, word string, values ...T) error {
	var known []string
	for i, v := range values {
		if v.String() == word || word == "" && i == 0 {
			*into = v
			return nil
		}
		known = append(known, v.String())
	}
	return &job.Error{Kind: job.Invalid, Field: field, Text: field + " must be one of " + strings.Join(known, " ") + spell.Hint(word, known)}
}

// list is GET /queues.
func (h *queueRoom) list(c *call) (any, error) {
	rates, err := withRates(c.URL.Query()["rates"])
	if err != nil {
		return nil, err
	}
	names, err := h.engine.Queues(c.Context())
	if g := h.limited(c.Request); g != nil {
		names = slices.DeleteFunc(names, func(q string) bool { return !g.Reaches(q) })
	}
	list := wire.Queues{Queues: names}
	if rates {
		list.Rates = make(map[string]wire.QueueRates, len(names))
		for _, name := range names {
			if known := h.rates(name); known != nil {
				list.Rates[name] = *known
			}
		}
	}
	return list, err
}

// show is GET /queues/{name}: settings and depth.
func (h *queueRoom) show(c *call) (any, error) {
	if err := jobs.CheckName("queue", c.id); err != nil {
		return nil, err
	}
	q, depth, err := h.engine.Queue(c.Context(), c.id)
	if err != nil {
		return nil, err
	}
	n := &depth.States
	out := queueState{
		Name: q.Name, settings: settingsOf(q), HoldUntil: int64(q.HoldUntil), Bytes: depth.Bytes, Rates: h.rates(c.id),
		Jobs: wire.JobCounts{
			Scheduled: n[job.Scheduled], Ready: n[job.Ready], InFlight: n[job.Leased], Completed: n[job.Done],
			Dead: n[job.Dead] - depth.Cancelled(), Cancelled: depth.Cancelled(),
		},
	}
	if list, err := h.engine.Guard.Asides(c.Context(), c.id, 0); err == nil && len(list) > 0 {
		out.BreakerState = jobs.BreakerStateOf(list[0])
	}
	if q.Grid != nil {
		s, err := h.engine.Session(c.Context(), c.id)
		if err != nil {
			return nil, err
		}
		out.Session = s.State.String()
	}
	if n[job.Ready] > 0 {
		oldest, err := h.engine.OldestReady(c.Context(), c.id)
		if err != nil {
			return nil, err
		}
		out.OldestReady = int64(oldest)
	}
	return out, nil
}

// set is PATCH /queues/{name}; it answers as GET does.
func (h *queueRoom) set(c *call) (any, error) {
	if err := jobs.CheckName("queue", c.id); err != nil {
		return nil, err
	}
	body := bytes.Clone(c.s.Body.Bytes()) // the engine may run an edit after we left
	edit := func(q *job.Queue) error {
		set := settingsOf(q)
		if err := plain(body, &set, true); err != nil {
			return err
		}
		return set.apply(q)
	}
	if err := edit(job.NewQueue(c.id)); err != nil {
		return nil, err // so that what the engine runs is known to be well formed
	}
	if _, err := h.engine.ChangeQueue(c.Context(), c.id, edit, c.by); err != nil {
		return nil, err
	}
	return h.show(c)
}
