package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// SessionOptions describe a session of tasks to be opened. The zero value is a
// session with a made up id and the defaults of the broker.
type SessionOptions struct {
	// ID names the session; whoever opens it again under the same id, after a
	// crash for example, goes on with it. "" = made up.
	ID string

	// Service is a service type of the server's configuration, whose options the
	// session takes where it has none of its own. "" = none.
	Service string

	// Options by their names (docs/grid.md): map[string]any{"max_retries": 5,
	// "task_max_time": "50s"}.
	Options map[string]any
}

// Session is a session in the hands of a driver: it submits tasks and collects
// their results. It is a number of calls, and holds nothing: many programs may
// work on one session at a time.
type Session struct {
	client *Client
	id     string
	path   string

	// Waiting is told of each call for results that is repeated because the server
	// did not answer. nil = nobody is. Set it before the session is used.
	Waiting func(err error, wait time.Duration)

	// Keep leaves results as they are for others to collect: Results then
	// acknowledges nothing.
	Keep bool
}

// Task is a task to be submitted.
type Task struct {
	// Seq is the driver's number of the task, from 1. Submitting the same number
	// again is harmless, and refused with other content.
	Seq int64

	Payload any    // becomes JSON; a json.RawMessage is sent as it is
	Type    string // for engines that do several things; "" = task
	Front   bool   // before all that wait

	// Requires are conditions on the engine, such as "cpuMHz > 350". An engine
	// without the property does not meet one, except one with !=.
	Requires []string

	// Affinity is a tag, such as the name of a data set: tasks with the same one go
	// to engines that ran it before, if one is free within affinity_wait.
	Affinity string

	// Needs are numbers of tasks, submitted before or together with this one, that
	// must be over before it. It fails if one of them did, unless RunAnyway is set.
	Needs     []int64
	RunAnyway bool

	// Budgets are what attempts at the task use together with others, of budgets
	// that exist: []wire.Binding{{Key: "licence"}}.
	Budgets []wire.Binding
}

// OpenSession opens a session, or finds the one with that id, which must have
// been opened with the same options. A call that got no answer is repeated if
// the session has an id.
func (c *Client) OpenSession(ctx context.Context, o SessionOptions) (*Session, error) {
	ask := wire.OpenSession{ID: o.ID, Service: o.Service}
	for name, value := range o.Options {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("opening a session: option %s: %w", name, err)
		}
		if ask.Options == nil {
			ask.Options = map[string]json.RawMessage{}
		}
		ask.Options[name] = raw
	}
	opened, err := repeated[wire.Session](ctx, c, o.ID != "", "POST", "/sessions", ask, "opening a session")
	if err != nil {
		return nil, err
	}
	return c.Session(opened.ID), nil
}

// Session goes on with a session that exists. It makes no call.
func (c *Client) Session(id string) *Session {
	return &Session{client: c, id: id, path: "/sessions/" + url.PathEscape(id)}
}

// Sessions lists the sessions there are, without their options.
func (c *Client) Sessions(ctx context.Context) ([]wire.Session, error) {
	const list = "/sessions?"
	q := url.Values{"limit": {"1000"}}
	of := func(p *wire.Sessions) ([]wire.Session, string) { return p.Sessions, behind(list, q, "after", p.Next) }
	return whole(pages(ctx, c, list+q.Encode(), of, "listing sessions"))
}

// ID is the name of the session: with it any program can go on.
func (s *Session) ID() string { return s.id }

// State reads the session, with every option and who chose it.
func (s *Session) State(ctx context.Context) (*wire.Session, error) {
	return s.change(ctx, "reading", "GET", "", nil)
}

// Set changes options that may change while the session runs, such as its
// weight.
func (s *Session) Set(ctx context.Context, options map[string]any) (*wire.Session, error) {
	return s.change(ctx, "changing", "PATCH", "", map[string]any{"options": options})
}

