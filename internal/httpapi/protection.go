package httpapi

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

// asidesMax bounds the groups that one answer names.
const asidesMax = 1000

// asides is GET /queues/{name}/groups.
func (h *queueRoom) asides(c *call) (any, error) {
	if err := jobs.CheckName("queue", c.id); err != nil {
		return nil, err
	}
	list, err := h.engine.Guard.Asides(c.Context(), c.id, asidesMax)
	out := wire.Asides{Groups: []wire.Aside{}}
	for _, a := range list {
		if a.Group != "" {
			out.Groups = append(out.Groups, jobs.AsideOf(a))
		}
	}
	return out, err
}

// hold is POST /queues/{name}/hold.
func (h *queueRoom) hold(c *call, body *wire.Hold) (any, error) {
	if err := cmp.Or(jobs.CheckName("queue", c.id), jobs.OneRefusal(wrongHold(c, body))); err != nil {
		return nil, err
	}
	until := job.Millis(body.Until)
	if body.ForMS > 0 {
		until = h.engine.Now().Add(job.Millis(body.ForMS))
	}
	end, err := h.engine.Guard.Hold(c.Context(), c.id, body.Group, until, c.by)
	return wire.Held{HoldUntil: int64(end)}, err
}

func wrongHold(_ *call, body *wire.Hold) error {
	most := int64(job.MaxMillis)
	err := errors.Join(jobs.Within("until", body.Until, 0, most), jobs.Within("for_ms", body.ForMS, 0, most))
	if err == nil && (body.Until == 0) == (body.ForMS == 0) {
		err = &job.Error{Kind: job.Invalid, Field: "until", Text: "exactly one of until and for_ms must be given"}
	}
	return err
}

// release is POST /queues/{name}/release. It answers with the queue.
func (h *queueRoom) release(c *call, body *wire.OfGroup) (any, error) {
	err := jobs.CheckName("queue", c.id)
	if err == nil {
		err = h.engine.Guard.Release(c.Context(), c.id, body.Group, c.by)
	}
	if err != nil {
		return nil, err
	}
	return h.show(c)
}

// breakerWords are what a breaker can be made to do, by job.BreakerState but for the last.
var breakerWords = []string{wire.BreakerClosed, wire.BreakerOpen, wire.BreakerAuto}

func wrongBreaker(_ *call, body *wire.ForceBreaker) error {
	if slices.Contains(breakerWords, body.State) {
		return nil
	}
	return bodyFault("state", "must be one of "+strings.Join(breakerWords, " ")+spell.Hint(body.State, breakerWords))
}

// forceBreaker is POST /queues/{name}/breaker. It answers with the queue.
func (h *queueRoom) forceBreaker(c *call, body *wire.ForceBreaker) (any, error) {
	err := cmp.Or(jobs.CheckName("queue", c.id), wrongBreaker(c, body))
	switch at := slices.Index(breakerWords, body.State); {
	case err != nil:
	case body.State == wire.BreakerAuto:
		err = h.engine.Guard.ReleaseBreaker(c.Context(), c.id, body.Group, c.by)
	default:
		err = h.engine.Guard.ForceBreaker(c.Context(), c.id, body.Group, job.BreakerState(at), c.by)
	}
	if err != nil {
		return nil, err
	}
	return h.show(c)
}
