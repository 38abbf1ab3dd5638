package client

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func TestNewRefusesWhatIsNoServerAddress(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:7890", "localhost:7890", "ftp://h", "http://", "http://h/?x=1", "http://h/#x", ":"} {
		if _, err := New(bad, Options{}); err == nil {
			t.Errorf("New(%q) took it", bad)
		} else if !strings.Contains(err.Error(), "address") {
			t.Errorf("New(%q): %v says nothing about an address", bad, err)
		}
	}
	c, err := New("https://queue.example/reprise/", Options{})
	if err != nil || c.URL() != "https://queue.example/reprise" {
		t.Errorf("a prefix: %v, %v", c, err)
	}
}

func TestEnqueueSendsWhatTheJobSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newFake(t, Options{})
		c.opts.Header = http.Header{"Authorization": {"Bearer x"}}
		j := Job{
			Queue: "q", Type: "t", Payload: json.RawMessage(`{"n":9007199254740993,"s":"<&>"}`),
			Priority: new(uint16(0)), Delay: 90 * time.Second, RunTimeout: 1500 * time.Microsecond,
			UniqueKey: "k", UniqueWhile: wire.WhileActive, Batch: &wire.Batch{Key: "b", When: "true", Fold: "$new"},
		}
		body, err := j.body(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := encode(body)
		want := `{"type":"t","queue":"q","payload":{"n":9007199254740993,"s":"<&>"},"priority":0,` +
			`"ready_at":946684890000,"run_timeout_ms":1,` +
			`"unique_key":"k","unique_while":"active","batch":{"key":"b","when":"true","fold":"$new"}}` + "\n"
		if string(raw) != want {
			t.Errorf("body\n got %s want %s", raw, want)
		}
		added, err := c.Enqueue(t.Context(), j)
		if err != nil || added.Status != wire.Ready || added.Duplicate {
			t.Fatalf("%+v, %v", added, err)
		}
		got, err := c.Get(t.Context(), added.ID)
		if err != nil || string(got.Payload) != `{"n":9007199254740993,"s":"<&>"}` || got.Priority != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestEnqueueRefusesAPayloadThatIsNoJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		for _, payload := range []any{json.RawMessage(`{"a":`), math.Inf(1), make(chan int)} {
			if _, err := c.Enqueue(t.Context(), Job{Queue: "q", Type: "t", Payload: payload}); err == nil {
				t.Errorf("%v was taken", payload)
			}
		}
		_, err := c.EnqueueBulk(t.Context(), []Job{{Queue: "q", Type: "t"}, {Queue: "q", Type: "t", Payload: math.NaN()}})
		if err == nil || !strings.Contains(err.Error(), "jobs[1]") {
			t.Errorf("%v does not say which job", err)
		}
		if n := len(f.jobs); n != 0 {
			t.Errorf("%d jobs came through", n)
		}
	})
}

// flaky answers the first n requests with no, then lets the fake answer.
func flaky(f *fake, n int, no refusal) *int {
	calls := new(int)
	f.refuse = func(*http.Request) *refusal {
		if *calls++; *calls <= n {
			return &no
		}
		return nil
	}
	return calls
}

func TestEnqueueIsRepeatedOnlyWithAnIdempotencyKey(t *testing.T) {
	for _, tt := range []struct {
		name  string
		key   string
		no    refusal
		fails int
		calls int
		ok    bool
	}{
		{"503 with a key", "k", refusal{status: 503, code: wire.CodeUnavailable}, 2, 3, true},
		{"429 with a key", "k", refusal{status: 429, code: wire.CodeOverLimit, retryAfter: "2"}, 1, 2, true},
		{"no answer with a key", "k", refusal{hangUp: true}, 2, 3, true},
		{"503 without a key", "", refusal{status: 503, code: wire.CodeUnavailable}, 1, 1, false},
		{"no answer without a key", "", refusal{hangUp: true}, 1, 1, false},
		{"a refusal for good", "k", refusal{status: 400, code: wire.CodeInvalid}, 1, 1, false},
		{"a conflict of keys", "k", refusal{status: 409, code: wire.CodeExists}, 1, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFake(t, Options{})
				calls := flaky(f, tt.fails, tt.no)
				start := time.Now()
				_, err := c.Enqueue(t.Context(), Job{Queue: "q", Type: "t", IdempotencyKey: tt.key})
				if (err == nil) != tt.ok || *calls != tt.calls {
					t.Errorf("%d calls, %v", *calls, err)
				}
				if tt.no.retryAfter != "" && time.Since(start) < 2*time.Second {
					t.Errorf("repeated after %s, although Retry-After asked for 2 s", time.Since(start))
				}
				if code := CodeOf(err); !tt.ok && code != tt.no.code {
					t.Errorf("code %q, want %q", code, tt.no.code)
				}
			})
		})
	}
}

func TestEnqueueGivesUpAfterRetryFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		f, c := newFake(t, Options{RetryFor: 5 * time.Second, Repeating: func(why error, left time.Duration) {
			if why == nil {
				t.Error("it was told no reason")
			}
			told = append(told, left)
		}})
		f.ln.fall()
		start := time.Now()
		_, err := c.Enqueue(t.Context(), Job{Queue: "q", Type: "t", IdempotencyKey: "k"})
		if took := time.Since(start); err == nil || took > 5*time.Second || took < time.Second {
			t.Errorf("%v after %s", err, took)
		}
		if len(told) != 1 || told[0] != 5*time.Second {
			t.Errorf("told that it is tried for %v, want once, for 5 s", told)
		}
		if _, err := c.Enqueue(t.Context(), Job{Queue: "q", Type: "t"}); err == nil || len(told) != 1 {
			t.Errorf("without a key: %v, told %v", err, told)
		}
	})
}

