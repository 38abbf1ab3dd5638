package engine

import (
	"context"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// What drivers ask for beside the life of a session: results with what the
// tasks made, the news that there are more, and a task by the client's number.

// TaskID finds a task of a session by its key, the client's number of it.
func (e *Engine) TaskID(ctx context.Context, session, key string) (id job.ID, err error) {
	receipt := &job.Receipt{Hash: keyOf(job.DoorGrid, session, key)}
	err = e.View(ctx, func(v store.Reader) error {
		row, err := v.Row(job.Receipts, receipt.Key())
		if known, ok := row.(*job.Receipt); ok {
			id = known.Job
			return err
		}
		if err == nil {
			err = &job.Error{Kind: job.NotFound, Field: "task", Text: "session " + session + " has no task " + key}
		}
		return err
	})
	return id, err
}

// Collect is Results with what each task made, and only what a power cut cannot
// take back: a driver acts on it. more is whether there may be others already.
func (e *Engine) Collect(ctx context.Context, name string, after int64, n int, room Room) (list []Result, s *job.Session, more bool, err error) {
	list, s, err = e.Results(ctx, name, after, n)
	if err != nil {
		return nil, nil, false, err
	}
	list, more, bytes := Fits(list, n, func(d Result) int {
		if made := d.Job.Result(); made != nil {
			return int(made.Size)
		}
		return 0
	})
	more = more || len(list) == n
	if err = room(bytes); err != nil {
		return nil, nil, false, err
	}
	// Commits become durable in order, so what was read is when this one is.
	if err := e.Do(ctx, 0, func(*Tx) error { return nil }); err != nil {
		return nil, nil, false, err
	}
	var refs []job.ID
	for i := range list {
		switch made := list[i].Job.Result(); {
		case made == nil:
		case made.Bytes != nil:
			list[i].Payload = made.Bytes
		default:
			refs = append(refs, made.Ref)
		}
	}
	if len(refs) == 0 {
		return list, s, more, nil
	}
	bodies, err := e.store.Payloads(refs...)
	if err != nil {
		return nil, nil, false, e.noted(err)
	}
	for i := range list {
		if made := list[i].Job.Result(); made != nil && made.Bytes == nil {
			list[i].Payload, bodies = bodies[0], bodies[1:]
		}
	}
	return list, s, more, nil
}

// watchers are those who wait for news of sessions.
type watchers struct {
	mu   sync.Mutex // guards what follows
	bell map[string]chan struct{}
}

// SessionNews is closed when something of the session has changed since the
// call: a task finished, or its state. It is closed too when the server stops.
func (e *Engine) SessionNews(name string) <-chan struct{} {
	w := &e.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bell == nil {
		w.bell = map[string]chan struct{}{}
	}
	if w.bell[name] == nil {
		w.bell[name] = make(chan struct{})
	}
	return w.bell[name]
}

// ring tells who waits for news of the sessions.
func (w *watchers) ring(names []string) {
	if len(names) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if bell := w.bell[name]; bell != nil {
			close(bell)
			delete(w.bell, name)
		}
	}
}

// ringAll ends all waiting.
func (w *watchers) ringAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, bell := range w.bell {
		close(bell)
		delete(w.bell, name)
	}
}
