package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// The calls of drivers: sessions, their tasks and results. What they mean is
// internal/door/grid's and the engine's.

// gridRoom serves drivers and engines.
type gridRoom struct {
	*core
	grid grid.Config
}

func newGridRoom(c *core, o *Options) *gridRoom {
	if o.Grid != nil {
		return &gridRoom{c, *o.Grid}
	}
	return &gridRoom{c, grid.DefaultConfig()}
}

func (h *gridRoom) routes() []route {
	const one, task = "/sessions/{id}", "/sessions/{id}/tasks/{task}"
	const driver, engine = reads | enqueues, "/engines/{id}"
	return []route{
		get("/sessions", reads, ownOnly, h.bare(h.list)),
		post("/sessions", enqueues, handlerAsks, optional(asking(h.core, ifGiven, fromBody(h.grid.Open), h.open))),
		get(one, driver, pathQueue, h.bare(h.show)),
		patch(one, operates|enqueues, pathQueue, strictly(h.core, h.change, func(_ *call, b *wire.ChangeSession) error { return grid.WrongChange(b) })),
		del(one, operates|enqueues, pathQueue, h.bare(h.end)),
		post(one+"/tasks", enqueues, pathQueue, h.raw(h.submit)),
		post(one+"/close", enqueues, pathQueue, h.bare(h.close)),
		get(one+"/results", driver, pathQueue, endpoint{serve: h.results}).streaming(),
		post(one+"/collected", enqueues, pathQueue, strictly(h.core, h.collected)),
		del(one+"/exclusions", operates|enqueues, pathQueue, h.bare(h.clearExclusions)),
		get(task, driver, pathQueue, h.bare(h.showTask)),
		get(task+"/explain", driver, pathQueue, h.bare(h.explainTask)),
		post(task+"/try_commit", works, pathQueue, strictly(h.core, h.tryCommit)),
		get("/engines", reads, wholeServer, h.bare(h.engines)),
		post("/engines", works, ownNames, asking(h.core, plain, func(_ *call, b *wire.Login) (gridpart.Login, error) { return grid.Login(*b, nameOf(b)) }, h.login)),
		get(engine, reads|works, ownNames, h.bare(h.showEngine)),
		post(engine+"/heartbeat", works, ownNames, asking(h.core, plain, fromBody(grid.Heartbeat), h.heartbeatOf)),
		post(engine+"/drain", works|operates, ownNames, optionally(h.core, h.drain)),
		post(engine+"/logoff", works|operates, ownNames, optionally(h.core, h.logoff)),
	}
}

// gridPage bounds GET /sessions and GET /engines.
const (
	gridPage    = 100
	gridPageMax = 1000
)

// session answers with a whole session.
var session = shown(func(s gridpart.SessionState) wire.Session { return grid.SessionOf(s, true) })

// open is POST /sessions: 201 for a new one, 200 for one that the same request
// opened before.
func (h *gridRoom) open(c *call, n gridpart.NewSession) (any, error) {
	id := n.Queue.Name
	if err := h.reachQueues(c.Request, "", 1, func(int) string { return id }); err != nil {
		return nil, err
	}
	opened, err := h.engine.Grid.OpenSession(c.Context(), n, c.by)
	if job.KindOf(err) != job.Exists {
		return c.made(session(opened, err))
	}
	known, unknown := h.engine.Grid.Session(c.Context(), id)
	switch {
	case unknown != nil:
		return nil, &job.Error{Kind: job.Exists, Field: "id", Text: "id " + strconv.Quote(id) + " is the name of a queue; take another one"}
	case !grid.Same(n, known):
		return nil, &job.Error{Kind: job.Exists, Field: "id", Text: "session " + strconv.Quote(id) + " was opened with another service or other options; take another id, or GET it and go on"}
	}
	_, err = h.engine.Grid.Heard(c.Context(), id)
	return session(known, err)
}

