package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// The calls of drivers: sessions, their tasks and results. What they mean is
// internal/door/grid's and the engine's.

var (
	oneSession = &resource{get: (*handler).showSession, patch: (*handler).changeSession, del: (*handler).endSession}
	ofSession  = map[string]*resource{
		"tasks":     {post: (*handler).submit},
		"close":     {post: (*handler).closeSession},
		"results":   {get: (*handler).results, stream: true},
		"collected": {post: (*handler).collected},

		"exclusions": {del: (*handler).clearExclusions},
	}
	oneTask     = &resource{get: (*handler).showTask}
	explainTask = &resource{get: (*handler).explainTask}
	commitTask  = &resource{post: (*handler).tryCommit}
)

// sessionPage bounds GET /sessions and GET /engines.
const (
	gridPage    = 100
	gridPageMax = 1000
)

// sendSession answers with a whole session.
func (h *handler) sendSession(w http.ResponseWriter, status int, s engine.SessionState) error {
	body, err := json.Marshal(grid.SessionOf(s, true), json.Deterministic(true))
	if err == nil {
		send(w, status, body)
	}
	return err
}

// openSession is POST /sessions: 201 for a new one, 200 for one that the same
// request opened before.
func (h *handler) openSession(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		var ask wire.OpenSession
		if err := optional(s, &ask); err != nil {
			return err
		}
		n, err := h.grid.Open(ask)
		if err == nil {
			err = h.reachQueues(r, "", 1, func(int) string { return ask.ID })
		}
		if err != nil {
			return err
		}
		opened, err := h.engine.OpenSession(r.Context(), n, by)
		if err == nil {
			return h.sendSession(w, http.StatusCreated, opened)
		}
		if job.KindOf(err) != job.Exists {
			return err
		}
		known, unknown := h.engine.Session(r.Context(), ask.ID)
		switch {
		case unknown != nil:
			return &job.Error{Kind: job.Exists, Field: "id", Text: "id " + strconv.Quote(ask.ID) + " is the name of a queue; take another one"}
		case !grid.Same(n, known):
			return &job.Error{Kind: job.Exists, Field: "id", Text: "session " + strconv.Quote(ask.ID) + " was opened with another service or other options; take another id, or GET it and go on"}
		}
		if _, err := h.engine.Heard(r.Context(), ask.ID); err != nil {
			return err
		}
		return h.sendSession(w, http.StatusOK, known)
	})
}

// sessions is GET /sessions, a page by name.
func (h *handler) sessions(w http.ResponseWriter, r *http.Request, _, _ string) {
	after, limit, err := pageOf(r)
	out := wire.Sessions{Sessions: []wire.Session{}}
	g := h.limited(r)
	for more := err == nil; more; {
		var list []engine.SessionState
		list, err = h.engine.Sessions(r.Context(), after, limit)
		for _, s := range list {
			if after = s.Name; len(out.Sessions) < limit && (g == nil || g.Reaches(after)) {
				out.Sessions, out.Next = append(out.Sessions, grid.SessionOf(s, false)), after
			}
		}
		more = err == nil && len(list) == limit && len(out.Sessions) < limit
	}
	if len(out.Sessions) < limit {
		out.Next = "" // there are no more
	}
	h.sendPlain(w, r, out, err)
}

// pageOf reads the parameters of a page: the name to go on behind, and how many.
func pageOf(r *http.Request) (after string, limit int, err error) {
	values, err := jobs.Params(r.URL.RawQuery, "", "after", "limit")
	if err != nil {
		return "", 0, err
	}
	limit, err = whole(values.Get("limit"), "limit", gridPage, 1, gridPageMax)
	return values.Get("after"), limit, err
}

// whole reads a number of a query.
func whole(text, name string, otherwise, least, most int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		n = least - 1
	}
	return n, within(name, int64(n), int64(least), int64(most))
}

// showSession is GET /sessions/{id}.
func (h *handler) showSession(w http.ResponseWriter, r *http.Request, id, _ string) {
	s, err := h.engine.Session(r.Context(), id)
	if err == nil {
		err = h.sendSession(w, http.StatusOK, s)
	}
	if err != nil {
		h.problem(w, r, err)
	}
}

// changeSession is PATCH /sessions/{id}.
func (h *handler) changeSession(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		var ask wire.ChangeSession
		if err := plain(s.Body.Bytes(), &ask, true); err != nil {
			return err
		}
		known, err := h.engine.Session(r.Context(), id)
		if err != nil {
			return err
		}
		edit, err := grid.Change(ask, known)
		if err != nil {
			return err
		}
		changed, err := h.engine.ChangeSession(r.Context(), id, edit, by)
		if err != nil {
			return err
		}
		return h.sendSession(w, http.StatusOK, changed)
	})
}

