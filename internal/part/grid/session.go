package grid

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// A session is a queue with grid settings (job.Grid) and a row that counts its
// tasks. Its tasks are put like any job, with Door grid, and go to engines only.

// sessions is the room of the sessions.
type sessions struct {
	*Grid
	changed map[string]*job.Session // as they shall be
	dropped []string                // that are forgotten
}

func (g *sessions) begin() { g.changed, g.dropped = nil, nil }

// of is the session that a queue is; nil = it is none.
func (g *sessions) of(tx *engine.Tx, q *job.Queue) (*job.Session, error) {
	if q.Grid == nil {
		return nil, nil
	}
	return g.sessions.find(tx, q.Name)
}

// rejected counts a task that was set aside.
func (g *sessions) rejected(tx *engine.Tx, j *job.Job, _ rule.Effect) error {
	if j.Door != job.DoorGrid {
		return nil
	}
	if known, err := store.Row[*job.Session](tx.Store(), j.Queue); err != nil || known == nil {
		return err
	}
	s, err := g.sessions.own(tx, j.Queue)
	if err != nil {
		return err
	}
	s.Failed++
	if s.Depends {
		g.needs.over = append(g.needs.over, j.ID)
	}
	return nil
}

// sessionPage bounds the tasks that one transaction cancels or forgets for a
// session.
const sessionPage = 500

// NewSession is a session as a door asks for it.
type NewSession struct {
	Queue job.Queue // settings; Name "" = the server draws one; Grid is needed
	Info  []byte    // what the door keeps with it
}

// SessionState is a session with its settings and how much of it there is.
type SessionState struct {
	*job.Session
	Settings *job.Queue
	Depth    engine.Depth
	Share    int // slots it should have now

	ClientUntil job.Millis // date at which it is cancelled if nothing is heard of its client; 0 = it is not

	Redundant Redundant // what its copies came to since the server started
}

// OpenSession makes a session; Exists if its name is that of a queue in use.
func (g *Grid) OpenSession(ctx context.Context, n NewSession, by job.Actor) (SessionState, error) {
	return g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) {
		q := n.Queue
		if q.Grid == nil {
			return nil, job.Errorf(job.Invalid, "a session needs grid settings")
		}
		if err := checkSession(&q); err != nil {
			return nil, err
		}
		if q.Name == "" {
			q.Name = tx.NewID().String()
		} else if err := tx.NoneInto(q.Name); err != nil {
			return nil, err
		}
		q.RetainDead = job.MaxMillis // with their session they are forgotten: others may need to know that they failed
		if tx.KnowsQueue(q.Name) {
			return nil, &job.Error{Kind: job.Exists, Field: "name", Text: fmt.Sprintf("there is a queue or session %q already", q.Name)}
		}
		if err := tx.OneMoreQueue(); err != nil {
			return nil, err
		}
		s := &job.Session{Name: q.Name, By: by, Info: n.Info, Created: tx.Now()}
		tx.ForgetQueue(q.Name)
		tx.SeeQueue(q.Name)
		tx.Store().Durable()
		if err := tx.Store().Set(&q); err != nil {
			return nil, err
		}
		g.sessions.change(s)
		g.clients.hear(tx, &q)
		if err := g.shares.join(tx, s, &q); err != nil {
			return nil, err
		}
		return s, tx.Audit(by, "open session", subjectSession(q.Name), 0)
	})
}

// checkSession refuses settings that a session cannot have.
func checkSession(q *job.Queue) error { return cmp.Or(q.Grid.Check(), rule.CheckSession(q)) }

func subjectSession(name string) string { return "session " + name }

// ChangeSession changes the settings of a session; edit may run twice, and
// gets a copy of Grid of its own.
func (g *Grid) ChangeSession(ctx context.Context, name string, edit func(*job.Queue) error, by job.Actor) (SessionState, error) {
	return g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) {
		s, err := g.sessions.live(tx, name)
		if err != nil {
			return nil, err
		}
		old, err := tx.Queue(name)
		if err != nil {
			return nil, err
		}
		q, settings := *old, *old.Grid
		q.Grid = &settings
		if err := edit(&q); err != nil {
			return nil, err
		}
		q.Name = name
		if err := checkSession(&q); err != nil {
			return nil, err
		}
		tx.ForgetQueue(name)
		tx.Wake(name)
		tx.Store().Durable()
		if err := tx.Store().Set(&q); err != nil {
			return nil, err
		}
		if err := g.shares.change(tx, s, &q); err != nil {
			return nil, err
		}
		if q.Grid.ClientTimeout != old.Grid.ClientTimeout { // it has the new time from now
			g.clients.hear(tx, &q)
		}
		return s, tx.AuditQueue(by, old, &q)
	})
}

