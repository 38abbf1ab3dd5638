package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// A session is a queue with grid settings (job.Grid) and a row that counts its
// tasks. Its tasks are put like any job, with Door grid, and go to engines only.

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
	Depth    Depth
	Share    int // slots it should have now

	ClientUntil job.Millis // date at which it is cancelled if nothing is heard of its client; 0 = it is not

	Redundant Redundant // what its copies came to since the server started
}

// OpenSession makes a session; Exists if its name is that of a queue in use.
func (e *Engine) OpenSession(ctx context.Context, n NewSession, by job.Actor) (SessionState, error) {
	return e.session(ctx, func(r *Tx) (*job.Session, error) {
		q := n.Queue
		if q.Grid == nil {
			return nil, job.Errorf(job.Invalid, "a session needs grid settings")
		}
		if err := checkSession(&q); err != nil {
			return nil, err
		}
		if q.Name == "" {
			q.Name = r.ids.Next(r.now).String()
		} else if err := r.noneInto(q.Name); err != nil {
			return nil, err
		}
		q.RetainDead = job.MaxMillis // with their session they are forgotten: others may need to know that they failed
		if r.c.queues[q.Name] || r.fresh[q.Name] {
			return nil, &job.Error{Kind: job.Exists, Field: "name", Text: fmt.Sprintf("there is a queue or session %q already", q.Name)}
		}
		if err := r.oneMoreQueue(0); err != nil {
			return nil, err
		}
		s := &job.Session{Name: q.Name, By: by, Info: n.Info, Created: r.now}
		r.forgetQueue(q.Name)
		r.SeeQueue(q.Name)
		r.tx.Durable()
		if err := r.tx.Set(&q); err != nil {
			return nil, err
		}
		r.changeSession(s)
		r.hear(&q)
		if err := r.joinShares(s, &q); err != nil {
			return nil, err
		}
		return s, r.Audit(by, "open session", subjectSession(q.Name), 0)
	})
}

// checkSession refuses settings that a session cannot have.
func checkSession(q *job.Queue) error { return cmp.Or(q.Grid.Check(), rule.CheckSession(q)) }

func subjectSession(name string) string { return "session " + name }

// ChangeSession changes the settings of a session; edit may run twice, and
// gets a copy of Grid of its own.
func (e *Engine) ChangeSession(ctx context.Context, name string, edit func(*job.Queue) error, by job.Actor) (SessionState, error) {
	return e.session(ctx, func(r *Tx) (*job.Session, error) {
		s, err := r.liveSession(name)
		if err != nil {
			return nil, err
		}
		old, err := r.Queue(name)
		if err != nil {
			return nil, err
		}
		q, g := *old, *old.Grid
		q.Grid = &g
		if err := edit(&q); err != nil {
			return nil, err
		}
		q.Name = name
		if err := checkSession(&q); err != nil {
			return nil, err
		}
		r.forgetQueue(name)
		r.woken[name] = true
		r.tx.Durable()
		if err := r.tx.Set(&q); err != nil {
			return nil, err
		}
		if err := r.changeShare(s, &q); err != nil {
			return nil, err
		}
		if q.Grid.ClientTimeout != old.Grid.ClientTimeout { // it has the new time from now
			r.hear(&q)
		}
		return s, r.auditQueue(by, old, &q)
	})
}

// CloseSession ends the submitting: the session is over when its last task is.
// Closing it again changes nothing.
func (e *Engine) CloseSession(ctx context.Context, name string, by job.Actor) (SessionState, error) {
	return e.session(ctx, func(r *Tx) (*job.Session, error) {
		old, err := r.heardSession(name)
		if err != nil || old.State != job.SessionOpen {
			return old, err
		}
		s := *old
		s.State, s.Closed = job.SessionClosed, r.now
		r.tx.Durable()
		r.changeSession(&s)
		return &s, r.Audit(by, "close session", subjectSession(name), 0)
	})
}

// CancelSession gives up every task of a session that is not finished; who runs
// one is told. The clock does it, piece by piece, also after a restart. One that
// is over stays as it is.
func (e *Engine) CancelSession(ctx context.Context, name, why string, by job.Actor) (SessionState, error) {
	return e.session(ctx, func(r *Tx) (*job.Session, error) {
		s, err := r.aSession(name)
		if err != nil || s.State >= job.SessionCancelling {
			return s, err
		}
		told := byPerson + cmp.Or(by.Name, "an operator")
		if why != "" {
			told += ": " + why
		}
		if s, err = r.cancelSession(s, told); err != nil {
			return nil, err
		}
		return s, r.Audit(by, "cancel session", subjectSession(name), s.Open())
	})
}

