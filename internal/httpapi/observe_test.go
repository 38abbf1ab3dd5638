package httpapi_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/metrics"
)

// page reads GET /metrics: samples by name and labels as they are written.
func (a *api) page() map[string]string {
	a.t.Helper()
	resp, err := a.client.Do(a.request("GET", "/metrics", "", "Accept", "text/plain"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		a.t.Fatalf("%d %v %v\n%s", resp.StatusCode, resp.Header, err, text)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			out[name] = value
		}
	}
	return out
}

func measured(t *testing.T) *api {
	t.Helper()
	e := newEngine(t)
	return start(t, httpapi.Options{Engine: e, Metrics: metrics.New(e, "v1")})
}

func TestThePageOfMetrics(t *testing.T) {
	a := measured(t)
	a.put("")
	a.put("")
	a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"_other","payload":null}`)
	a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"],"max":1}`)
	a.want(400, "*", "POST", "/jobs", `{`)
	a.want(200, "*", "GET", "/jobs", "")
	got := a.page()
	for name, want := range map[string]string{
		`reprise_queue_jobs{queue="q",state="ready"}`:                  "1",
		`reprise_queue_jobs{queue="q",state="in_flight"}`:              "1",
		`reprise_queue_bytes{queue="q"}`:                               "8",
		`reprise_queue_leases{queue="q"}`:                              "1",
		`reprise_enqueued_total{queue="q"}`:                            "2",
		`reprise_enqueued_total{queue="_other"}`:                       "1",
		`reprise_taken_total{queue="q"}`:                               "1",
		`reprise_wait_seconds_count{queue="q"}`:                        "1",
		`reprise_wait_seconds_bucket{queue="q",le="+Inf"}`:             "1",
		`reprise_run_seconds_count{queue="q"}`:                         "0",
		`reprise_leases`:                                               "1",
		`reprise_store_working`:                                        "1",
		`reprise_http_refused_total{code="invalid"}`:                   "1",
		`reprise_http_request_seconds_count{class="enqueue"}`:          "4",
		`reprise_http_request_seconds_count{class="lease"}`:            "1",
		`reprise_http_request_seconds_count{class="read"}`:             "1",
		`reprise_data_lost_total{reason="expired"}`:                    "0",
		`reprise_settled_total{outcome="ok",queue="q"}`:                "0",
		`reprise_retries_total{queue="q",reason="timeout"}`:            "0",
		`reprise_dead_total{queue="q",reason="exhausted"}`:             "0",
		`reprise_leases_ended_total{how="lapse",queue="q"}`:            "0",
		`reprise_http_request_seconds_bucket{class="lease",le="+Inf"}`: "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
	for _, name := range []string{"reprise_commit_seconds_count", "reprise_sync_seconds_count", "reprise_batch_commands_count", "go_goroutines"} {
		if got[name] == "" || got[name] == "0" {
			t.Errorf("%s is %q", name, got[name])
		}
	}
	// No label holds what callers choose, but the names of queues.
	labels := regexp.MustCompile(`([a-z_]+)="`)
	known := map[string]bool{
		"queue": true, "state": true, "outcome": true, "reason": true, "how": true, "le": true, "class": true, "code": true, "kind": true, "version": true, "go": true,
		"strategy": true, "answer": true, "health": true, "what": true,
	}
	for name := range got {
		for _, m := range labels.FindAllStringSubmatch(name, -1) {
			if strings.HasPrefix(name, "reprise_") && !known[m[1]] {
				t.Errorf("%s has the label %s", name, m[1])
			}
		}
	}
}

func TestAServerWithoutMetricsSaysSo(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(404, `{"error":"this server keeps no metrics","code":"not_found"}`, "GET", "/metrics", "")
}

// follow opens GET /events and returns its lines, without heartbeats.
func (a *api) follow(query string, header ...string) (next func() string, done func()) {
	a.t.Helper()
	r := a.request("GET", "/events"+query, "", header...)
	ctx, cancel := context.WithCancel(r.Context())
	resp, err := a.client.Do(r.WithContext(ctx))
	if err != nil {
		a.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		a.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewReader(resp.Body)
	end := func() { cancel(); _ = resp.Body.Close() }
	a.t.Cleanup(end)
	return func() string {
		a.t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				a.t.Fatalf("reading events: %v", err)
			}
			if line != "\n" && line != ": heartbeat\n" {
				return strings.TrimSuffix(line, "\n")
			}
		}
	}, end
}