// CloseSession ends the submitting: the session is over when its last task is.
// Closing it again changes nothing.
func (g *Grid) CloseSession(ctx context.Context, name string, by job.Actor) (SessionState, error) {
	return g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) {
		old, err := g.clients.session(tx, name)
		if err != nil || old.State != job.SessionOpen {
			return old, err
		}
		s := *old
		s.State, s.Closed = job.SessionClosed, tx.Now()
		tx.Store().Durable()
		g.sessions.change(&s)
		return &s, tx.Audit(by, "close session", subjectSession(name), 0)
	})
}

// CancelSession gives up every task of a session that is not finished; who runs
// one is told. The clock does it, piece by piece, also after a restart. One that
// is over stays as it is.
func (g *Grid) CancelSession(ctx context.Context, name, why string, by job.Actor) (SessionState, error) {
	return g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) {
		s, err := g.sessions.find(tx, name)
		if err != nil || s.State >= job.SessionCancelling {
			return s, err
		}
		told := byPerson + cmp.Or(by.Name, "an operator")
		if why != "" {
			told += ": " + why
		}
		if s, err = g.sessions.cancel(tx, s, told); err != nil {
			return nil, err
		}
		return s, tx.Audit(by, "cancel session", subjectSession(name), s.Open())
	})
}

// byPerson begins what is said of a session that somebody cancelled, and not we.
const byPerson = "by "

func (g *sessions) cancel(tx *engine.Tx, old *job.Session, why string) (*job.Session, error) {
	s := *old
	if s.State = job.SessionCancelling; s.Closed == 0 {
		s.Closed = tx.Now()
	}
	s.Why = why
	tx.Store().Durable()
	g.sessions.change(&s)
	q, err := tx.Queue(s.Name)
	if err != nil {
		return nil, err
	}
	return &s, g.shares.change(tx, &s, q)
}

// DeleteSession forgets a session that is over, with its tasks and their
// results. The clock does it, piece by piece.
func (g *Grid) DeleteSession(ctx context.Context, name string, by job.Actor) error {
	_, err := g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) {
		old, err := g.sessions.find(tx, name)
		if err != nil {
			return nil, err
		}
		if !old.State.Ended() {
			return nil, job.Errorf(job.WrongState, "session %q is %s; cancel it first", name, old.State)
		}
		s := *old
		s.Dropped = true
		tx.Store().Durable()
		g.sessions.change(&s)
		return &s, tx.Audit(by, "delete session", subjectSession(name), s.Submitted)
	})
	return err
}

// Session returns one session, or NotFound.
func (g *Grid) Session(ctx context.Context, name string) (SessionState, error) {
	return g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) { return g.sessions.find(tx, name) })
}

// Sessions lists up to n sessions by name, those behind after.
func (g *Grid) Sessions(ctx context.Context, after string, n int) ([]SessionState, error) {
	var out []SessionState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		list, err := store.Rows[*job.Session](tx.Store(), after, n)
		out = make([]SessionState, 0, len(list))
		for _, s := range list {
			if err == nil {
				if staged := g.sessions.changed[s.Name]; staged != nil {
					s = staged
				}
				var state SessionState
				state, err = g.sessions.state(tx, s)
				out = append(out, state)
			}
		}
		return err
	})
	return engine.Answered(&out, err)
}

func (g *sessions) ask(ctx context.Context, f func(*engine.Tx) (*job.Session, error)) (SessionState, error) {
	var out SessionState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		s, err := f(tx)
		if err != nil {
			return err
		}
		out, err = g.sessions.state(tx, s)
		return err
	})
	return engine.Answered(&out, err)
}

func (g *sessions) state(tx *engine.Tx, s *job.Session) (SessionState, error) {
	shown, d := *s, tx.Store().Depth(s.Name)
	q, err := tx.Queue(s.Name)
	if err != nil {
		return SessionState{}, err
	}
	share, err := g.shares.of(tx, s)
	if err != nil {
		return SessionState{}, err
	}
	none, err := g.sight.stalled(tx, s, q, d)
	shown.Stalled = s.Stalled || none // excluded, or unfit
	return SessionState{
		Session: &shown, Settings: q, Depth: d, Share: share, Redundant: g.copies.of(tx, s.Name), ClientUntil: g.clients.until(tx, s, q),
	}, err
}