// byPerson begins what is said of a session that somebody cancelled, and not we.
const byPerson = "by "

func (r *Tx) cancelSession(old *job.Session, why string) (*job.Session, error) {
	s := *old
	if s.State = job.SessionCancelling; s.Closed == 0 {
		s.Closed = r.now
	}
	s.Why = why
	r.tx.Durable()
	r.changeSession(&s)
	q, err := r.Queue(s.Name)
	if err != nil {
		return nil, err
	}
	return &s, r.changeShare(&s, q)
}

// DeleteSession forgets a session that is over, with its tasks and their
// results. The clock does it, piece by piece.
func (e *Engine) DeleteSession(ctx context.Context, name string, by job.Actor) error {
	_, err := e.session(ctx, func(r *Tx) (*job.Session, error) {
		old, err := r.aSession(name)
		if err != nil {
			return nil, err
		}
		if !old.State.Ended() {
			return nil, job.Errorf(job.WrongState, "session %q is %s; cancel it first", name, old.State)
		}
		s := *old
		s.Dropped = true
		r.tx.Durable()
		r.changeSession(&s)
		return &s, r.Audit(by, "delete session", subjectSession(name), s.Submitted)
	})
	return err
}

// Session returns one session, or NotFound.
func (e *Engine) Session(ctx context.Context, name string) (SessionState, error) {
	return e.session(ctx, func(r *Tx) (*job.Session, error) { return r.aSession(name) })
}

// Sessions lists up to n sessions by name, those behind after.
func (e *Engine) Sessions(ctx context.Context, after string, n int) ([]SessionState, error) {
	var out []SessionState
	err := e.Do(ctx, 0, func(r *Tx) error {
		rows, err := r.tx.Rows(job.Sessions, after, n)
		out = make([]SessionState, 0, len(rows))
		for _, row := range rows {
			if err == nil {
				s, staged := r.sessions[row.Key()]
				if !staged {
					s = row.(*job.Session)
				}
				var state SessionState
				state, err = r.sessionState(s)
				out = append(out, state)
			}
		}
		return err
	})
	return Answered(&out, err)
}

func (e *Engine) session(ctx context.Context, f func(*Tx) (*job.Session, error)) (SessionState, error) {
	var out SessionState
	err := e.Do(ctx, 0, func(r *Tx) error {
		s, err := f(r)
		if err != nil {
			return err
		}
		out, err = r.sessionState(s)
		return err
	})
	return Answered(&out, err)
}

func (r *Tx) sessionState(s *job.Session) (SessionState, error) {
	shown, d := *s, r.tx.Depth(s.Name)
	q, err := r.Queue(s.Name)
	if err != nil {
		return SessionState{}, err
	}
	none, err := r.stalled(s, q, d)
	shown.Stalled = s.Stalled || none // excluded, or unfit
	return SessionState{
		Session: &shown, Settings: q, Depth: d, Share: r.shareOf(s.Name), Redundant: r.redundant(s.Name), ClientUntil: r.clientUntil(s, q),
	}, err
}

// aSession returns a session, or NotFound.
func (r *Tx) aSession(name string) (*job.Session, error) {
	if s := r.sessions[name]; s != nil {
		return s, nil
	}
	row, err := r.tx.Row(job.Sessions, name)
	if err != nil {
		return nil, err
	}
	if s, ok := row.(*job.Session); ok {
		return s, nil
	}
	return nil, &job.Error{Kind: job.NotFound, Field: "session", Text: fmt.Sprintf("session %q does not exist", name)}
}

// liveSession returns a session that is not over and not about to be.
func (r *Tx) liveSession(name string) (*job.Session, error) {
	s, err := r.aSession(name)
	if err == nil && s.State >= job.SessionCancelling {
		return nil, job.Errorf(job.WrongState, "session %q is %s", name, s.State)
	}
	return s, err
}

// changeSession notes a session as it shall be. It is written, and ends if it
// is over, when all commands of the transaction have run.
func (r *Tx) changeSession(s *job.Session) {
	if r.sessions == nil {
		r.sessions = map[string]*job.Session{}
	}
	r.sessions[s.Name] = s
}