// endSession is DELETE /sessions/{id}, which cancels it, and with ?forget=true
// forgets one that is over.
func (h *handler) endSession(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.rebinding(w, r, func(_ *scratch, by job.Actor) error {
		values, err := jobs.Params(r.URL.RawQuery, "", "forget")
		if err != nil {
			return err
		}
		switch values.Get("forget") {
		case "", "false":
			s, err := h.engine.CancelSession(r.Context(), id, "", by)
			if err != nil {
				return err
			}
			return h.sendSession(w, http.StatusOK, s)
		case "true":
			if err := h.engine.DeleteSession(r.Context(), id, by); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return &job.Error{Kind: job.Invalid, Field: "forget", Text: "forget must be true or false"}
	})
}

// submit is POST /sessions/{id}/tasks, all or nothing.
func (h *handler) submit(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		var ask wire.Tasks
		if err := jobs.ReadPlain(s.Body.Bytes(), &ask, true); err != nil {
			return err
		}
		list, err := h.grid.Tasks(id, ask)
		if err != nil {
			return err
		}
		added, err := h.engine.Put(r.Context(), list)
		if err != nil {
			return grid.Refused(err)
		}
		out := grid.Added(ask.Tasks, list, added)
		status := http.StatusCreated
		if out.Added == 0 {
			status = http.StatusOK
		}
		h.sendPlainAs(w, r, status, out)
		return nil
	})
}

// closeSession is POST /sessions/{id}/close.
func (h *handler) closeSession(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.rebinding(w, r, func(_ *scratch, by job.Actor) error {
		s, err := h.engine.CloseSession(r.Context(), id, by)
		if err != nil {
			return err
		}
		return h.sendSession(w, http.StatusOK, s)
	})
}

// clearExclusions is DELETE /sessions/{id}/exclusions, or of one engine with
// ?engine=ID.
func (h *handler) clearExclusions(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.rebinding(w, r, func(_ *scratch, by job.Actor) error {
		values, err := jobs.Params(r.URL.RawQuery, "", "engine")
		if err != nil {
			return err
		}
		s, err := h.engine.ClearExclusions(r.Context(), id, values.Get("engine"), by)
		if err != nil {
			return err
		}
		return h.sendSession(w, http.StatusOK, s)
	})
}