// find returns a session, or NotFound.
func (g *sessions) find(tx *engine.Tx, name string) (*job.Session, error) {
	if s := g.sessions.changed[name]; s != nil {
		return s, nil
	}
	s, err := store.Row[*job.Session](tx.Store(), name)
	if err != nil || s != nil {
		return s, err
	}
	return nil, &job.Error{Kind: job.NotFound, Field: "session", Text: fmt.Sprintf("session %q does not exist", name)}
}

// live returns a session that is not over and not about to be.
func (g *sessions) live(tx *engine.Tx, name string) (*job.Session, error) {
	s, err := g.sessions.find(tx, name)
	if err == nil && s.State >= job.SessionCancelling {
		return nil, job.Errorf(job.WrongState, "session %q is %s", name, s.State)
	}
	return s, err
}

// change notes a session as it shall be. It is written, and ends if it
// is over, when all commands of the transaction have run.
func (g *sessions) change(s *job.Session) {
	if g.sessions.changed == nil {
		g.sessions.changed = map[string]*job.Session{}
	}
	g.sessions.changed[s.Name] = s
}

// own returns a session as it shall be, to be changed.
func (g *sessions) own(tx *engine.Tx, name string) (*job.Session, error) {
	if s := g.sessions.changed[name]; s != nil {
		return s, nil
	}
	known, err := g.sessions.find(tx, name)
	if err != nil {
		return nil, err
	}
	s := *known
	g.sessions.change(&s)
	return &s, nil
}

// takes refuses a task that its session does not take in, and a job of
// another door in a session's queue.
func (g *sessions) takes(tx *engine.Tx, q *job.Queue, j *job.Job) error {
	if q.Grid == nil && j.Door != job.DoorGrid {
		return nil
	}
	if j.Door != job.DoorGrid {
		return &job.Error{Kind: job.WrongState, Field: "queue", Text: fmt.Sprintf("queue %q is a session; submit tasks to it", j.Queue)}
	}
	s, err := g.sessions.find(tx, j.Queue)
	if err != nil {
		return err
	}
	if s.State != job.SessionOpen {
		return &job.Error{
			Kind: job.WrongState, Field: "session",
			Text: fmt.Sprintf("session %q is %s and takes no more tasks; open another one", s.Name, s.State),
		}
	}
	return nil
}

// stepped has the rooms follow what a step did to a task.
func (g *sessions) stepped(tx *engine.Tx, c *rule.Command, old, j *job.Job, eff *rule.Effect) error {
	q, err := tx.Queue(j.Queue)
	if err != nil || rule.Misplaced(j, q) { // it is no task of a session any more
		return err
	}
	g.counts.task(tx, c, old, j, eff)
	if q.Grid.Redundancy != nil {
		g.copies.note(tx, q, c, old, j, eff)
	}
	if old.Affinity() != nil {
		if err := g.tags.followed(tx, old, j); err != nil {
			return err
		}
	}
	was, is := job.None, j.State
	if old != nil {
		was = old.State
	}
	if err := g.exclusions.judge(tx, q, c, j, eff); err != nil || was == is || was.Open() && is.Open() {
		return err
	}
	return g.sessions.count(tx, q, c, was, j, eff)
}

// count counts a task that came, ended or was brought back, and cancels its session where
// a failure does.
func (g *sessions) count(tx *engine.Tx, q *job.Queue, c *rule.Command, was job.State, j *job.Job, eff *rule.Effect) error {
	s, err := g.sessions.own(tx, j.Queue)
	if err != nil {
		return err
	}
	is := j.State
	switch {
	case was == job.None:
		s.Submitted++
	case is == job.Done:
		s.Done++
	case is == job.Dead && !rule.Fails(c):
		s.Cancelled++
	case is == job.Dead:
		s.Failed++
	case was == job.Dead: // revived
		s.Failed--
	}
	if s.Depends && !is.Open() && s.State < job.SessionCancelling {
		g.needs.over = append(g.needs.over, j.ID)
	}
	if is != job.Dead || !rule.Fails(c) || s.State >= job.SessionCancelling {
		return nil
	}
	if a := q.Grid.AutoCancel; rule.CancelsSession(a, eff.Failures) {
		_, err = g.sessions.cancel(tx, s, "task "+j.ID.String()+" failed, and auto_cancel is "+a.String())
	}
	return err
}

