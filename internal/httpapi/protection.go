package httpapi

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// protection is what protects the target of a queue, on the wire.
type protection struct {
	MaxRunning   int64             `json:"max_running,omitzero"` // 0 = no limit
	Rate         *wire.Rate        `json:"rate,omitzero"`
	GroupRate    *wire.Rate        `json:"group_rate,omitzero"`
	Breaker      *wire.Breaker     `json:"breaker,omitzero"`
	GroupBreaker *wire.Breaker     `json:"group_breaker,omitzero"`
	RetryBudget  *wire.RetryBudget `json:"retry_budget,omitzero"`
	FairShare    *wire.FairShare   `json:"fair_share,omitzero"`
}

func protectionOf(p *job.Protection) protection {
	out := protection{
		MaxRunning: int64(p.MaxRunning), Rate: rateOf(p.Rate), GroupRate: rateOf(p.GroupRate),
		Breaker: breakerOf(p.Breaker), GroupBreaker: breakerOf(p.GroupBreaker),
	}
	if b := p.Budget; b != nil {
		out.RetryBudget = &wire.RetryBudget{RetryShare: new(b.Share), FloorPerSecond: new(b.Floor)}
	}
	if p.Fair != nil {
		out.FairShare = &wire.FairShare{Weights: maps.Clone(p.Fair.Weights)} // a PATCH is read over it
	}
	return out
}