func TestEnqueueBulkIsRepeatedIfEachJobHasAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		calls := flaky(f, 1, refusal{hangUp: true})
		jobs := []Job{{Queue: "q", Type: "t", IdempotencyKey: "1"}, {Queue: "q", Type: "t"}}
		if _, err := c.EnqueueBulk(t.Context(), jobs); err == nil || *calls != 1 {
			t.Errorf("one without a key: %d calls, %v", *calls, err)
		}
		*calls = 0
		jobs[1].IdempotencyKey = "2"
		added, err := c.EnqueueBulk(t.Context(), jobs)
		if err != nil || len(added) != 2 || *calls != 2 {
			t.Errorf("all with keys: %d calls, %d jobs, %v", *calls, len(added), err)
		}
		if none, err := c.EnqueueBulk(t.Context(), nil); err != nil || len(none) != 0 || *calls != 2 {
			t.Errorf("no jobs: %v, %v, %d calls", none, err, *calls)
		}
	})
}

func TestACallEndsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{Timeout: time.Second})
		f.refuse = func(r *http.Request) *refusal { <-r.Context().Done(); return &refusal{hangUp: true} }
		_, err := c.Queues(t.Context())
		if err == nil || !strings.Contains(err.Error(), "does not answer: nothing came within 1s") {
			t.Errorf("%v", err)
		}
	})
}

func TestErrorsCarryStatusCodeAndRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		_, err := c.Get(t.Context(), "no-such-id")
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != 404 || e.Code != wire.CodeNotFound || e.Temporary() {
			t.Errorf("%#v", err)
		}
		if err := c.Delete(t.Context(), "a/b?c"); CodeOf(err) != wire.CodeNotFound {
			t.Errorf("an id that needs escapes: %v", err)
		}
		f.refuse = func(*http.Request) *refusal {
			return &refusal{status: 503, code: wire.CodeUnavailable, retryAfter: "7"}
		}
		err = c.Ready(t.Context())
		e, ok = errors.AsType[*Error](err)
		if !ok || e.RetryAfter != 7*time.Second || !e.Temporary() {
			t.Errorf("%#v", err)
		}
	})
}

func TestRetryAfterReadsSecondsAndDates(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"3":                             3 * time.Second,
		"0":                             0,
		"-3":                            0,
		"soon":                          0,
		"99999999999":                   24 * time.Hour,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
	} {
		if got := ParseRetryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestListReadsPageByPageAndStopsWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 7)
		f.fill("other & more", 1)
		calls := flaky(f, 0, refusal{})
		read := func(filter Filter, most int) (payloads string) {
			for j, err := range c.List(t.Context(), filter) {
				if err != nil {
					t.Fatal(err)
				}
				payloads += string(j.Payload)
				if len(payloads) == most {
					break
				}
			}
			return payloads
		}
		if got := read(Filter{Queues: []string{"q"}, PageSize: 3}, 99); got != "0123456" || *calls != 3 {
			t.Errorf("%s in %d calls", got, *calls)
		}
		if got := read(Filter{Newest: true, Queues: []string{"q"}}, 99); got != "6543210" {
			t.Errorf("newest first: %s", got)
		}
		if got := read(Filter{Queues: []string{"other & more"}}, 99); got != "0" {
			t.Errorf("a queue that needs escapes: %s", got)
		}
		*calls = 0
		if got := read(Filter{PageSize: 2}, 2); got != "01" || *calls != 1 {
			t.Errorf("two jobs: %s in %d calls", got, *calls)
		}
		n, err := c.Count(t.Context(), Filter{Queues: []string{"q"}})
		if err != nil || n != 7 {
			t.Errorf("count %d, %v", n, err)
		}
		queues, err := c.Queues(t.Context())
		if err != nil || !slices.Equal(queues, []string{"other & more", "q"}) {
			t.Errorf("%q, %v", queues, err)
		}
	})
}

func TestListFollowsPathsOnly(t *testing.T) {
	for next, want := range map[string]string{
		"/jobs?from=x": "/jobs?from=x", "http://elsewhere/jobs": "", "": "",
	} {
		if got := following(wire.Pages{Next: &next}); got != want {
			t.Errorf("%q: %q", next, got)
		}
	}
}

func TestFiltersThatWouldMeanSomethingElseAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newFake(t, Options{})
		for _, bad := range []Filter{{Queues: []string{""}}, {Types: []string{"a,b"}}} {
			if _, err := c.Count(t.Context(), bad); err == nil {
				t.Errorf("count took %+v", bad)
			}
			for _, err := range c.List(t.Context(), bad) {
				if err == nil {
					t.Errorf("list took %+v", bad)
				}
			}
		}
	})
}

func TestARedirectIsNotFollowed(t *testing.T) {
	r := &http.Response{StatusCode: 302, Status: "302 Found", Header: http.Header{"Location": {"http://elsewhere/"}}, Body: http.NoBody}
	e := errorOf(r)
	if e.Temporary() || !strings.Contains(e.Error(), "http://elsewhere/") {
		t.Errorf("%v", e)
	}
	if !errors.Is(sameAnswer(nil, nil), http.ErrUseLastResponse) {
		t.Error("redirects are followed")
	}
}

func TestVersionAndCancelledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newFake(t, Options{})
		v, err := c.Version(t.Context())
		if err != nil || v.Reprise != "0.1.0" || v.Product != "reprise" {
			t.Errorf("%+v, %v", v, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Enqueue(ctx, Job{IdempotencyKey: "k"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