// list is GET /sessions, a page by name.
func (h *gridRoom) list(c *call) (any, error) {
	after, limit, err := pageOf(c.Request)
	out := wire.Sessions{Sessions: []wire.Session{}}
	g := h.limited(c.Request)
	for more := err == nil; more; {
		var list []gridpart.SessionState
		list, err = h.engine.Grid.Sessions(c.Context(), after, limit)
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
	return out, err
}

// pageOf reads the parameters of a page: the name to go on behind, and how many.
func pageOf(r *http.Request) (after string, limit int, err error) {
	values, err := strict.Params(r.URL.RawQuery, "", "after", "limit")
	if err != nil {
		return "", 0, err
	}
	limit, err = strict.Whole(values, "limit", gridPage, 1, gridPageMax)
	return values.Get("after"), limit, err
}

// show is GET /sessions/{id}.
func (h *gridRoom) show(c *call) (any, error) {
	return session(h.engine.Grid.Session(c.Context(), c.id))
}

// change is PATCH /sessions/{id}.
func (h *gridRoom) change(c *call, ask *wire.ChangeSession) (any, error) {
	known, err := h.engine.Grid.Session(c.Context(), c.id)
	if err != nil {
		return nil, err
	}
	edit, err := grid.Change(*ask, known)
	if err != nil {
		return nil, jobs.OneRefusal(err)
	}
	return session(h.engine.Grid.ChangeSession(c.Context(), c.id, edit, c.by))
}

// end is DELETE /sessions/{id}, which cancels it, and with ?forget=true forgets
// one that is over.
func (h *gridRoom) end(c *call) (any, error) {
	values, err := strict.Params(c.URL.RawQuery, "", "forget")
	if err != nil {
		return nil, err
	}
	switch values.Get("forget") {
	case "", "false":
		return session(h.engine.Grid.CancelSession(c.Context(), c.id, "", c.by))
	case "true":
		return nil, h.engine.Grid.DeleteSession(c.Context(), c.id, c.by)
	}
	return nil, &job.Error{Kind: job.Invalid, Field: "forget", Text: "forget must be true or false"}
}

// submit is POST /sessions/{id}/tasks, all or nothing.
func (h *gridRoom) submit(c *call) (any, error) {
	var ask wire.Tasks
	if err := jobs.ReadPlain(c.s.Body.Bytes(), &ask); err != nil {
		return nil, err
	}
	list, err := h.grid.Tasks(c.id, ask)
	if err != nil {
		return nil, err
	}
	added, err := h.engine.Put(c.Context(), list)
	if err != nil {
		return nil, grid.Refused(err)
	}
	out := grid.Added(ask.Tasks, list, added)
	if out.Added > 0 {
		c.status = http.StatusCreated
	}
	return out, nil
}

// close is POST /sessions/{id}/close.
func (h *gridRoom) close(c *call) (any, error) {
	return session(h.engine.Grid.CloseSession(c.Context(), c.id, c.by))
}

// clearExclusions is DELETE /sessions/{id}/exclusions, or of one engine with
// ?engine=ID.
func (h *gridRoom) clearExclusions(c *call) (any, error) {
	values, err := strict.Params(c.URL.RawQuery, "", "engine")
	if err != nil {
		return nil, err
	}
	return session(h.engine.Grid.ClearExclusions(c.Context(), c.id, values.Get("engine"), c.by))
}

// collected is POST /sessions/{id}/collected.
func (h *gridRoom) collected(c *call, ask *wire.Collected) (any, error) {
	if ask.Cursor < 0 {
		return nil, &job.Error{Kind: job.Invalid, Field: "cursor", Text: "cursor must be one that a result or a page of results had"}
	}
	_, err := h.engine.Grid.Collected(c.Context(), c.id, ask.Cursor)
	return nil, err
}

// taskID finds a task of a session by its id or by the driver's number of it.
func (h *gridRoom) taskID(ctx context.Context, session, task string) (job.ID, error) {
	if id, err := job.ParseID(task); err == nil {
		return id, nil
	}
	if _, err := strconv.ParseUint(task, 10, 63); err != nil {
		return job.ID{}, noTask(session, task)
	}
	return h.engine.Grid.TaskID(ctx, session, strings.TrimLeft(task, "0"))
}

func noTask(session, task string) error {
	return &job.Error{Kind: job.NotFound, Field: "task", Text: "session " + session + " has no task " + strconv.Quote(task)}
}

// task reads a task, and whether it is one of the session.
func (h *gridRoom) task(ctx context.Context, session, task string) (query.Listed, error) {
	if _, err := h.engine.Grid.Session(ctx, session); err != nil {
		return query.Listed{}, err
	}
	id, err := h.taskID(ctx, session, task)
	var l query.Listed
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
func (h *gridRoom) showTask(c *call) (any, error) {
	l, err := h.task(c.Context(), c.id, c.sub)
	if err != nil {
		return nil, err
	}
	history, err := h.engine.Failures(c.Context(), l.Job.ID, 0, true, taskErrors)
	if err != nil {
		return nil, err
	}
	result, err := h.engine.Result(l.Job)
	return grid.TaskOf(l, result, history), err
}

// explainTask is GET /sessions/{id}/tasks/{task}/explain.
func (h *gridRoom) explainTask(c *call) (any, error) {
	l, err := h.task(c.Context(), c.id, c.sub)
	if err != nil {
		return nil, err
	}
	e, err := h.engine.Explain(c.Context(), l.Job.ID)
	if err != nil {
		return nil, err
	}
	return h.explained(e), nil
}

// tryCommit is POST /sessions/{id}/tasks/{task}/try_commit. No is an answer, too.
func (h *gridRoom) tryCommit(c *call, ask *wire.TryCommit) (any, error) {
	token, err := job.ParseToken(ask.Lease)
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Field: "lease", Text: "lease must be the token of the attempt: " + err.Error()}
	}
	id, err := h.taskID(c.Context(), c.id, c.sub)
	if err != nil {
		return nil, err
	}
	yes, state, err := h.engine.Grid.TryCommit(c.Context(), c.id, id, token)
	return wire.Committed{Committed: yes, State: grid.StateOf(state)}, err
}

