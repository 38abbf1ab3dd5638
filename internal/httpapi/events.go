package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/meter"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// eventRoom serves those who listen to events or watch the lists.
type eventRoom struct {
	*core
	began  time.Time
	bounds Watch
}

func newEventRoom(c *core, o *Options) *eventRoom {
	return &eventRoom{core: c, began: time.Now(), bounds: cmp.Or(o.Watch, Watch{16, 10 * time.Second})}
}

func (h *eventRoom) routes() []route {
	return []route{get("/events", reads, queryQueues, endpoint{serve: h.events}).streaming()}
}

// events is GET /events: what happens to jobs from now on, as server-sent
// events, until either side ends it. It is lossy by declaration: a reader that
// does not keep up gets an event "lost" with the number in the place of those
// that are missing, and a failed commit counts as one loss for each event whose
// outcome is unknown.
func (h *eventRoom) events(w http.ResponseWriter, r *http.Request, _, _ string) {
	if upgrades(r) {
		h.watch(w, r)
		return
	}
	if !accepts(r.Header["Accept"], mediaEvents, "text/*") {
		notAcceptable(w, `"`+mediaEvents+`"`)
		return
	}
	filter, err := eventFilter(r.URL.RawQuery)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", mediaEvents)
		w.WriteHeader(http.StatusOK)
		return
	}
	leave, err := h.place(&h.listeners, r, meter.ListenersMax, "listen to events")
	if err != nil {
		h.problem(w, r, err)
		return
	}
	defer leave()
	l, err := h.engine.Meter.Listen(filter)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	defer l.Close()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // it outlives every request's time
	w.Header().Set("Content-Type", mediaEvents)
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	out := []byte("retry: 1000\n\n")
	for {
		_ = rc.SetWriteDeadline(time.Now().Add(writeMax))
		if _, err := w.Write(out); err != nil || rc.Flush() != nil {
			return
		}
		_ = rc.SetWriteDeadline(time.Time{})
		if out, err = h.nextEvents(r.Context(), l, out[:0]); err != nil {
			return
		}
	}
}

// nextEvents waits for events, or until it is time for a sign of life.
func (h *eventRoom) nextEvents(ctx context.Context, l *meter.Listener, out []byte) ([]byte, error) {
	quiet, cancel := context.WithTimeout(ctx, h.heartbeat)
	defer cancel()
	list, lost, err := l.Next(quiet)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return append(out, ": heartbeat\n\n"...), nil
	}
	if err != nil {
		return nil, err
	}
	for i := range list {
		ev := &list[i]
		shown := wire.Event{
			Kind: ev.Kind.String(), At: int64(ev.At), ID: ev.ID.String(), Queue: ev.Queue, Type: ev.Type, Group: ev.Group,
			Status: jobs.StatusOf(ev.State), Gone: ev.Gone, Attempts: int64(ev.Attempt), Reason: ev.Reason,
		}
		if out, err = appendEvent(out, shown.Kind, shown); err != nil {
			return nil, err
		}
	}
	if lost > 0 {
		return appendEvent(out, "lost", wire.LostEvents{Count: lost})
	}
	return out, nil
}

func appendEvent(out []byte, name string, v any) ([]byte, error) {
	body, err := encode(v) // one line: JSON escapes line ends
	out = append(append(out, "event: "...), name...)
	out = append(append(out, "\ndata: "...), body...)
	return append(out, "\n\n"...), err
}

// eventFilter reads the query of GET /events.
func eventFilter(query string) (f meter.EventFilter, err error) {
	values, err := strict.Params(query, "", "queue", "kind")
	if err != nil {
		return f, err
	}
	f.Queues, err = jobs.QueueNames(values.Get("queue"))
	if err = cmp.Or(err, asked(f.Queues, nil)); err != nil {
		return f, err
	}
	for _, word := range strict.Names(values.Get("kind")) {
		kind, known := meter.EventKind(0), ""
		for kind < meter.EventKinds && kind.String() != word {
			known += " " + kind.String()
			kind++
		}
		if kind == meter.EventKinds {
			return f, &job.Error{Kind: job.Invalid, Field: "kind", Text: "kind " + strconv.Quote(word) + " is not one of" + known}
		}
		f.Kinds = append(f.Kinds, kind)
	}
	return f, nil
}