// Suspend lets nothing more begin; what runs goes on. Resume ends it.
func (s *Session) Suspend(ctx context.Context) (*wire.Session, error) {
	return s.change(ctx, "suspending", "PATCH", "", map[string]any{"suspend": true})
}

// Resume ends Suspend.
func (s *Session) Resume(ctx context.Context) (*wire.Session, error) {
	return s.change(ctx, "resuming", "PATCH", "", map[string]any{"suspend": false})
}

// Close says that no more tasks come. The session is over when all it has are
// finished.
func (s *Session) Close(ctx context.Context) (*wire.Session, error) {
	return s.change(ctx, "closing", "POST", "/close", nil)
}

// Cancel cancels every task that is not finished, and ends the session.
func (s *Session) Cancel(ctx context.Context) (*wire.Session, error) {
	return s.change(ctx, "cancelling", "DELETE", "", nil)
}

// ClearExclusions has the session give tasks to engines again that it excluded
// because tasks failed there: to this one, or to all of them with "".
func (s *Session) ClearExclusions(ctx context.Context, engine string) (*wire.Session, error) {
	below := "/exclusions"
	if engine != "" {
		below += "?engine=" + url.QueryEscape(engine)
	}
	return s.change(ctx, "clearing the exclusions of", "DELETE", below, nil)
}

// Forget forgets a session that is over, with its tasks and results.
func (s *Session) Forget(ctx context.Context) error {
	return s.client.ask(ctx, "DELETE", s.path+"?forget=true", nil, nil, "forgetting session %s", s.id)
}

// change makes a call that may be repeated, and is answered with the session.
func (s *Session) change(ctx context.Context, doing, method, below string, body any) (*wire.Session, error) {
	return repeated[wire.Session](ctx, s.client, true, method, s.path+below, body, "%s session %s", doing, s.id)
}

// Bounds of one submit.
const (
	submitTasks = 2000
	submitBytes = 8 << 20
)

// Submit puts tasks in; when it returns, they are on the server's disk. Many
// are sent in several calls, each of which is repeated when it got no answer;
// after an error some may be in, and submitting all of them again is right.
func (s *Session) Submit(ctx context.Context, tasks ...Task) ([]wire.TaskAdded, error) {
	var out []wire.TaskAdded
	var part wire.Tasks
	size := 0
	flush := func() error {
		if len(part.Tasks) == 0 {
			return nil
		}
		added, err := s.submit(ctx, part)
		out, part, size = append(out, added...), wire.Tasks{}, 0
		return err
	}
	for i := range tasks {
		t := &tasks[i]
		payload, err := encode(t.Payload)
		if err != nil {
			return out, fmt.Errorf("submitting task %d: %w", t.Seq, err)
		}
		if size += len(payload); len(part.Tasks) == submitTasks || size > submitBytes {
			if err := flush(); err != nil {
				return out, err
			}
			size = len(payload)
		}
		one := wire.Task{Seq: t.Seq, Payload: payload[:len(payload)-1], Type: t.Type, Requires: t.Requires, Needs: t.Needs, Budgets: t.Budgets, Affinity: t.Affinity}
		if t.RunAnyway {
			one.OnDepFail = "run"
		}
		if t.Front {
			one.Place = wire.Front
		}
		part.Tasks = append(part.Tasks, one)
	}
	return out, flush()
}

func (s *Session) submit(ctx context.Context, part wire.Tasks) ([]wire.TaskAdded, error) {
	n := len(part.Tasks)
	added, err := repeated[wire.TasksAdded](ctx, s.client, true, "POST", s.path+"/tasks", part, "submitting %d tasks", n)
	switch {
	case err != nil:
		return nil, err
	case len(added.Tasks) != n:
		return nil, fmt.Errorf("submitting %d tasks: the server answered for %d", n, len(added.Tasks))
	}
	return added.Tasks, nil
}

