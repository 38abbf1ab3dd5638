package grid

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
)

// The drivers of sessions with a client_timeout (reference section 1, A33): one
// that is silent for too long is taken for dead, and its session is cancelled. When
// it was heard of is known in memory only: after a start, and when the server could
// not be reached, everybody has the whole time anew.

// clients is when each was heard of, on the steady clock.
type clients struct {
	*Grid
	staged listening

	heard map[string]job.Millis // by session
	due   job.Millis            // before then none was silent for too long; 0 = there are none
}

// listening is what one run changes of it.
type listening struct {
	heard  map[string]job.Millis // 0 = the session needs no client any more
	due    job.Millis
	looked bool // due is as it shall be
}

func (c *clients) publish(l *listening) {
	for name, at := range l.heard {
		if at == 0 {
			delete(c.heard, name)
			continue
		}
		if c.heard == nil {
			c.heard = map[string]job.Millis{}
		}
		c.heard[name] = at
	}
	if l.looked {
		c.due = 0
	}
	if l.due > 0 && (c.due == 0 || l.due < c.due) {
		c.due = l.due
	}
}

// hear notes a sign of life of whoever drives a session. It costs one look where
// the session has no timeout.
func (g *clients) hear(tx *engine.Tx, q *job.Queue) {
	if q.Grid == nil || q.Grid.ClientTimeout == 0 {
		return
	}
	l := &g.clients.staged
	if l.heard == nil {
		l.heard = map[string]job.Millis{}
	}
	l.heard[q.Name] = tx.Steady()
	l.sooner(tx.Steady().Add(q.Grid.ClientTimeout))
}

// session returns a session, or NotFound, for a call of its client, which is heard of by that.
func (g *clients) session(tx *engine.Tx, name string) (*job.Session, error) {
	s, err := g.sessions.find(tx, name)
	if err != nil {
		return nil, err
	}
	q, err := tx.Queue(name)
	if err == nil {
		g.clients.hear(tx, q)
	}
	return s, err
}

// coming notes that tasks were sent, whatever becomes of them.
func (g *clients) coming(tx *engine.Tx, list []engine.NewJob) error {
	for i := range list {
		j := &list[i].Job
		if j.Door != job.DoorGrid || i > 0 && j.Queue == list[i-1].Job.Queue {
			continue
		}
		q, err := tx.Queue(j.Queue)
		if err != nil {
			return err
		}
		g.clients.hear(tx, q)
	}
	return nil
}

func (l *listening) sooner(at job.Millis) {
	if l.due == 0 || at < l.due {
		l.due = at
	}
}

// heardOf is when the client of a session was heard of; 0 = nobody waits for it.
func (g *clients) heardOf(session string) job.Millis {
	if at, changed := g.clients.staged.heard[session]; changed {
		return at
	}
	return g.clients.heard[session]
}

// tick cancels the sessions whose clients were silent for too long.
func (g *clients) tick(tx *engine.Tx) error {
	if due := g.clients.due; due == 0 || due > tx.Steady() || tx.Steady() < tx.SparedUntil() {
		return nil
	}
	l := &g.clients.staged
	if l.looked = true; l.heard == nil {
		l.heard = map[string]job.Millis{}
	}
	l.due = 0
	for name := range l.heard { // that are new
		if g.clients.heard[name] == 0 {
			if err := g.clients.tickOne(tx, name); err != nil {
				return err
			}
		}
	}
	for _, name := range sortedKeys(g.clients.heard) {
		if err := g.clients.tickOne(tx, name); err != nil {
			return err
		}
	}
	return nil
}

func (g *clients) tickOne(tx *engine.Tx, name string) error {
	s, err := g.sessions.find(tx, name)
	if job.KindOf(err) == job.NotFound {
		g.clients.staged.heard[name] = 0
		return nil
	}
	if err != nil {
		return err
	}
	q, err := tx.Queue(name)
	if err != nil {
		return err
	}
	at, heard := job.Millis(0), g.clients.heardOf(name)
	if plan.NeedsClient(s, q.Grid) && heard > 0 {
		at = heard.Add(q.Grid.ClientTimeout)
	}
	switch {
	case at == 0:
		g.clients.staged.heard[name] = 0
	case at > tx.Steady():
		g.clients.staged.sooner(at)
	default:
		g.clients.staged.heard[name] = 0
		_, err = g.sessions.cancel(tx, s, "its client was not heard of for "+q.Grid.ClientTimeout.String()+" (client_timeout)")
	}
	return err
}

// next is when the first may have been silent for too long; 0 = never.
func (g *clients) next() job.Millis {
	due := g.clients.due
	if g.clients.staged.looked {
		due = 0
	}
	if own := g.clients.staged.due; own > 0 && (due == 0 || own < due) {
		due = own
	}
	return due
}

// until is the date at which a session is cancelled if nothing is heard of
// its client; 0 = it is not.
func (g *clients) until(tx *engine.Tx, s *job.Session, q *job.Queue) job.Millis {
	heard := g.clients.heardOf(s.Name)
	if heard == 0 || !plan.NeedsClient(s, q.Grid) {
		return 0
	}
	return tx.Now().Add(max(0, heard.Add(q.Grid.ClientTimeout)-tx.Steady()))
}

// load gives the client of a session its whole time.
func (g *clients) load(session string, timeout, steady job.Millis) {
	g.clients.publish(&listening{heard: map[string]job.Millis{session: steady}, due: steady.Add(timeout)})
}

// Heard is a sign of life of the client of a session. It answers how soon the next
// one is due at the latest, 0 if the session needs none.
func (g *Grid) Heard(ctx context.Context, session string) (within job.Millis, err error) {
	var told job.Millis // by the committer, which may still be at it when ctx ends
	err = g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		if _, err := g.clients.session(tx, session); err != nil {
			return err
		}
		q, err := tx.Queue(session)
		if err != nil {
			return err
		}
		if told = 0; q.Grid != nil {
			told = q.Grid.ClientTimeout
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return told, nil
}
