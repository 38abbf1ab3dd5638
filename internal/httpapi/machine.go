package httpapi

import (
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/wire"
)

// The calls of engines: login, heartbeat, drain, logoff. Tasks come over
// GET /jobs/take and POST /jobs/lease, with the name of the engine.

// nameOf is the name that an engine is to have: its own, or one that nobody has.
func nameOf(ask *wire.Login) string {
	if ask.ID != "" {
		return ask.ID
	}
	return "engine-" + strings.ToLower(rand.Text()[:10])
}

// login is POST /engines.
func (h *gridRoom) login(c *call, l gridpart.Login) (any, error) {
	own := l.Name
	l.Name = h.worker(c.Request, own)
	in, err := h.engine.Grid.Login(c.Context(), l)
	return c.made(grid.LoggedIn(own, in), err)
}

// engines is GET /engines, a page by name.
func (h *gridRoom) engines(c *call) (any, error) {
	after, limit, err := pageOf(c.Request)
	if err != nil {
		return nil, err
	}
	list, err := h.engine.Grid.Engines(c.Context(), after, limit)
	out := wire.Engines{Engines: []wire.Engine{}}
	for _, m := range list {
		out.Engines = append(out.Engines, grid.EngineOf(m))
	}
	if err == nil && len(list) == limit {
		out.Next = list[limit-1].Name
	}
	return out, err
}

// showEngine is GET /engines/{id}.
func (h *gridRoom) showEngine(c *call) (any, error) {
	return shown(grid.EngineOf)(h.engine.Grid.Engine(c.Context(), h.worker(c.Request, c.id)))
}

// heartbeatOf is POST /engines/{id}/heartbeat.
func (h *gridRoom) heartbeatOf(c *call, beat gridpart.Beat) (any, error) {
	return shown(grid.Heard)(h.engine.Grid.Heartbeat(c.Context(), h.worker(c.Request, c.id), beat))
}

// epochOf is what a drain or a logoff names: an engine its own login, an
// operator none.
func epochOf(ask *wire.Epoch) (int64, error) {
	if ask.Epoch < 0 {
		return 0, &job.Error{Kind: job.Invalid, Field: "epoch", Text: "epoch must be that of the engine's login; leave it out to mean any"}
	}
	return ask.Epoch, nil
}

// drain is POST /engines/{id}/drain.
func (h *gridRoom) drain(c *call, ask *wire.Epoch) (any, error) {
	epoch, err := epochOf(ask)
	if err != nil {
		return nil, err
	}
	return shown(grid.EngineOf)(h.engine.Grid.Drain(c.Context(), h.worker(c.Request, c.id), epoch, c.by))
}

// logoff is POST /engines/{id}/logoff.
func (h *gridRoom) logoff(c *call, ask *wire.Epoch) (any, error) {
	epoch, err := epochOf(ask)
	if err != nil {
		return nil, err
	}
	return nil, h.engine.Grid.Logoff(c.Context(), h.worker(c.Request, c.id), epoch, c.by)
}

// engineOf takes the engine out of the parameters of a take; "" = it is none.
func engineOf(values map[string][]string) (name string, epoch int64, err error) {
	text := strings.Join(values["epoch"], "")
	if name = strings.Join(values["engine"], ""); name == "" {
		if text != "" {
			err = &job.Error{Kind: job.Invalid, Field: "epoch", Text: "epoch is for an engine; name it with engine=NAME"}
		}
		return "", 0, err
	}
	if err := jobs.CheckName("engine", name); err != nil {
		return "", 0, err
	}
	epoch, err = strconv.ParseInt(text, 10, 64)
	if err != nil || epoch < 1 {
		return "", 0, &job.Error{Kind: job.Invalid, Field: "epoch", Text: "epoch must be that of the engine's login (POST /engines)"}
	}
	return name, epoch, nil
}