// keep ends the sessions that are over and writes those that changed.
func (g *sessions) keep(tx *engine.Tx) error {
	for _, name := range sortedKeys(g.sessions.changed) {
		s := g.sessions.changed[name]
		if s.Name == "" {
			continue // deleted
		}
		q, err := tx.Queue(name)
		if err != nil {
			return err
		}
		if s.State == job.SessionClosed && s.Open() == 0 || s.State == job.SessionCancelling && s.Open() == 0 {
			s.State, s.Ended = plan.EndOf(s), tx.Now()
			tx.Store().Durable()
		}
		s.Next = plan.SessionDue(s, q.Grid, tx.Now())
		if err := tx.Store().Set(s); err != nil {
			return err
		}
		if s.Next > 0 && s.Next <= tx.Now() {
			tx.More()
		}
		tx.Ring(name)
	}
	clear(g.sessions.changed)
	return nil
}

// due does what is due of a session.
func (g *sessions) due(tx *engine.Tx, t *job.Session) error {
	known, err := g.sessions.find(tx, t.Name)
	if err != nil {
		return err
	}
	s := *known
	q, err := tx.Queue(s.Name)
	if err != nil {
		return err
	}
	switch {
	case s.State == job.SessionCancelling:
		g.sessions.change(&s)
		return g.sessions.cancelTasks(tx, &s)
	case plan.SessionOutlived(&s, q.Grid, tx.Now()):
		return g.sessions.forget(tx, &s)
	}
	switch x := q.Grid.Exclusion; {
	case x == nil:
		s.Strikes, s.Stalled = nil, false
	case len(s.Strikes) > 0:
		if err := g.exclusions.exclude(tx, &s, x); err != nil {
			return err
		}
		tx.ServeAll()
	}
	if plan.ForgetsCollected(&s, q.Grid) {
		return g.sessions.forgetCollected(tx, &s)
	}
	g.sessions.change(&s)
	return nil
}

func (g *sessions) cancelTasks(tx *engine.Tx, s *job.Session) error {
	open := store.Filter{Queues: []string{s.Name}, States: []job.State{job.Scheduled, job.Ready, job.Leased}}
	list, err := tx.Store().List(open, sessionPage)
	if err != nil {
		return err
	}
	why := "its session was cancelled"
	if strings.HasPrefix(s.Why, byPerson) {
		why += " " + s.Why
	} else if s.Why != "" {
		why += ": " + s.Why
	}
	for _, j := range list {
		if _, err := tx.Step(j, rule.GiveUp(rule.ByPerson, why)); err != nil {
			return err
		}
	}
	return nil
}

// forget forgets tasks of a session whose time is over, and at last the
// session itself.
func (g *sessions) forget(tx *engine.Tx, s *job.Session) error {
	list, err := tx.Store().List(store.Filter{Queues: []string{s.Name}}, sessionPage)
	if err != nil {
		return err
	}
	for _, j := range list {
		if err := tx.Remove(j); err != nil {
			return err
		}
	}
	tx.Store().Durable()
	if len(list) == sessionPage {
		g.sessions.change(s)
		return nil
	}
	if s.Tags > 0 {
		if err := g.tags.forget(tx, s.Name); err != nil {
			return err
		}
	}
	if err := tx.Store().Unset(job.Sessions, s.Name); err != nil {
		return err
	}
	tx.ForgetQueue(s.Name)
	if err := tx.Store().Unset(job.Queues, s.Name); err != nil {
		return err
	}
	delete(g.sessions.changed, s.Name)
	tx.DropQueue(s.Name)
	g.sessions.dropped = append(g.sessions.dropped, s.Name)
	return g.shares.leave(tx, s.Name)
}

// forgetCollected forgets done tasks whose results were collected.
func (g *sessions) forgetCollected(tx *engine.Tx, s *job.Session) error {
	ids, err := tx.Store().IDs(store.Finished(s.Name, s.Forgotten), sessionPage)
	if err != nil {
		return err
	}
	s.Forgotten = max(s.Forgotten, s.Collected)
	for i, id := range ids {
		j, err := tx.Store().Get(id)
		if err != nil {
			return err
		}
		if j.Finished > s.Collected {
			break
		}
		if i == sessionPage-1 {
			s.Forgotten = j.Finished
		}
		if j.State == job.Done {
			if err := tx.Remove(j); err != nil {
				return err
			}
		}
	}
	g.sessions.change(s)
	return nil
}
