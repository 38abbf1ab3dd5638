package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestATakeConnectsBeforeThereIsWork(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		s := a.take("?prefetch=2&queue=q,,other", "Worker-Id", "ignored") // returns: the headers came
		id := a.put("")
		if j := s.next(); j["id"] != id || j["lease"] != nil {
			t.Errorf("took %v", j)
		}
	})
}

func TestATakeKeepsTheOrderAndItsQueues(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.put(`,"priority":5`)
		a.put("")
		a.put(`,"priority":5`)
		a.put(`,"priority":0`)
		a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"else","payload":null,"priority":0}`)
		s := a.take("?prefetch=0&queue=q")
		for _, i := range []int{3, 0, 2, 1} {
			if j := s.next(); j["id"] != a.ids[i] {
				t.Errorf("took %v, want job %d", j, i)
			}
		}
	})
}

func TestATakeHoldsNoMoreThanItsPrefetch(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for range 5 {
			a.put("")
		}
		s := a.take("?prefetch=2")
		s.next()
		s.next()
		a.want(200, `{"count":2}`, "GET", "/jobs/count?status=in_flight", "")
		a.want(204, "", "POST", "/jobs/"+a.ids[1]+"/success", "")
		if j := s.next(); j["id"] != a.ids[2] {
			t.Errorf("after a success: %v", j)
		}
		a.want(200, "*", "POST", "/jobs/"+a.ids[0]+"/failure", `{"message":"m","retry_at":99999999999999}`)
		if j := s.next(); j["id"] != a.ids[3] {
			t.Errorf("after a failure: %v", j)
		}
		a.want(204, "", "DELETE", "/jobs/"+a.ids[2], "")
		if j := s.next(); j["id"] != a.ids[4] {
			t.Errorf("after a delete: %v", j)
		}
		a.want(200, `{"count":2}`, "GET", "/jobs/count?status=in_flight", "")
	})
}

func TestADisconnectGivesBackWithoutBlame(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.put("")
		a.put("")
		s := a.take("?prefetch=2")
		s.next()
		s.next()
		other := a.take("?prefetch=2")
		s.close()
		for _, id := range a.ids {
			if j := other.next(); j["id"] != id || j["attempts"].(fmt.Stringer).String() != "0" {
				t.Errorf("taken over as %v, want %s", j, id)
			}
		}
	})
}

func TestANamedTakeKeepsWhatItHolds(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.put("")
		a.put("")
		s := a.take("?prefetch=1&lease=token", "Worker-Id", "w")
		first := s.next()
		token := first["lease"].(string)
		if first["held"] != nil || len(token) != 40 {
			t.Errorf("took %v", first)
		}
		s.close()
		again := a.take("?prefetch=1&lease=token", "Worker-Id", "w")
		if j := again.next(); j["id"] != a.ids[0] || j["lease"] != token || j["held"] != true {
			t.Errorf("on return it got %v", j)
		}
		a.want(422, "*", "POST", "/jobs/"+a.ids[0]+"/success", "") // not without the token
		a.want(200, `{"verdicts":[{"id":"`+a.ids[0]+`","status":"completed"}]}`,
			"POST", "/jobs/settle", `[{"id":"`+a.ids[0]+`","lease":"`+token+`","outcome":"ok"}]`)
		if j := again.next(); j["id"] != a.ids[1] || j["held"] != nil {
			t.Errorf("next it got %v", j)
		}
	})
}

func TestAJobGoesOnlyToWhoFits(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put(`,"requires":["mem >= 16","region = eu"]`)
	a.put("")
	small := a.take("?prop=mem:8&prop=region:eu")
	if j := small.next(); j["id"] != a.ids[1] {
		t.Errorf("the small one got %v", j)
	}
	large := a.take("?prop=mem:16&prop=region:eu")
	if j := large.next(); j["id"] != a.ids[0] {
		t.Errorf("the large one got %v", j)
	}
}

func TestAStopEndsTakesWhole(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		id := a.put("")
		s := a.take("")
		s.next()
		if err := a.engine.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(s.lines)
		if err != nil || strings.Trim(string(rest), "\n") != "" {
			t.Errorf("the stream ends with %q, %v", rest, err)
		}
		if got := a.status(id); got != "ready" {
			t.Errorf("the job is %s", got)
		}
		got := a.call("GET", "/jobs/take", "")
		if got.status != 503 || got.header.Get("Retry-After") != "1" {
			t.Errorf("a take while stopping: %d %s", got.status, got.body)
		}
		a.want(503, "*", "GET", "/ready", "")
		a.want(503, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":1}`)
		a.want(200, `{"status":"ok"}`, "GET", "/health", "")
	})
}

func TestManyTakesShareOneConnection(t *testing.T) {
	a := start(t, httpapi.Options{})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	dialed := 0
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	a.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	for range 1024 {
		a.take("")
	}
	a.put("")
	if dialed != 1 {
		t.Errorf("1024 takes needed %d connections", dialed)
	}
}

