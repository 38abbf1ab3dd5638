package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// The drivers of sessions with a client_timeout (reference section 1, A33): one
// that is silent for too long is taken for dead, and its session is cancelled. When
// it was heard of is known in memory only: after a start, and when the server could
// not be reached, everybody has the whole time anew.

// clients is when each was heard of, on the steady clock.
type clients struct {
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
func (r *Tx) hear(q *job.Queue) {
	if q.Grid == nil || q.Grid.ClientTimeout == 0 {
		return
	}
	l := &r.listening
	if l.heard == nil {
		l.heard = map[string]job.Millis{}
	}
	l.heard[q.Name] = r.steady
	l.sooner(r.steady.Add(q.Grid.ClientTimeout))
}

// heardSession is aSession for a call of its client.
func (r *Tx) heardSession(name string) (*job.Session, error) {
	s, err := r.aSession(name)
	if err != nil {
		return nil, err
	}
	q, err := r.Queue(name)
	if err == nil {
		r.hear(q)
	}
	return s, err
}

// hearDrivers notes that tasks were sent, whatever becomes of them.
func (r *Tx) hearDrivers(list []NewJob) error {
	for i := range list {
		j := &list[i].Job
		if j.Door != job.DoorGrid || i > 0 && j.Queue == list[i-1].Job.Queue {
			continue
		}
		q, err := r.Queue(j.Queue)
		if err != nil {
			return err
		}
		r.hear(q)
	}
	return nil
}

func (l *listening) sooner(at job.Millis) {
	if l.due == 0 || at < l.due {
		l.due = at
	}
}

// heardOf is when the client of a session was heard of; 0 = nobody waits for it.
func (r *Tx) heardOf(session string) job.Millis {
	if at, changed := r.listening.heard[session]; changed {
		return at
	}
	return r.c.clients.heard[session]
}

// tickClients cancels the sessions whose clients were silent for too long.
func (r *Tx) tickClients() error {
	if due := r.c.clients.due; due == 0 || due > r.steady || r.steady < r.watch.lapses {
		return nil
	}
	l := &r.listening
	if l.looked = true; l.heard == nil {
		l.heard = map[string]job.Millis{}
	}
	l.due = 0
	for name := range l.heard { // that are new
		if r.c.clients.heard[name] == 0 {
			if err := r.tickClient(name); err != nil {
				return err
			}
		}
	}
	for _, name := range sortedKeys(r.c.clients.heard) {
		if err := r.tickClient(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *Tx) tickClient(name string) error {
	s, err := r.aSession(name)
	if job.KindOf(err) == job.NotFound {
		r.listening.heard[name] = 0
		return nil
	}
	if err != nil {
		return err
	}
	q, err := r.Queue(name)
	if err != nil {
		return err
	}
	at, heard := job.Millis(0), r.heardOf(name)
	if rule.NeedsClient(s, q.Grid) && heard > 0 {
		at = heard.Add(q.Grid.ClientTimeout)
	}
	switch {
	case at == 0:
		r.listening.heard[name] = 0
	case at > r.steady:
		r.listening.sooner(at)
	default:
		r.listening.heard[name] = 0
		_, err = r.cancelSession(s, "its client was not heard of for "+q.Grid.ClientTimeout.String()+" (client_timeout)")
	}
	return err
}

// nextClient is when the first may have been silent for too long; 0 = never.
func (r *Tx) nextClient() job.Millis {
	due := r.c.clients.due
	if r.listening.looked {
		due = 0
	}
	if own := r.listening.due; own > 0 && (due == 0 || own < due) {
		due = own
	}
	return due
}

// clientUntil is the date at which a session is cancelled if nothing is heard of
// its client; 0 = it is not.
func (r *Tx) clientUntil(s *job.Session, q *job.Queue) job.Millis {
	heard := r.heardOf(s.Name)
	if heard == 0 || !rule.NeedsClient(s, q.Grid) {
		return 0
	}
	return r.now.Add(max(0, heard.Add(q.Grid.ClientTimeout)-r.steady))
}

// loadClient gives the client of a session its whole time.
func (c *committer) loadClient(session string, timeout, steady job.Millis) {
	c.clients.publish(&listening{heard: map[string]job.Millis{session: steady}, due: steady.Add(timeout)})
}

// Heard is a sign of life of the client of a session. It answers how soon the next
// one is due at the latest, 0 if the session needs none.
func (e *Engine) Heard(ctx context.Context, session string) (within job.Millis, err error) {
	var told job.Millis // by the committer, which may still be at it when ctx ends
	err = e.Do(ctx, 0, func(r *Tx) error {
		if _, err := r.heardSession(session); err != nil {
			return err
		}
		q, err := r.Queue(session)
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
