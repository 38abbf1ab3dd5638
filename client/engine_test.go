package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// broker is as much of a server as an engine needs: the test answers.
type broker struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex // guards what follows
	logins []wire.Login
	calls  chan string       // the path and body of each call but takes
	feed   chan string       // lines for the open take
	end    chan struct{}     // closes the open take
	refuse map[string][2]any // by path: status and body, once
}

const (
	taskID    = "03gq0x7k2m4v9c1d8f5h6j0a1"
	taskLease = "0000000100000000000000000000000000000001"
	taskLine  = `{"id":"` + taskID + `","type":"task","queue":"s","priority":1,"status":"in_flight","payload":1,"ready_at":1,"attempts":0,"lease":"` + taskLease + `"}`
)

func newBroker(t *testing.T) (*broker, *Client) {
	b := &broker{t: t, calls: make(chan string, 100), feed: make(chan string, 10), end: make(chan struct{}, 1), refuse: map[string][2]any{}}
	b.Server = httptest.NewServer(b)
	c, err := New(b.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); b.Close() })
	return b, c
}

func (b *broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := new(strings.Builder)
	_, _ = io.Copy(body, r.Body)
	b.mu.Lock()
	no, refused := b.refuse[r.URL.Path]
	delete(b.refuse, r.URL.Path)
	b.mu.Unlock()
	if r.URL.Path == "/jobs/take" && !refused {
		b.stream(w, r)
		return
	}
	defer func() { b.calls <- r.URL.Path + " " + strings.TrimSpace(body.String()) }()
	answer := any(wire.Engine{State: wire.EngineIdle})
	switch {
	case refused:
		w.WriteHeader(no[0].(int))
		answer = no[1]
	case r.Method == "POST" && r.URL.Path == "/engines":
		b.mu.Lock()
		var l wire.Login
		_ = json.Unmarshal([]byte(body.String()), &l)
		b.logins = append(b.logins, l)
		answer = wire.LoggedIn{ID: l.ID, Epoch: int64(len(b.logins)), HeartbeatMS: 50, LostAfterMS: 60_000}
		b.mu.Unlock()
	case r.URL.Path == "/jobs/settle" || r.URL.Path == "/jobs/extend":
		answer = wire.Verdicts{Verdicts: []wire.Verdict{{ID: taskID, Status: wire.Completed}}}
	case strings.HasSuffix(r.URL.Path, "/results"):
		answer = wire.TaskResults{Results: []wire.TaskResult{{Cursor: 1, Seq: 1}, {Cursor: 2, Seq: 2}}, Next: 2, Ended: true}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (b *broker) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case line := <-b.feed:
			_, _ = w.Write([]byte(line + "\n"))
		case <-b.end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// hear waits for a call whose path and body hold the text.
func (b *broker) hear(text string) string {
	b.t.Helper()
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for {
		select {
		case call := <-b.calls:
			if strings.Contains(call, text) {
				return call
			}
		case <-late.C:
			b.t.Fatalf("%q was never said", text)
		}
	}
}

// runEngine runs an engine until the test ends. wait waits for it to end, stop
// ends it first.
func runEngine(t *testing.T, c *Client, handler Handler) (stop, wait func() error) {
	e, err := NewEngine(c, handler, EngineOptions{ID: "e", Host: "h", Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	wait = sync.OnceValue(func() error { return <-ended })
	stop = func() error { cancel(); return wait() }
	t.Cleanup(func() { _ = stop() })
	return stop, wait
}

func TestAnEngineTellsWhenATaskBegins(t *testing.T) {
	b, c := newBroker(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	stop, _ := runEngine(t, c, func(_ context.Context, d *Delivery) error {
		close(begun)
		<-finish
		return d.SetResult(7)
	})
	b.feed <- taskLine
	<-begun
	b.hear(`/jobs/extend {"leases":[{"id":"` + taskID + `","lease":"` + taskLease + `","started":true}]}`)
	close(finish)
	if call := b.hear("/jobs/settle"); !strings.Contains(call, `"outcome":"ok","result":7`) {
		t.Error(call)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	b.hear("/engines/e/logoff")
}

func TestAnEngineSaysThatItStoppedWhatTookTooLong(t *testing.T) {
	b, c := newBroker(t)
	begun := make(chan struct{})
	runEngine(t, c, func(ctx context.Context, _ *Delivery) error {
		close(begun)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrVoided) {
			t.Error(context.Cause(ctx))
		}
		return ctx.Err()
	})
	b.feed <- taskLine
	<-begun
	b.feed <- `{"id":"` + taskID + `","lease":"` + taskLease + `","voided":"timeout"}`
	b.hear(`/engines/e/heartbeat {"epoch":1,"stopped":["` + taskLease + `"],"running":[]}`)
	b.hear(`/engines/e/heartbeat {"epoch":1,"running":[]}`) // once is enough
}

// Each heartbeat names what the engine has, and is told what of that is over: the
// stream may have missed it.
func TestAHeartbeatNamesWhatTheEngineHasAndHearsWhatIsOver(t *testing.T) {
	b, c := newBroker(t)
	begun := make(chan struct{})
	runEngine(t, c, func(ctx context.Context, _ *Delivery) error {
		close(begun)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrVoided) {
			t.Error(context.Cause(ctx))
		}
		return ctx.Err()
	})
	b.feed <- taskLine
	<-begun
	const own = `{"id":"` + taskID + `","lease":"` + taskLease + `"}`
	b.hear(`/engines/e/heartbeat {"epoch":1,"running":[` + own + `]}`)
	b.mu.Lock()
	b.refuse["/engines/e/heartbeat"] = [2]any{200, wire.Engine{State: wire.EngineBusy, Stop: []wire.Running{{ID: taskID, Lease: taskLease}}}}
	b.mu.Unlock()
	b.hear(`/engines/e/heartbeat {"epoch":1,"stopped":["` + taskLease + `"],"running":[]}`)
}

// What is over while its end is being told is not told to be stopped again and again.
func TestWhatIsBeingSettledIsStoppedOnce(t *testing.T) {
	e := &engine{wake: make(chan struct{}, 1)}
	r := &run{Worker: &Worker{opts: WorkerOptions{engine: e}}, jobs: map[string]*held{taskID: {lease: taskLease, settling: true}}}
	for range 2 {
		r.voided(wire.Job{ID: taskID, Lease: taskLease, Voided: "superseded"})
	}
	if len(e.stopped) != 1 {
		t.Errorf("it was told %d times", len(e.stopped))
	}
}

// A10: the engine ends a run by itself, to the millisecond.
func TestA10AnEngineEndsARunThatIsOverItsTime(t *testing.T) {
	const limit = 50 * time.Second
	for _, c := range []struct {
		name string
		task wire.Job
		ends bool
	}{
		{"the engine is to end it", wire.Job{StopAfterMS: limit.Milliseconds()}, true},
		{"the session lets it run on", wire.Job{RunTimeoutMS: limit.Milliseconds(), RunUntil: limit.Milliseconds()}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.task.ID, c.task.Lease = taskID, taskLease
				cl, err := New("http://127.0.0.1:1", Options{}) // nobody is asked
				if err != nil {
					t.Fatal(err)
				}
				defer cl.Close()
				began := time.Now()
				e, err := NewEngine(cl, func(ctx context.Context, _ *Delivery) error {
					late := time.NewTimer(2 * limit)
					defer late.Stop()
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-late.C:
						return nil
					}
				}, EngineOptions{ID: "e", Host: "h"})
				if err != nil {
					t.Fatal(err)
				}
				r := newRun(e.worker)
				e.engine.attach(r)
				r.execute(t.Context(), r.accept(c.task))
				if took := time.Since(began); c.ends && took != limit || !c.ends && took != 2*limit {
					t.Errorf("it ran for %s", took)
				}
			})
		})
	}
}