// resultsAsk is what GET /sessions/{id}/results asks for.
type resultsAsk struct {
	after int64
	limit int
	wait  time.Duration

	within job.Millis // the client_timeout of the session; 0 = it has none
}

func readResults(r *http.Request) (a resultsAsk, err error) {
	values, err := strict.Params(r.URL.RawQuery, "", "after", "limit", "wait_ms")
	if err != nil {
		return a, err
	}
	if text := values.Get("after"); text != "" {
		if a.after, err = strconv.ParseInt(text, 10, 64); err != nil || a.after < 0 {
			return a, &job.Error{Kind: job.Invalid, Field: "after", Text: "after must be the cursor of a result, or 0"}
		}
	}
	limit, bad := strict.Whole(values, "limit", 1000, 1, grid.ResultsMax)
	wait, late := strict.Whole(values, "wait_ms", 0, 0, int(leaseWaitMax.Milliseconds()))
	a.limit, a.wait = limit, time.Duration(wait)*time.Millisecond
	return a, cmp.Or(bad, late)
}

// results is GET /sessions/{id}/results: a page, for which it waits if it is
// asked to, or with Accept: application/x-ndjson a line for each result until the
// session is over.
func (h *gridRoom) results(w http.ResponseWriter, r *http.Request, id, _ string) {
	streams := names(r.Header["Accept"], mediaNDJSON)
	if !streams {
		var ok bool
		if w, ok = negotiate(w, r); !ok {
			return
		}
	}
	ask, err := readResults(r)
	if err == nil {
		ask.within, err = h.engine.Grid.Heard(r.Context(), id) // what is not there has no news
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
	if err == nil {
		err = (&call{w: w}).answer(page)
	}
	if err != nil {
		h.problem(w, r, err)
	}
}

// nextResults reads the next page, and waits until there is one, the session is
// over or wait ends.
func (h *gridRoom) nextResults(wait, ctx context.Context, id string, ask resultsAsk, room *room) (wire.TaskResults, error) {
	for {
		news := h.engine.News(id)
		list, s, more, err := h.engine.Grid.Collect(ctx, id, ask.after, ask.limit, room.take)
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
func (h *gridRoom) streamResults(w http.ResponseWriter, r *http.Request, id string, ask resultsAsk) {
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
			var line []byte
			if line, err = encode(&page.Results[i]); err != nil {
				err = fmt.Errorf("the result with the cursor %d: %w", page.Results[i].Cursor, err)
				break
			}
			s.out = append(append(s.out, line...), '\n')
		}
		if err == nil && page.Ended {
			s.out = append(append(s.out, `{"ended":true,"cursor":`...), strconv.FormatInt(page.Next, 10)...)
			s.out = append(s.out, "}\n"...)
		}
		if len(s.out) == 0 {
			s.out = append(s.out, '\n')
		}
		ok := out.write(s.out)
		s.release(false)
		room.leave()
		if err != nil { // no line in its place: who acknowledges its cursor loses the result
			h.log.ErrorContext(r.Context(), "the results of a session ended early", "session", id, "error", err)
			panic(http.ErrAbortHandler)
		}
		if ask.after = page.Next; !ok || page.Ended {
			return
		}
	}
}
