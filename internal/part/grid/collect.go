package grid

import (
	"context"
	"fmt"
	"strconv"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/store"
)

// What drivers ask for beside the life of a session: results with what the
// tasks made, the news that there are more, and a task by the client's number.

// TaskID finds a task of a session by its key, the client's number of it.
func (g *Grid) TaskID(ctx context.Context, session, key string) (id job.ID, err error) {
	receipt := &job.Receipt{Hash: engine.KeyOf(job.DoorGrid, session, key)}
	err = g.engine.View(ctx, func(v store.Reader) error {
		known, err := store.Row[*job.Receipt](v, receipt.Key())
		if known != nil {
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
func (g *Grid) Collect(ctx context.Context, name string, after int64, n int, room engine.Room) (list []Result, s *job.Session, more bool, err error) {
	list, s, err = g.Results(ctx, name, after, n)
	if err != nil {
		return nil, nil, false, err
	}
	list, more, bytes := query.Fits(list, n, func(d Result) int {
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
	if err := g.engine.Do(ctx, 0, func(*engine.Tx) error { return nil }); err != nil {
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
	bodies, err := g.engine.Bodies(refs...)
	for i := range list {
		if made := list[i].Job.Result(); err == nil && made != nil && made.Bytes == nil {
			if list[i].Payload, bodies = bodies[0], bodies[1:]; list[i].Payload == nil {
				list[i].Payload, err = g.engine.Payload(made.Ref)
			}
		}
	}
	if err != nil {
		return nil, nil, false, err
	}
	return list, s, more, nil
}

// Result is a finished task.
type Result struct {
	Number  int64 // its number among the finished; the cursor behind it
	Job     *job.Job
	Payload []byte       // nil = not asked for
	Failure *job.Failure // the last one of a task that is not done
}

// Results returns up to n finished tasks of a session behind a cursor, in the
// order in which they finished. A session that is collected after its submit has
// none before.
func (g *Grid) Results(ctx context.Context, name string, after int64, n int) (list []Result, s *job.Session, err error) {
	err = g.engine.View(ctx, func(v store.Reader) error {
		known, err := store.Row[*job.Session](v, name)
		if err != nil {
			return err
		}
		if known == nil {
			return &job.Error{Kind: job.NotFound, Field: "session", Text: fmt.Sprintf("session %q does not exist", name)}
		}
		q, err := engine.QueueOf(v, name)
		if s = known; err != nil || q.Grid == nil || q.Grid.Collection == job.CollectAfterSubmit && s.State == job.SessionOpen {
			return err
		}
		ids, err := v.IDs(store.Finished(name, after), n)
		for _, id := range ids {
			if err != nil {
				break
			}
			var j *job.Job
			if j, err = v.Get(id); err != nil {
				break
			}
			d := Result{Number: j.Finished, Job: j}
			if j.State == job.Dead {
				var last []job.Failure
				if last, err = v.Failures(id, 0, true, 1); len(last) > 0 {
					d.Failure = &last[0]
				}
			}
			list = append(list, d)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return list, s, nil
}

// Collected acknowledges results up to a number: unless the session is collected
// later, they are forgotten. A lower number than before changes nothing.
func (g *Grid) Collected(ctx context.Context, name string, upTo int64) (SessionState, error) {
	return g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) {
		old, err := g.clients.session(tx, name)
		if err != nil || upTo <= old.Collected {
			return old, err
		}
		if last := tx.LastSeq(); upTo > last {
			return nil, &job.Error{
				Kind: job.Invalid, Field: "cursor",
				Text: "cursor " + strconv.FormatInt(upTo, 10) + " was not given out; use one of a result",
			}
		}
		s := *old
		s.Collected = upTo
		tx.Store().Durable()
		g.sessions.change(&s)
		return &s, nil
	})
}