// collected is POST /sessions/{id}/collected.
func (h *handler) collected(w http.ResponseWriter, r *http.Request, id, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		var ask wire.Collected
		if err := plain(s.Body.Bytes(), &ask, true); err != nil {
			return err
		}
		if ask.Cursor < 0 {
			return &job.Error{Kind: job.Invalid, Field: "cursor", Text: "cursor must be one that a result or a page of results had"}
		}
		if _, err := h.engine.Collected(r.Context(), id, ask.Cursor); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// taskID finds a task of a session by its id or by the driver's number of it.
func (h *handler) taskID(ctx context.Context, session, task string) (job.ID, error) {
	if id, err := job.ParseID(task); err == nil {
		return id, nil
	}
	if _, err := strconv.ParseUint(task, 10, 63); err != nil {
		return job.ID{}, noTask(session, task)
	}
	return h.engine.TaskID(ctx, session, strings.TrimLeft(task, "0"))
}

func noTask(session, task string) error {
	return &job.Error{Kind: job.NotFound, Field: "task", Text: "session " + session + " has no task " + strconv.Quote(task)}
}

// task reads a task, and whether it is one of the session.
func (h *handler) task(ctx context.Context, session, task string) (engine.Listed, error) {
	if _, err := h.engine.Session(ctx, session); err != nil {
		return engine.Listed{}, err
	}
	id, err := h.taskID(ctx, session, task)
	var l engine.Listed
	if err == nil {
		l.Job, l.Payload, err = h.engine.Get(ctx, id)
	}
	if err == nil && l.Job.Queue != session || job.KindOf(err) == job.NotFound {
		err = noTask(session, task)
	}
	return l, err
}

// taskErrors bounds the failures that a task tells.
const taskErrors = 20

// showTask is GET /sessions/{id}/tasks/{task}.
func (h *handler) showTask(w http.ResponseWriter, r *http.Request, session, task string) {
	l, err := h.task(r.Context(), session, task)
	var history []job.Failure
	var result []byte
	if err == nil {
		history, err = h.engine.Failures(r.Context(), l.Job.ID, 0, true, taskErrors)
	}
	if err == nil {
		result, err = h.engine.Result(l.Job)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	h.sendPlain(w, r, grid.TaskOf(l, result, history), nil)
}

// explainTask is GET /sessions/{id}/tasks/{task}/explain.
func (h *handler) explainTask(w http.ResponseWriter, r *http.Request, session, task string) {
	l, err := h.task(r.Context(), session, task)
	var e engine.Explanation
	if err == nil {
		e, err = h.engine.Explain(r.Context(), l.Job.ID)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	h.sendPlain(w, r, h.explained(e), nil)
}

// resultsAsk is what GET /sessions/{id}/results asks for.
type resultsAsk struct {
	after int64
	limit int
	wait  time.Duration

	within job.Millis // the client_timeout of the session; 0 = it has none
}

func readResults(r *http.Request) (a resultsAsk, err error) {
	values, err := jobs.Params(r.URL.RawQuery, "", "after", "limit", "wait_ms")
	if err != nil {
		return a, err
	}
	if text := values.Get("after"); text != "" {
		if a.after, err = strconv.ParseInt(text, 10, 64); err != nil || a.after < 0 {
			return a, &job.Error{Kind: job.Invalid, Field: "after", Text: "after must be the cursor of a result, or 0"}
		}
	}
	limit, bad := whole(values.Get("limit"), "limit", 1000, 1, grid.ResultsMax)
	wait, late := whole(values.Get("wait_ms"), "wait_ms", 0, 0, int(leaseWaitMax.Milliseconds()))
	a.limit, a.wait = limit, time.Duration(wait)*time.Millisecond
	return a, cmp.Or(bad, late)
}

// results is GET /sessions/{id}/results: a page, for which it waits if it is
// asked to, or with Accept: application/x-ndjson a line for each result until the
// session is over.
func (h *handler) results(w http.ResponseWriter, r *http.Request, id, _ string) {
	streams := names(r.Header["Accept"], mediaNDJSON)
	if !streams {
		var ok bool
		if w, ok = negotiate(w, r); !ok {
			return
		}
	}
	ask, err := readResults(r)
	if err == nil {
		ask.within, err = h.engine.Heard(r.Context(), id) // what is not there has no news
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if streams {
		h.streamResults(w, r, id, ask)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), max(ask.wait, time.Millisecond))
	defer cancel()
	room := h.room(r)
	defer room.leave()
	page, err := h.nextResults(ctx, r.Context(), id, ask, room)
	h.sendPlain(w, r, page, err)
}

// nextResults reads the next page, and waits until there is one, the session is
// over or wait ends.
func (h *handler) nextResults(wait, ctx context.Context, id string, ask resultsAsk, room *room) (wire.TaskResults, error) {
	for {
		news := h.engine.SessionNews(id)
		list, s, more, err := h.engine.Collect(ctx, id, ask.after, ask.limit, room.take)
		if err != nil {
			return wire.TaskResults{}, err
		}
		page := wire.TaskResults{Results: make([]wire.TaskResult, len(list)), Next: ask.after}
		for i, one := range list {
			page.Results[i] = grid.ResultOf(one, one.Payload)
			page.Next = one.Number
		}
		page.Ended = s.State.Ended() && !more
		if len(list) > 0 || page.Ended {
			return page, nil
		}
		if over, err := h.waitNews(wait, id, news, &ask); over || err != nil {
			return page, err
		}
		if err := h.engine.Ready(); err != nil { // all news end with a stop
			return page, err
		}
	}
}

// streamResults writes a line for each result, an empty one as a sign of life,
// and a last one that says that nothing follows.
func (h *handler) streamResults(w http.ResponseWriter, r *http.Request, id string, ask resultsAsk) {
	out := newLine(w, r, &lines)
	if r.Method == http.MethodHead || !out.write(nil) {
		return
	}
	for {
		wait, cancel := context.WithTimeout(r.Context(), h.heartbeat)
		room := h.room(r)
		page, err := h.nextResults(wait, r.Context(), id, ask, room)
		cancel()
		if err != nil || r.Context().Err() != nil {
			room.leave()
			return
		}
		s := scratches.Get().(*scratch)
		for i := range page.Results {
			line, err := json.Marshal(&page.Results[i])
			if err != nil {
				line = []byte(`{}`)
			}
			s.out = append(append(s.out, line...), '\n')
		}
		if page.Ended {
			s.out = append(append(s.out, `{"ended":true,"cursor":`...), strconv.FormatInt(page.Next, 10)...)
			s.out = append(s.out, "}\n"...)
		}
		if len(s.out) == 0 {
			s.out = append(s.out, '\n')
		}
		ok := out.write(s.out)
		s.release(false)
		room.leave()
		if ask.after = page.Next; !ok || page.Ended {
			return
		}
	}
}

// findGrid routes below /sessions and /engines.
func findGrid(seg []string) (res *resource, id, sub string) {
	of, one := ofSession, oneSession
	if seg[1] == "engines" {
		of, one = ofEngine, oneEngine
	}
	switch {
	case len(seg) == 3:
		return one, seg[2], ""
	case len(seg) == 4:
		return of[seg[3]], seg[2], ""
	case seg[1] == "sessions" && len(seg) == 5 && seg[3] == "tasks":
		return oneTask, seg[2], seg[4]
	case seg[1] == "sessions" && len(seg) == 6 && seg[3] == "tasks" && seg[5] == "explain":
		return explainTask, seg[2], seg[4]
	case seg[1] == "sessions" && len(seg) == 6 && seg[3] == "tasks" && seg[5] == "try_commit":
		return commitTask, seg[2], seg[4]
	}
	return nil, "", ""
}