// ownSession returns a session as it shall be, to be changed.
func (r *Tx) ownSession(name string) (*job.Session, error) {
	if s := r.sessions[name]; s != nil {
		return s, nil
	}
	known, err := r.aSession(name)
	if err != nil {
		return nil, err
	}
	s := *known
	r.changeSession(&s)
	return &s, nil
}

// submittable refuses a task that its session does not take in, and a job of
// another door in a session's queue.
func (r *Tx) submittable(j *job.Job) error {
	q, err := r.Queue(j.Queue)
	if err != nil {
		return err
	}
	if q.Turns && j.Door == job.DoorJobs {
		return r.notInbox(q)
	}
	if j.Door == job.DoorInbox && !q.Turns {
		return &job.Error{Kind: job.WrongState, Field: "queue", Text: fmt.Sprintf("queue %q is no inbox; `problem` of GET /inboxes/%s says why, or make it one with PUT", j.Queue, url.PathEscape(j.Queue))}
	}
	if q.Grid == nil && j.Door != job.DoorGrid {
		return nil
	}
	if j.Door != job.DoorGrid {
		return &job.Error{Kind: job.WrongState, Field: "queue", Text: fmt.Sprintf("queue %q is a session; submit tasks to it", j.Queue)}
	}
	s, err := r.aSession(j.Queue)
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

// tally counts what a step did to a task, and cancels its session where a
// failure does.
func (r *Tx) tally(c *rule.Command, old *job.Job, eff *rule.Effect) error {
	j := eff.Job
	if j == nil {
		j = eff.Left
	}
	if j == nil || j.Door != job.DoorGrid {
		return nil
	}
	q, err := r.Queue(j.Queue)
	if err != nil || rule.Misplaced(j, q) { // it is no task of a session any more
		return err
	}
	r.noteTask(c, old, j, eff)
	if q.Grid.Redundancy != nil {
		r.pace(q, c, old, j, eff)
	}
	if old.Affinity() != nil {
		if err := r.followed(old, j); err != nil {
			return err
		}
	}
	was, is := job.None, j.State
	if old != nil {
		was = old.State
	}
	if err := r.judgeEngines(q, c, j, eff); err != nil {
		return err
	}
	if was == is || was.Open() && is.Open() {
		return nil
	}
	s, err := r.ownSession(j.Queue)
	if err != nil {
		return err
	}
	switch {
	case was == job.None:
		s.Submitted++
	case is == job.Done:
		s.Done++
	case is == job.Dead && cancelled(c):
		s.Cancelled++
	case is == job.Dead:
		s.Failed++
	case was == job.Dead: // revived
		s.Failed--
	}
	if s.Depends && !is.Open() && s.State < job.SessionCancelling {
		r.over = append(r.over, j.ID)
	}
	if is != job.Dead || cancelled(c) || s.State >= job.SessionCancelling {
		return nil
	}
	n := len(eff.Failures)
	if a := q.Grid.AutoCancel; a == job.AutoCancelAlways || a == job.AutoCancelLibload && n > 0 && eff.Failures[n-1].Type == job.LoadError {
		_, err = r.cancelSession(s, "task "+j.ID.String()+" failed, and auto_cancel is "+a.String())
	}
	return err
}

// cancelled tells what a person or a session gave up from what failed.
func cancelled(c *rule.Command) bool { return c.Verb == rule.Cancel && c.Reason == job.Alive }

// keepSessions ends the sessions that are over and writes those that changed.
func (r *Tx) keepSessions() error {
	for _, name := range sortedKeys(r.sessions) {
		s := r.sessions[name]
		if s.Name == "" {
			continue // deleted
		}
		q, err := r.Queue(name)
		if err != nil {
			return err
		}
		if s.State == job.SessionClosed && s.Open() == 0 || s.State == job.SessionCancelling && s.Open() == 0 {
			s.State, s.Ended = rule.EndOf(s), r.now
			r.tx.Durable()
		}
		s.Next = rule.SessionDue(s, q.Grid, r.now)
		if err := r.tx.Set(s); err != nil {
			return err
		}
		r.ticked = r.ticked || s.Next > 0 && s.Next <= r.now
		r.news = append(r.news, name)
	}
	clear(r.sessions)
	return nil
}

// turnSession does what the clock owes a session.
func (r *Tx) turnSession(t *job.Session) error {
	known, err := r.aSession(t.Name)
	if err != nil {
		return err
	}
	s := *known
	q, err := r.Queue(s.Name)
	if err != nil {
		return err
	}
	switch {
	case s.State == job.SessionCancelling:
		r.changeSession(&s)
		return r.cancelTasks(&s)
	case rule.SessionOutlived(&s, q.Grid, r.now):
		return r.forgetSession(&s)
	}
	switch g := q.Grid; {
	case g.Exclusion == nil:
		s.Strikes, s.Stalled = nil, false
	case len(s.Strikes) > 0:
		if err := r.exclude(&s, g.Exclusion); err != nil {
			return err
		}
		r.fed = true
	}
	if rule.ForgetsCollected(&s, q.Grid) {
		return r.forgetCollected(&s)
	}
	r.changeSession(&s)
	return nil
}

func (r *Tx) cancelTasks(s *job.Session) error {
	open := store.Filter{Queues: []string{s.Name}, States: []job.State{job.Scheduled, job.Ready, job.Leased}}
	list, err := r.tx.List(open, sessionPage)
	if err != nil {
		return err
	}
	f := job.Failure{Type: "Cancelled", Message: "its session was cancelled"}
	if strings.HasPrefix(s.Why, byPerson) {
		f.Message += " " + s.Why
	} else if s.Why != "" {
		f.Message += ": " + s.Why
	}
	for _, j := range list {
		if _, err := r.Step(j, rule.Command{Verb: rule.Cancel, Failure: f}); err != nil {
			return err
		}
	}
	return nil
}

// forgetSession forgets tasks of a session whose time is over, and at last the
// session itself.
func (r *Tx) forgetSession(s *job.Session) error {
	list, err := r.tx.List(store.Filter{Queues: []string{s.Name}}, sessionPage)
	if err != nil {
		return err
	}
	for _, j := range list {
		if err := r.remove(j); err != nil {
			return err
		}
	}
	r.tx.Durable()
	if len(list) == sessionPage {
		r.changeSession(s)
		return nil
	}
	if s.Tags > 0 {
		if err := r.forgetTags(s.Name); err != nil {
			return err
		}
	}
	if err := r.tx.Unset(job.Sessions, s.Name); err != nil {
		return err
	}
	r.forgetQueue(s.Name)
	if err := r.tx.Unset(job.Queues, s.Name); err != nil {
		return err
	}
	delete(r.sessions, s.Name)
	if r.dropped == nil {
		r.dropped = map[string]bool{}
	}
	r.dropped[s.Name] = true
	return r.leaveShares(s.Name)
}

// forgetCollected forgets done tasks whose results were collected.
func (r *Tx) forgetCollected(s *job.Session) error {
	ids, err := r.tx.Finished(s.Name, s.Forgotten, sessionPage)
	if err != nil {
		return err
	}
	s.Forgotten = max(s.Forgotten, s.Collected)
	for i, id := range ids {
		j, err := r.tx.Get(id)
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
			if err := r.remove(j); err != nil {
				return err
			}
		}
	}
	r.changeSession(s)
	return nil
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
func (e *Engine) Results(ctx context.Context, name string, after int64, n int) (list []Result, s *job.Session, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		row, err := v.Row(job.Sessions, name)
		if err != nil {
			return err
		}
		known, ok := row.(*job.Session)
		if !ok {
			return &job.Error{Kind: job.NotFound, Field: "session", Text: fmt.Sprintf("session %q does not exist", name)}
		}
		q, err := queueOf(v, name)
		if s = known; err != nil || q.Grid == nil || q.Grid.Collection == job.CollectAfterSubmit && s.State == job.SessionOpen {
			return err
		}
		ids, err := v.Finished(name, after, n)
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
func (e *Engine) Collected(ctx context.Context, name string, upTo int64) (SessionState, error) {
	return e.session(ctx, func(r *Tx) (*job.Session, error) {
		old, err := r.heardSession(name)
		if err != nil || upTo <= old.Collected {
			return old, err
		}
		if last := r.seq.next - 1; upTo > last {
			return nil, &job.Error{
				Kind: job.Invalid, Field: "cursor",
				Text: "cursor " + strconv.FormatInt(upTo, 10) + " was not given out; use one of a result",
			}
		}
		s := *old
		s.Collected = upTo
		r.tx.Durable()
		r.changeSession(&s)
		return &s, nil
	})
}
