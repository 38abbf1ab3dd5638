package httpapi

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// The calls of engines: login, heartbeat, drain, logoff. Tasks come over
// GET /jobs/take and POST /jobs/lease, with the name of the engine.

var (
	oneEngine = &resource{get: (*handler).showEngine}
	ofEngine  = map[string]*resource{
		"heartbeat": {post: (*handler).heartbeatOf},
		"drain":     {post: (*handler).drainEngine},
		"logoff":    {post: (*handler).logoffEngine},
	}
)

// login is POST /engines.
func (h *handler) login(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		var ask wire.Login
		if err := plain(s.Body.Bytes(), &ask, true); err != nil {
			return err
		}
		own := ask.ID
		if own == "" {
			own = "engine-" + strings.ToLower(rand.Text()[:10])
		}
		l, err := grid.Login(ask, own)
		if err != nil {
			return err
		}
		l.Name = h.worker(r, own)
		in, err := h.engine.Login(r.Context(), l)
		if err != nil {
			return err
		}
		h.sendPlainAs(w, r, http.StatusCreated, grid.LoggedIn(own, in))
		return nil
	})
}

// engines is GET /engines, a page by name.
func (h *handler) engines(w http.ResponseWriter, r *http.Request, _, _ string) {
	after, limit, err := pageOf(r)
	var list []engine.MachineState
	if err == nil {
		list, err = h.engine.Machines(r.Context(), after, limit)
	}
	out := wire.Engines{Engines: []wire.Engine{}}
	for _, m := range list {
		out.Engines = append(out.Engines, grid.EngineOf(m))
	}
	if err == nil && len(list) == limit {
		out.Next = list[limit-1].Name
	}
	h.sendPlain(w, r, out, err)
}

// showEngine is GET /engines/{id}.
func (h *handler) showEngine(w http.ResponseWriter, r *http.Request, id, _ string) {
	m, err := h.engine.Machine(r.Context(), h.worker(r, id))
	h.sendPlain(w, r, grid.EngineOf(m), err)
}

// heartbeatOf is POST /engines/{id}/heartbeat.
func (h *handler) heartbeatOf(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		var ask wire.Heartbeat
		if err := plain(s.Body.Bytes(), &ask, true); err != nil {
			return err
		}
		beat, err := grid.Heartbeat(ask)
		if err != nil {
			return err
		}
		m, err := h.engine.Heartbeat(r.Context(), h.worker(r, id), beat)
		if err != nil {
			return err
		}
		h.sendPlain(w, r, grid.Heard(m), nil)
		return nil
	})
}

// epochOf reads the body of a drain or a logoff, which may be left out: an
// engine names its own login, an operator none.
func epochOf(s *scratch) (int64, error) {
	var ask wire.Epoch
	if err := optional(s, &ask); err != nil {
		return 0, err
	}
	if ask.Epoch < 0 {
		return 0, &job.Error{Kind: job.Invalid, Field: "epoch", Text: "epoch must be that of the engine's login; leave it out to mean any"}
	}
	return ask.Epoch, nil
}

// drainEngine is POST /engines/{id}/drain.
func (h *handler) drainEngine(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.rebinding(w, r, func(s *scratch, by job.Actor) error {
		epoch, err := epochOf(s)
		if err != nil {
			return err
		}
		m, err := h.engine.Drain(r.Context(), h.worker(r, id), epoch, by)
		if err != nil {
			return err
		}
		h.sendPlain(w, r, grid.EngineOf(m), nil)
		return nil
	})
}

// logoffEngine is POST /engines/{id}/logoff.
func (h *handler) logoffEngine(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.rebinding(w, r, func(s *scratch, by job.Actor) error {
		epoch, err := epochOf(s)
		if err != nil {
			return err
		}
		if err := h.engine.Logoff(r.Context(), h.worker(r, id), epoch, by); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// machineOf takes the engine out of the parameters of a take; "" = it is none.
func machineOf(values map[string][]string) (name string, epoch int64, err error) {
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