func rateOf(r job.Rate) *wire.Rate {
	if !r.Limited() {
		return nil
	}
	return &wire.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

func breakerOf(b *job.Breaker) *wire.Breaker {
	if b == nil {
		return nil
	}
	return &wire.Breaker{
		Window: b.Window, FailureRatio: b.Ratio, Consecutive: b.Consecutive, OpenForMS: int64(b.OpenFor),
		OpenForMaxMS: int64(b.OpenForMax), Probes: b.Probes, RampMS: int64(b.Ramp),
	}
}

// apply checks the settings and writes them to into. It names every field that
// is wrong.
func (p *protection) apply(into *job.Protection) error {
	set := job.Protection{
		MaxRunning: int(p.MaxRunning), Rate: rate(p.Rate), GroupRate: rate(p.GroupRate),
		Breaker: breaker(p.Breaker), GroupBreaker: breaker(p.GroupBreaker),
	}
	if b := p.RetryBudget; b != nil {
		own := job.DefaultBudget()
		if b.RetryShare != nil {
			own.Share = *b.RetryShare
		}
		if b.FloorPerSecond != nil {
			own.Floor = *b.FloorPerSecond
		}
		set.Budget = &own
	}
	if p.FairShare != nil {
		set.Fair = &job.FairShare{Weights: weights(p.FairShare.Weights)}
	}
	*into = set
	return oneRefusal(set.Check())
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

// weights leaves out those that are null, which are the default.
func weights(given map[string]int) (out map[string]int) {
	for group, w := range given {
		if w == 0 {
			continue
		}
		if out == nil {
			out = map[string]int{}
		}
		out[group] = w
	}
	return out
}

func rate(r *wire.Rate) job.Rate {
	if r == nil {
		return job.Rate{}
	}
	return job.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

func breaker(b *wire.Breaker) *job.Breaker {
	if b == nil {
		return nil
	}
	usual := job.DefaultBreaker()
	own := job.Breaker{
		Window: cmp.Or(b.Window, usual.Window), Ratio: b.FailureRatio, Consecutive: b.Consecutive,
		OpenFor: cmp.Or(job.Millis(b.OpenForMS), usual.OpenFor), OpenForMax: job.Millis(b.OpenForMaxMS),
		Probes: cmp.Or(b.Probes, usual.Probes), Ramp: cmp.Or(job.Millis(b.RampMS), usual.Ramp),
	}
	if own.Ratio == 0 && own.Consecutive == 0 {
		own.Ratio = usual.Ratio
	}
	if own.OpenForMax == 0 {
		own.OpenForMax = max(own.OpenFor, usual.OpenForMax)
	}
	return &own
}

// asidesMax bounds the groups that one answer names.
const asidesMax = 1000

// asides is GET /queues/{name}/groups.
func (h *handler) asides(w http.ResponseWriter, r *http.Request, name, _ string) {
	err := jobs.CheckName("queue", name)
	out := wire.Asides{Groups: []wire.Aside{}}
	if err == nil {
		list, bad := h.engine.Asides(r.Context(), name, asidesMax)
		for _, a := range list {
			if a.Group != "" {
				out.Groups = append(out.Groups, jobs.AsideOf(a))
			}
		}
		err = bad
	}
	h.sendPlain(w, r, out, err)
}

// explain is GET /jobs/{id}/explain.
func (h *handler) explain(w http.ResponseWriter, r *http.Request, text, _ string) {
	id, err := jobID(text)
	if err != nil {
		h.answer(w, r, err, nil)
		return
	}
	e, err := h.engine.Explain(r.Context(), id)
	if err != nil {
		h.answer(w, r, err, nil)
		return
	}
	h.sendPlain(w, r, jobs.Explain(e, h.engine.Now()), nil)
}

// ofQueue reads the body of a call on a queue, strictly, and answers with what
// do says; nil is the state of the queue.
func (h *handler) ofQueue(w http.ResponseWriter, r *http.Request, name string, body any, do func() (any, error)) {
	h.withBody(w, r, func(s *scratch) error {
		if err := jobs.CheckName("queue", name); err != nil {
			return err
		}
		if len(s.Body.Bytes()) > 0 {
			if err := plain(s.Body.Bytes(), body, true); err != nil {
				return err
			}
		}
		answer, err := do()
		if err != nil {
			return err
		}
		if answer == nil {
			h.queue(w, r, name, "")
			return nil
		}
		h.sendPlain(w, r, answer, nil)
		return nil
	})
}

// hold is POST /queues/{name}/hold.
func (h *handler) hold(w http.ResponseWriter, r *http.Request, name, _ string) {
	var body wire.Hold
	h.ofQueue(w, r, name, &body, func() (any, error) {
		until := job.Millis(body.Until)
		err := cmp.Or(within("until", body.Until, 0, int64(job.MaxMillis)), within("for_ms", body.ForMS, 0, int64(job.MaxMillis)))
		if err == nil && (body.Until == 0) == (body.ForMS == 0) {
			err = &job.Error{Kind: job.Invalid, Field: "until", Text: "exactly one of until and for_ms must be given"}
		}
		if err != nil {
			return nil, err
		}
		if body.ForMS > 0 {
			until = h.engine.Now().Add(job.Millis(body.ForMS))
		}
		end, err := h.engine.Hold(r.Context(), name, body.Group, until)
		return wire.Held{HoldUntil: int64(end)}, err
	})
}

// release is POST /queues/{name}/release.
func (h *handler) release(w http.ResponseWriter, r *http.Request, name, _ string) {
	var body wire.OfGroup
	h.ofQueue(w, r, name, &body, func() (any, error) {
		return nil, h.engine.Release(r.Context(), name, body.Group)
	})
}

// forceBreaker is POST /queues/{name}/breaker.
func (h *handler) forceBreaker(w http.ResponseWriter, r *http.Request, name, _ string) {
	var body wire.ForceBreaker
	h.ofQueue(w, r, name, &body, func() (any, error) {
		switch words := []string{wire.BreakerClosed, wire.BreakerOpen}; {
		case body.State == wire.BreakerAuto:
			return nil, h.engine.ReleaseBreaker(r.Context(), name, body.Group)
		case slices.Contains(words, body.State):
			return nil, h.engine.ForceBreaker(r.Context(), name, body.Group, job.BreakerState(slices.Index(words, body.State)))
		}
		return nil, &job.Error{Kind: job.Invalid, Field: "state", Text: "state must be one of closed open auto"}
	})
}