func TestAnEngineTellsThatItsRunTookTooLong(t *testing.T) {
	b, c := newBroker(t)
	runEngine(t, c, func(ctx context.Context, _ *Delivery) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	b.feed <- strings.Replace(taskLine, `"lease"`, `"stop_after_ms":20,"lease"`, 1)
	if call := b.hear("/jobs/settle"); !strings.Contains(call, `"outcome":"retry","error":{"message":"the run timeout of 20ms is over","timeout":true}`) {
		t.Error(call)
	}
}

func TestAnEngineThatLogsInAgainNamesWhatItRuns(t *testing.T) {
	b, c := newBroker(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	runEngine(t, c, func(context.Context, *Delivery) error {
		close(begun)
		<-finish
		return nil
	})
	b.feed <- taskLine
	<-begun
	b.mu.Lock() // the server took it for lost, ends its stream and wants another login
	b.refuse["/jobs/take"] = [2]any{409, wire.Error{Error: "it is lost; log in again", Code: wire.CodeSuperseded}}
	b.mu.Unlock()
	b.end <- struct{}{}
	b.hear(`/engines {"id":"e","host":"h","slots":2,"running":[{"id":"` + taskID + `","lease":"` + taskLease + `"}]}`)
	close(finish)
	b.hear("/jobs/settle")
}

func TestAnEngineThatWasLoggedOffEnds(t *testing.T) {
	b, c := newBroker(t)
	_, wait := runEngine(t, c, func(context.Context, *Delivery) error { return nil })
	b.hear(`/engines/e/heartbeat`)
	b.mu.Lock()
	b.refuse["/jobs/take"] = [2]any{404, wire.Error{Error: "it is not logged in", Code: wire.CodeNotFound}}
	b.mu.Unlock()
	b.end <- struct{}{}
	if err := wait(); err == nil || !strings.Contains(err.Error(), "it was logged off") {
		t.Error(err)
	}
}

// The server leaves the stream of an engine that an operator logged off open, to
// tell what to stop: the engine hears of it by its heartbeat.
func TestAnEngineThatWasLoggedOffEndsWhileItsStreamIsOpen(t *testing.T) {
	b, c := newBroker(t)
	_, wait := runEngine(t, c, func(ctx context.Context, _ *Delivery) error {
		<-ctx.Done()
		return ctx.Err()
	})
	b.feed <- taskLine
	b.hear(`/jobs/extend`)
	b.feed <- `{"id":"` + taskID + `","lease":"` + taskLease + `","voided":"evict"}`
	b.hear(`/engines/e/heartbeat {"epoch":1,"stopped":["` + taskLease + `"],"running":[]}`)
	b.mu.Lock()
	b.refuse["/engines/e/heartbeat"] = [2]any{404, wire.Error{Error: "it is not logged in", Code: wire.CodeNotFound}}
	b.mu.Unlock()
	if err := wait(); !errors.Is(err, errEngineOver) || !strings.Contains(err.Error(), "it was logged off") {
		t.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.logins) != 1 {
		t.Errorf("it logged in %d times", len(b.logins))
	}
}

func TestAnEngineThatAnotherOneReplacedEnds(t *testing.T) {
	b, c := newBroker(t)
	_, wait := runEngine(t, c, func(context.Context, *Delivery) error { return nil })
	b.hear(`/engines/e/heartbeat`)
	b.mu.Lock()
	b.refuse["/jobs/take"] = [2]any{409, wire.Error{Error: "it logged in again", Code: wire.CodeSuperseded}}
	b.refuse["/engines/e"] = [2]any{200, wire.Engine{ID: "e", Epoch: 99}}
	b.mu.Unlock()
	b.end <- struct{}{}
	if err := wait(); err == nil || !strings.Contains(err.Error(), "another engine logged in as e") {
		t.Error(err)
	}
}

func TestResultsThatWereNotWorkedOffAreNotAcknowledged(t *testing.T) {
	b, c := newBroker(t)
	s := c.Session("s")
	for _, err := range s.Results(t.Context(), 0) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	n := 0
	for r, err := range s.Results(t.Context(), 0) {
		if n++; err != nil || r.Seq != int64(n) {
			t.Fatal(r, err)
		}
	}
	s.Keep = true
	for _, err := range s.Results(t.Context(), 0) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 4 {
		t.Errorf("%d results", n)
	}
	var acknowledged []string
	for len(b.calls) > 0 {
		if call := <-b.calls; strings.Contains(call, "/collected") {
			acknowledged = append(acknowledged, call)
		}
	}
	if len(acknowledged) != 1 || !strings.Contains(acknowledged[0], `{"cursor":2}`) {
		t.Error(acknowledged)
	}
}

func TestAnEngineRefusesWhatCannotBe(t *testing.T) {
	_, c := newBroker(t)
	ok := func(context.Context, *Delivery) error { return nil }
	for _, o := range []EngineOptions{{Slots: -1}, {Prefetch: -1}, {Sessions: []string{"a,b"}}, {TasksMax: -1}} {
		if _, err := NewEngine(c, ok, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := NewEngine(c, nil, EngineOptions{}); err == nil {
		t.Error("an engine without a handler")
	}
}