// sink is a client in memory, so that a test can run on its own clock.
type sink struct {
	*httptest.ResponseRecorder

	mu       sync.Mutex // guards what follows
	writes   []string
	deadline time.Time
	stalled  bool
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	stalled := s.stalled
	if len(b) > 0 && !stalled {
		s.writes = append(s.writes, string(b))
	}
	s.mu.Unlock()
	if stalled { // as a socket whose other end does not read
		<-time.After(time.Until(s.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	return len(b), nil
}

func (s *sink) stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = true
}

func (s *sink) taken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.writes, "+")
	s.writes = nil
	return all
}

func (s *sink) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }
func (s *sink) SetReadDeadline(time.Time) error    { return errors.ErrUnsupported }
func (s *sink) FlushError() error                  { return nil }

// onItsOwnClock runs a take against a sink inside a bubble of time.
func onItsOwnClock(t *testing.T, query string, test func(t *testing.T, h http.Handler, s *sink, ended <-chan struct{})) {
	synctest.Test(t, func(t *testing.T) {
		h := httpapi.New(httpapi.Options{Engine: newEngine(t), Heartbeat: 3 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		s, ended := &sink{ResponseRecorder: httptest.NewRecorder()}, make(chan struct{})
		go func() {
			defer close(ended)
			h.ServeHTTP(s, httptest.NewRequestWithContext(ctx, "GET", "http://localhost/jobs/take"+query, nil))
		}()
		synctest.Wait()
		test(t, h, s, ended)
		cancel()
		<-ended
	})
}

func post(t *testing.T, h http.Handler, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost"+path, strings.NewReader(body)))
	if w.Code/100 != 2 {
		t.Errorf("POST %s answers %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

func TestAHeartbeatFollowsSilence(t *testing.T) {
	onItsOwnClock(t, "?prefetch=9", func(t *testing.T, h http.Handler, s *sink, _ <-chan struct{}) {
		if s.Code != 200 || !s.Flushed && s.taken() != "" {
			t.Errorf("at first: %d %q", s.Code, s.taken())
		}
		pass := func(d time.Duration) string {
			<-time.After(d) // of the bubble: it takes no time
			synctest.Wait()
			return s.taken()
		}
		if got := pass(2999 * time.Millisecond); got != "" {
			t.Errorf("before its time: %q", got)
		}
		if got := pass(time.Millisecond); got != "\n" {
			t.Errorf("after 3 s: %q", got)
		}
		if got := pass(7 * time.Second); got != "\n+\n" {
			t.Errorf("after 7 s more: %q", got)
		}
		post(t, h, "/jobs", `{"type":"t","queue":"q","payload":1}`)
		synctest.Wait()
		if got := s.taken(); !strings.HasPrefix(got, `{"id":"`) || strings.Count(got, "\n") != 1 {
			t.Errorf("after an enqueue: %q", got)
		}
		if got := pass(2999 * time.Millisecond); got != "" {
			t.Errorf("a job did not count as a sign of life: %q", got)
		}
		if got := pass(time.Millisecond); got != "\n" {
			t.Errorf("3 s after a job: %q", got)
		}
	})
}

func TestABurstIsOneWrite(t *testing.T) {
	onItsOwnClock(t, "?prefetch=100", func(t *testing.T, h http.Handler, s *sink, _ <-chan struct{}) {
		one := `{"type":"t","queue":"q","payload":1}`
		post(t, h, "/jobs/bulk", `{"jobs":[`+strings.Repeat(one+",", 49)+one+`]}`)
		synctest.Wait()
		if got := s.taken(); strings.Count(got, "\n") != 50 || strings.Contains(got, "+") {
			t.Errorf("50 jobs came as %q", got)
		}
	})
}

func TestAReaderThatStallsIsGivenUp(t *testing.T) {
	for _, with := range []string{"a job", "a heartbeat"} {
		t.Run("with "+with, func(t *testing.T) {
			onItsOwnClock(t, "?prefetch=2", func(t *testing.T, h http.Handler, s *sink, ended <-chan struct{}) {
				post(t, h, "/jobs", `{"type":"t","queue":"q","payload":1}`)
				synctest.Wait()
				s.stall()
				began := time.Now()
				const wait = 30 * time.Second // a heartbeat, which comes soon after a job, has no longer
				if with == "a job" {
					post(t, h, "/jobs", `{"type":"t","queue":"q","payload":2}`)
				}
				<-ended
				if took := time.Since(began); took != wait {
					t.Errorf("it took %s", took)
				}
				synctest.Wait()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/jobs/count?status=in_flight", nil))
				if w.Body.String() != `{"count":0}` {
					t.Errorf("still in flight: %s", w.Body)
				}
			})
		})
	}
}
