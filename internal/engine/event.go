package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// EventKind is what happened to a job.
type EventKind uint8

// The kinds of events.
const (
	JobEnqueued  EventKind = iota
	JobReady               // its time has come
	JobTaken               // given to a holder
	JobCompleted           // a holder said OK
	JobRetried             // a run failed, and it is to run again
	JobReleased            // a holder gave it back without blame
	JobLapsed              // its holder vanished, or did not begin in time
	JobDied                // it is dead, with a reason
	JobRevived             // brought back, or called up before its time
	JobChanged             // an operator changed it, or asked for one more copy
	JobPurged              // a finished one was forgotten
	JobCancelled           // given up by an operator, or with its session
	EventKinds             // how many there are
)

func (k EventKind) String() string {
	return [...]string{
		"enqueued", "ready", "taken", "completed", "retried", "released", "lapsed", "died", "revived", "changed", "purged", "cancelled",
	}[k]
}

// Event is a transition of a job that is on disk.
type Event struct {
	Kind    EventKind
	At      job.Millis
	ID      job.ID
	Queue   string
	Type    string
	Group   string
	State   job.State // after it; of a job that left the one in which it left
	Gone    bool      // it left
	Attempt uint32    // charged failures
	Reason  string    // died, retried, lapsed: why; a word from a fixed list
	Trace   *Trace    // for those who follow traces; nil = not of one
}

// eventOf is the event of a step; ok is false if it is none.
func eventOf(c *rule.Command, old, j *job.Job, eff *rule.Effect, now job.Millis) (ev Event, ok bool) {
	ev = Event{
		At: now, ID: j.ID, Queue: j.Queue, Type: j.Type, Group: j.Group,
		State: j.State, Gone: eff.Job == nil, Attempt: j.Attempts,
	}
	switch c.Verb {
	case rule.Put:
		ev.Kind = JobEnqueued
	case rule.Take:
		ev.Kind = JobTaken
	case rule.SettleOK:
		ev.Kind = JobCompleted
	case rule.SettleRetry:
		ev.Kind, ev.Reason = JobRetried, retryWords[retryReason(c, old, j)-RetryError]
	case rule.SettleRelease:
		ev.Kind = JobReleased
	case rule.Promote:
		ev.Kind = JobReady
	case rule.Revive:
		ev.Kind = JobRevived
	case rule.Offer, rule.Patch:
		ev.Kind = JobChanged
	case rule.Purge:
		ev.Kind = JobPurged
	case rule.Lapse:
		ev.Kind = JobLapsed
		if n := len(j.Ended); n > 0 && len(eff.Ended) > 0 {
			ev.Reason = endingWords[endingCount(j.Ended[n-1].How)-EndedLapse]
		}
	case rule.SettleDead, rule.Expire, rule.Cancel:
		ev.Kind = JobDied
	case rule.Extend, rule.Verbs:
		return Event{}, false
	}
	if died(old, eff) {
		ev.Kind, ev.Reason = JobDied, j.Reason.String()
	}
	if ev.Kind == JobDied && j.Reason == job.ReasonCancelled {
		ev.Kind, ev.Reason = JobCancelled, ""
	}
	return ev, true
}

// The words of counts, by their distance from the first of their kind. They
// are labels of metrics and reasons of events.
var (
	retryWords  = [...]string{"error", "timeout", "http_4xx", "http_5xx", "exit", "grace", "lost"}
	endingWords = [...]string{"lapse", "disconnect", "restart", "start_timeout", "run_timeout", "supersede", "cancel", "turn", "evict", "preempt", "withdraw", "undelivered"}
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

func has[T comparable](list []T, v T) bool {
	for _, w := range list {
		if w == v {
			return true
		}
	}
	return len(list) == 0
}

// hub hands events to those who listen. It never waits for one of them: who is
// slow loses events, and is told how many.
type hub struct {
	listening atomic.Int32 // to all events
	tracing   atomic.Int32 // to those of traces only
	mu        sync.Mutex   // guards what follows
	list      []*Listener
	closed    bool
}

// Listener receives events from the time it was made.
type Listener struct {
	hub    *hub
	filter EventFilter
	bell   chan struct{}

	mu    sync.Mutex // guards what follows
	queue []Event
	lost  uint64
	ended bool
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
func (e *Engine) Listen(f EventFilter) (*Listener, error) {
	h := &e.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errStopped
	case len(h.list) >= ListenersMax:
		return nil, job.Errorf(job.OverLimit, "%d listen to events already; close one of them", ListenersMax)
	}
	l := &Listener{hub: h, filter: f, bell: make(chan struct{}, 1)}
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
	for {
		l.mu.Lock()
		list, lost, ended := l.queue, l.lost, l.ended
		l.queue, l.lost = nil, 0
		l.mu.Unlock()
		switch {
		case len(list) > 0 || lost > 0:
			return list, lost, nil
		case ended:
			return nil, 0, ErrStreamEnded
		}
		select {
		case <-l.bell:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// publish hands on the events of a batch. Of one whose outcome is unknown they
// are lost. The caller is the sync loop.
func (h *hub) publish(list []Event, unknown bool) {
	if len(list) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.list {
		l.offer(list, unknown)
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
	l.ring()
}

func (l *Listener) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// close ends all listeners, when the engine has stopped.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, l := range h.list {
		l.mu.Lock()
		l.ended = true
		l.mu.Unlock()
		l.ring()
	}
}
