package meter

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Bounds of listening.
const (
	ListenersMax = 64   // at once
	eventsMax    = 4096 // that wait for one listener
)

// EventFilter selects events; an empty list is all.
type EventFilter struct {
	Queues []string
	Kinds  []EventKind
	Traced bool // only of jobs with a sampled trace context, with their Trace
}

func (f *EventFilter) chooses(ev *Event) bool {
	return (!f.Traced || ev.Trace != nil) && has(f.Queues, ev.Queue) && has(f.Kinds, ev.Kind)
}

func has[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// hub hands events to those who listen. It never waits for one of them: who is
// slow loses events, and is told how many.
type hub struct {
	listening atomic.Int32 // to all events
	tracing   atomic.Int32 // to those of traces only
	mu        sync.Mutex   // guards what follows
	list      []*Listener
}

// Listener receives events from the time it was made.
type Listener struct {
	hub     *hub
	filter  EventFilter
	bell    chan struct{}
	stopped <-chan struct{}

	mu    sync.Mutex // guards what follows
	queue []Event
	lost  uint64
}

// count notes who listens to what. The caller holds mu.
func (h *hub) count() {
	traced := int32(0)
	for _, l := range h.list {
		if l.filter.Traced {
			traced++
		}
	}
	h.tracing.Store(traced)
	h.listening.Store(int32(len(h.list)) - traced)
}

// Listen begins to listen. It is refused with OverLimit when too many do. The
// caller closes the listener.
func (m *Meter) Listen(f EventFilter) (*Listener, error) {
	h, stopped := &m.hub, m.engine.Stopped()
	select {
	case <-stopped:
		return nil, m.engine.Ready()
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.list) >= ListenersMax {
		return nil, job.Errorf(job.OverLimit, "%d listen to events already; close one of them", ListenersMax)
	}
	l := &Listener{hub: h, filter: f, bell: make(chan struct{}, 1), stopped: stopped}
	h.list = append(h.list, l)
	h.count()
	return l, nil
}

// Close ends listening.
func (l *Listener) Close() {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, m := range h.list {
		if m == l {
			h.list = append(h.list[:i:i], h.list[i+1:]...)
			break
		}
	}
	h.count()
}

// Next blocks until there are events or some were lost. It returns what there
// is, in order, and how many were lost after them. ErrStreamEnded says that the
// server stops.
func (l *Listener) Next(ctx context.Context) (list []Event, lost uint64, err error) {
	for ended := false; ; {
		l.mu.Lock()
		list, lost = l.queue, l.lost
		l.queue, l.lost = nil, 0
		l.mu.Unlock()
		switch {
		case len(list) > 0 || lost > 0:
			return list, lost, nil
		case ended:
			return nil, 0, engine.ErrStreamEnded
		}
		select {
		case <-l.bell:
		case <-l.stopped: // what was told before is there
			ended = true
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// announce hands on the events of a batch, with the time at which it was on disk. Of one
// whose outcome is unknown they are lost.
func (m *Meter) announce() func(unknown bool) {
	list := m.stage.events
	if len(list) == 0 {
		return nil
	}
	m.stage.events = nil
	return func(unknown bool) {
		now := m.engine.Now()
		for i := range list {
			if t := list[i].Trace; t != nil {
				t.Stored = now
			}
		}
		m.hub.mu.Lock()
		defer m.hub.mu.Unlock()
		for _, l := range m.hub.list {
			l.offer(list, unknown)
		}
	}
}

// offer takes what there is room for. After a loss nothing more comes until
// the listener has been told of it, so that the place of the gap is known.
func (l *Listener) offer(list []Event, unknown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range list {
		switch {
		case !l.filter.chooses(&list[i]):
		case unknown || l.lost > 0 || len(l.queue) >= eventsMax:
			l.lost++
		default:
			l.queue = append(l.queue, list[i])
		}
	}
	select {
	case l.bell <- struct{}{}:
	default:
	}
}
