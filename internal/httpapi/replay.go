package httpapi

import (
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// replays is GET /replays.
func (h *deadRoom) replays(c *call) (any, error) {
	before, limit, err := jobs.LogQuery(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	list, err := h.engine.Dead.Replays(c.Context(), before, limit+1)
	out := wire.Replays{Replays: []wire.Replay{}}
	for _, p := range list[:min(limit, len(list))] {
		out.Replays = append(out.Replays, jobs.ReplayOf(p))
	}
	if len(list) > limit {
		out.Next = c.following("from", list[limit-1].ID.String())
	}
	return out, err
}

var errNoReplay = job.Errorf(job.NotFound, "replay not found")

// showReplay is GET /replays/{id}.
func (h *deadRoom) showReplay(c *call) (any, error) {
	id, err := job.ParseID(c.id)
	if err != nil {
		return nil, errNoReplay
	}
	return shown(jobs.ReplayOf)(h.engine.Dead.Replay(c.Context(), id))
}

// cancelReplay is DELETE /replays/{id}.
func (h *deadRoom) cancelReplay(c *call) (any, error) {
	id, err := job.ParseID(c.id)
	if err != nil {
		return nil, errNoReplay
	}
	return shown(jobs.ReplayOf)(h.engine.Dead.CancelReplay(c.Context(), id, c.by))
}
