package httpapi

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
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
		post("/queues/{name}/hold", operates, pathQueue, optionally(h.core, h.hold, wrongHold)),
		post("/queues/{name}/release", operates, pathQueue, optionally(h.core, h.release)),
		post("/queues/{name}/breaker", operates, pathQueue, optionally(h.core, h.forceBreaker, wrongBreaker)),
		get("/policies/preview", anybody, noQueue, h.bare(h.previewPolicy)),
	}
}

// queueState is what GET and PATCH /queues/{name} answer beside the settings.
type queueState struct {
	Session      string             `json:"session,omitzero"` // the state of the session that it is
	HoldUntil    int64              `json:"hold_until,omitzero"`
	BreakerState *wire.BreakerState `json:"breaker_state,omitzero"` // where it is not simply closed
	Jobs         wire.JobCounts     `json:"jobs"`
	Bytes        int64              `json:"bytes"` // payloads of jobs that are not finished
	OldestReady  int64              `json:"oldest_ready_at,omitzero"`
	Rates        *wire.QueueRates   `json:"rates,omitzero"`
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
		HoldUntil: int64(q.HoldUntil), Bytes: depth.Bytes, Rates: h.rates(c.id),
		Jobs: wire.JobCounts{
			Scheduled: n[job.Scheduled], Ready: n[job.Ready], InFlight: n[job.Leased], Completed: n[job.Done],
			Dead: n[job.Dead] - depth.Cancelled(), Cancelled: depth.Cancelled(),
		},
	}
	if list, err := h.engine.Guard.Asides(c.Context(), c.id, 0); err == nil && len(list) > 0 {
		out.BreakerState = jobs.BreakerStateOf(list[0])
	}
	if q.Grid != nil {
		s, err := h.engine.Grid.Session(c.Context(), c.id)
		if err != nil {
			return nil, err
		}
		out.Session = s.State.String()
	}
	if n[job.Ready] > 0 {
		oldest, err := h.engine.Meter.OldestReady(c.Context(), c.id)
		if err != nil {
			return nil, err
		}
		out.OldestReady = int64(oldest)
	}
	told, err := json.Marshal(out)
	body, _ := jsontext.AppendQuote([]byte(`{"name":`), q.Name) // names are UTF-8
	return jsontext.Value(append(append(jobs.AppendQueue(body, q), ','), told[1:]...)), err
}

// set is PATCH /queues/{name}; it answers as GET does.
func (h *queueRoom) set(c *call) (any, error) {
	if err := jobs.CheckName("queue", c.id); err != nil {
		return nil, err
	}
	body := bytes.Clone(c.s.Body.Bytes()) // the engine may run an edit after we left
	if len(body) > plainMax {
		return nil, errPlainMax
	}
	edit := func(q *job.Queue) error { return jobs.OneRefusal(jobs.ReadQueue(body, q)) }
	if err := edit(job.NewQueue(c.id)); err != nil {
		return nil, err // so that what the engine runs is known to be well formed
	}
	if _, err := h.engine.Desk.ChangeQueue(c.Context(), c.id, edit, c.by); err != nil {
		return nil, err
	}
	return h.show(c)
}