func TestEventsAreSentAsTheyHappen(t *testing.T) {
	bothProtocols(t, httpapi.Options{Heartbeat: time.Millisecond}, func(t *testing.T, a *api) {
		next, _ := a.follow("?queue=q&kind=enqueued,completed")
		if first := next(); first != "retry: 1000" {
			t.Errorf("began with %q", first)
		}
		id := a.put("")
		a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"else","payload":null}`)
		s := a.take("?queue=q")
		s.next()
		a.want(204, "", "POST", "/jobs/"+id+"/success", "")
		for _, want := range []map[string]any{
			{"kind": "enqueued", "id": id, "queue": "q", "type": "t", "status": "ready"},
			{"kind": "completed", "id": id, "queue": "q", "type": "t", "status": "completed"},
		} {
			if line := next(); line != "event: "+want["kind"].(string) {
				t.Fatalf("got %q", line)
			}
			data, ok := strings.CutPrefix(next(), "data: ")
			got := object(t, data)
			for k, v := range want {
				if got[k] != v || !ok {
					t.Errorf("got %s, want %v", data, want)
				}
			}
			if gone, is := got["gone"]; is != (want["kind"] == "completed") || is && gone != true {
				t.Errorf("got %s: only a job that left is gone", data)
			}
		}
	})
}

// What nobody sends must come by itself, or a proxy cuts the connection.
func TestAnIdleEventStreamShowsThatItLives(t *testing.T) {
	a := start(t, httpapi.Options{Heartbeat: time.Millisecond})
	resp, err := a.client.Do(a.request("GET", "/events", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	for beats := 0; beats < 3; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": heartbeat\n" {
			beats++
		}
	}
}

func TestEventsRefuseWhatTheyDoNotKnow(t *testing.T) {
	a := start(t, httpapi.Options{})
	for query, text := range map[string]string{
		"?kind=exploded":       `kind \"exploded\" is not one of enqueued ready taken`,
		"?queues=q":            `unknown parameter \"queues\"`,
		"?queue=a&queue=b":     "queue is there twice",
		"?kind=taken,enqueues": `kind \"enqueues\"`,
	} {
		if got := a.call("GET", "/events"+query, ""); got.status != 400 || !strings.Contains(got.body, text) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	a.want(406, "*", "GET", "/events", "", "Accept", "application/msgpack")
}

// One token, or one address without tokens, gets half of the places of those who
// listen, and whoever comes then the others.
func TestOneHasHalfOfThoseWhoListen(t *testing.T) {
	a := start(t, httpapi.Options{})
	var ends []func()
	refused := func(what string, header []string) {
		t.Helper()
		resp, err := a.client.Do(a.request("GET", "/events", "", header...))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Fatalf("%s: %d", what, resp.StatusCode)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(body), "at most 64, and 32 with one token or, without tokens, from one address") {
			t.Errorf("%s: %s, %v", what, body, err)
		}
	}
	full := func(who string, header []string) {
		t.Helper()
		for range 32 {
			_, end := a.follow("", header...)
			ends = append(ends, end)
		}
		refused("one more for "+who, header)
	}
	full("an address", nil)
	for _, end := range ends {
		end()
	}
	ends = nil
	root := a.token("", adminToken)
	one, two := a.token(root, `{"name":"one","scopes":["read"]}`), a.token(root, `{"name":"two","scopes":["read"],"queues":["*"]}`)
	a.eventually("those without a token are gone", func() bool { return httpapi.PlacesTaken(a.handler) == 0 })
	full("a token", bearer(one))
	_, end := a.follow("", bearer(root)...)
	end()
	a.eventually("its place is free", func() bool { return httpapi.PlacesTaken(a.handler) == 32 })
	for range 32 {
		a.follow("?queue=q", bearer(two)...)
	}
	refused("one more than all", bearer(root))
	ends[0]()
	a.eventually("its place is free", func() bool { return httpapi.PlacesTaken(a.handler) == 63 })
	a.follow("", bearer(root)...)
}