// Task reads one task, by its id or by the driver's number of it.
func (s *Session) Task(ctx context.Context, task string) (*wire.TaskState, error) {
	return answer[wire.TaskState](ctx, s.client, "GET", s.path+"/tasks/"+url.PathEscape(task), nil, "reading task %s", task)
}

// Explain says why a task does not run.
func (s *Session) Explain(ctx context.Context, task string) (*wire.Explanation, error) {
	return answer[wire.Explanation](ctx, s.client, "GET", s.path+"/tasks/"+url.PathEscape(task)+"/explain", nil, "explaining task %s", task)
}

// Bounds of one page of results.
const (
	resultsPage = 1000
	resultsWait = 20 * time.Second // shorter than the timeout of a call
)

// Results goes through the results behind a cursor, in the order in which
// tasks finished, waits for more, and ends when the session is over. Each has
// the cursor to go on behind; 0 is the begin. Unless Keep is set, a page that
// was gone through to its end is acknowledged, and the server may forget its
// tasks; so a program that dies finds again what it had not worked off, at most
// one page. While the server does not answer it goes on trying until ctx ends;
// any other error is the last thing it yields.
func (s *Session) Results(ctx context.Context, after int64) iter.Seq2[wire.TaskResult, error] {
	return s.results(ctx, after, min(resultsWait, s.client.opts.Timeout/2), func(p *wire.TaskResults) bool { return p.Ended })
}

// ResultsNow is Results without waiting: it ends with the latest result there is.
func (s *Session) ResultsNow(ctx context.Context, after int64) iter.Seq2[wire.TaskResult, error] {
	return s.results(ctx, after, 0, func(p *wire.TaskResults) bool { return p.Ended || len(p.Results) < resultsPage })
}

func (s *Session) results(ctx context.Context, after int64, wait time.Duration, last func(*wire.TaskResults) bool) iter.Seq2[wire.TaskResult, error] {
	return func(yield func(wire.TaskResult, error) bool) {
		for {
			page, err := s.page(ctx, after, wait)
			if err != nil {
				yield(wire.TaskResult{}, fmt.Errorf("collecting results of session %s: %w", s.id, err))
				return
			}
			for _, r := range page.Results {
				if !yield(r, nil) {
					return
				}
			}
			if after = page.Next; !s.Keep && len(page.Results) > 0 {
				if err := s.Collected(ctx, after); err != nil {
					yield(wire.TaskResult{}, err)
					return
				}
			}
			if last(page) {
				return
			}
		}
	}
}

// Collected tells the server that results up to a cursor are worked off: unless
// the session is collected later, it may forget their tasks.
func (s *Session) Collected(ctx context.Context, cursor int64) error {
	err := s.try(ctx, func() error {
		return s.client.call(ctx, "POST", s.path+"/collected", wire.Collected{Cursor: cursor}, nil)
	})
	if err != nil {
		return fmt.Errorf("acknowledging results of session %s: %w", s.id, err)
	}
	return nil
}

// page asks for the results behind a cursor.
func (s *Session) page(ctx context.Context, after int64, wait time.Duration) (page *wire.TaskResults, err error) {
	q := url.Values{
		"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(resultsPage)},
		"wait_ms": {strconv.FormatInt(wait.Milliseconds(), 10)},
	}
	ask := func() error {
		page = new(wire.TaskResults)
		return s.client.call(ctx, "GET", s.path+"/results?"+q.Encode(), nil, page)
	}
	if wait == 0 && s.client.opts.RetryFor < 0 { // who looks now and repeats nothing
		err = ask()
		return page, err
	}
	err = s.try(ctx, ask)
	return page, err
}

// try makes a call until the server answers.
func (s *Session) try(ctx context.Context, call func() error) error {
	return insist(ctx, call, func(err error, wait time.Duration) bool {
		if s.Waiting != nil {
			s.Waiting(err, wait)
		}
		return true
	})
}
