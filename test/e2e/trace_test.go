package e2e

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/reprisehq/reprise/wire"
)

// collector takes spans by OTLP over HTTP, as any collector does.
type collector struct {
	*httptest.Server

	mu      sync.Mutex // guards what follows
	spans   []*tracepb.Span
	service string
	header  string // x-key of the latest call
	bad     []string
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	from := io.Reader(r.Body)
	var err error
	if r.Header.Get("Content-Encoding") == "gzip" {
		from, err = gzip.NewReader(r.Body)
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(from)
	}
	var got tracepb.TracesData // the same on the wire as an export request
	if err == nil {
		err = proto.Unmarshal(body, &got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.bad = append(c.bad, fmt.Sprintf("%s %s: %v", r.Method, r.URL, err))
	}
	c.header = r.Header.Get("x-key")
	for _, rs := range got.ResourceSpans {
		for _, kv := range rs.Resource.Attributes {
			if kv.Key == "service.name" {
				c.service = kv.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

// wait returns what arrived as soon as there are n spans with the name.
func (c *collector) wait(t *testing.T, n int, name string) (all []*tracepb.Span) {
	t.Helper()
	until(t, fmt.Sprintf("%d spans %q", n, name), func() (bool, string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var names []string
		found := 0
		for _, s := range c.spans {
			names = append(names, s.Name)
			if s.Name == name {
				found++
			}
		}
		all = slices.Clone(c.spans)
		return found >= n, fmt.Sprint(names, c.bad)
	})
	return all
}

func attributes(s *tracepb.Span) map[string]string {
	out := map[string]string{}
	for _, kv := range s.Attributes {
		if text := kv.Value.GetStringValue(); text != "" {
			out[kv.Key] = text
		} else {
			out[kv.Key] = fmt.Sprint(kv.Value.GetIntValue())
		}
	}
	return out
}

// traced takes the job, as a worker does, and returns it with its lease.
func (c *client) traced(t *testing.T) wire.Job {
	t.Helper()
	var out struct{ Jobs []wire.Job }
	c.must(t, 200, &out, "POST", "/jobs/lease", `{"queues":["mail"],"lease_ms":600000,"wait_ms":20000,"worker":"w1"}`)
	if len(out.Jobs) != 1 {
		t.Fatalf("%d jobs were leased", len(out.Jobs))
	}
	return out.Jobs[0]
}

func (c *client) ends(t *testing.T, j wire.Job, how string) {
	t.Helper()
	var out struct{ Verdicts []wire.Verdict }
	c.must(t, 200, &out, "POST", "/jobs/settle", fmt.Sprintf(`[{"id":"%s","lease":"%s",%s}]`, j.ID, j.Lease, how))
	if len(out.Verdicts) != 1 || out.Verdicts[0].Code != "" {
		t.Fatalf("refused: %+v", out)
	}
}

// A job that fails twice and then succeeds is one trace, and a kill -9 while it
// runs for the second time makes no gap in it.
func TestOneTraceTellsAllAttemptsOverAKill(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const producers = "00-" + trace + "-" + parent + "-01"
	to := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20secret")
	t.Setenv("OTEL_SERVICE_NAME", "mailer")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
	dir := t.TempDir()
	s := start(t, dir)
	c := dial(s.url)
	defer c.close()

	// Neither a job without a trace nor one whose caller does not record makes spans.
	for _, own := range []string{"", `,"traceparent":"00-` + trace + `-` + parent + `-00"`} {
		c.must(t, 201, nil, "POST", "/jobs", `{"type":"x","queue":"mail","payload":1`+own+`}`)
		j := c.traced(t)
		if want := strings.TrimSuffix(strings.TrimPrefix(own, `,"traceparent":"`), `"`); j.Traceparent != want {
			t.Errorf("a job without spans is given to its worker with %q, want %q", j.Traceparent, want)
		}
		c.ends(t, j, `"outcome":"ok"`)
	}

	var added wire.Enqueued
	c.must(t, 201, &added, "POST", "/jobs",
		`{"type":"welcome","queue":"mail","group":"g","payload":{"a":1},"retry":{"limit":5,"curve":{"kind":"list","delays":["1ms"],"jitter":"none"}}}`,
		"traceparent", producers)
	if added.Traceparent != producers {
		t.Fatalf("the job carries %q", added.Traceparent)
	}
	var runs []string // span ids that workers were given
	take := func() wire.Job {
		t.Helper()
		j := c.traced(t)
		if j.ID != added.ID || !strings.HasPrefix(j.Traceparent, "00-"+trace+"-") || !strings.HasSuffix(j.Traceparent, "-01") {
			t.Fatalf("the worker is given job %s with %q", j.ID, j.Traceparent)
		}
		runs = append(runs, strings.Split(j.Traceparent, "-")[2])
		var shown wire.Job
		if c.must(t, 200, &shown, "GET", "/jobs/"+j.ID, nil); shown.Traceparent != producers {
			t.Errorf("the job shows %q, not what its producer sent", shown.Traceparent)
		}
		return j
	}
	c.ends(t, take(), `"outcome":"retry","error":{"message":"no route","error_type":"Unreachable"}`)
	second := take()
	c.must(t, 204, nil, "POST", "/jobs/"+second.ID+"/progress", `{"lease":"`+second.Lease+`","checkpoint":{"row":1}}`) // the take is on disk
	to.wait(t, 2, "wait mail")
	s.kill()

	s = start(t, dir)
	c = dial(s.url)
	defer c.close()
	c.ends(t, second, `"outcome":"retry","error":{"message":"still none","error_type":"Unreachable"}`)
	c.ends(t, take(), `"outcome":"ok"`)
	to.wait(t, 3, "run mail")
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkTree(t, to.wait(t, 3, "run mail"), added.ID, trace, parent, runs)
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.service != "mailer" || to.header != "a secret" || len(to.bad) > 0 {
		t.Errorf("service %q, header %q, bad calls %q", to.service, to.header, to.bad)
	}
}

// checkTree looks at every span of the job: enqueue under the producer's, all
// waits and runs under enqueue, each linked to the run before it.
func checkTree(t *testing.T, spans []*tracepb.Span, id, trace, parent string, runs []string) {
	t.Helper()
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int {
		if d := int64(a.EndTimeUnixNano) - int64(b.EndTimeUnixNano); d != 0 {
			return int(d)
		}
		return strings.Compare(order(a), order(b))
	})
	want := []string{
		"enqueue mail", "wait mail 1", "run mail 1 retry Unreachable", "wait mail 2", "run mail 2 retry Unreachable", "wait mail 3", "run mail 3 ok",
	}
	if len(spans) != len(want) {
		t.Fatalf("%d spans, want %d: %v", len(spans), len(want), spans)
	}
	enqueue := hex.EncodeToString(spans[0].SpanId)
	seen := map[string]bool{}
	ran := 0
	for i, s := range spans {
		a := attributes(s)
		text := strings.TrimSpace(strings.Join([]string{s.Name, a["reprise.attempt"], a["reprise.outcome"], a["error.type"]}, " "))
		if text = strings.ReplaceAll(text, "  ", " "); text != want[i] {
			t.Errorf("span %d is %q, want %q", i, text, want[i])
		}
		under := enqueue
		if i == 0 {
			under = parent
		}
		own := hex.EncodeToString(s.SpanId)
		if hex.EncodeToString(s.TraceId) != trace || hex.EncodeToString(s.ParentSpanId) != under || seen[own] {
			t.Errorf("%s: trace %x, span %x, parent %x", text, s.TraceId, s.SpanId, s.ParentSpanId)
		}
		seen[own] = true
		if a["messaging.system"] != "reprise" || a["messaging.destination.name"] != "mail" || a["messaging.message.id"] != id ||
			a["reprise.job.type"] != "welcome" || a["reprise.job.group"] != "g" || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s: %v", text, s)
		}
		var links []string
		for _, l := range s.Links {
			if hex.EncodeToString(l.TraceId) != trace {
				t.Errorf("%s is linked to the trace %x", text, l.TraceId)
			}
			links = append(links, hex.EncodeToString(l.SpanId))
		}
		switch before := runs[:ran]; {
		case ran == 0 && len(links) != 0, ran > 0 && (len(links) != 1 || links[0] != before[ran-1]):
			t.Errorf("%s is linked to %q, want the last of %q", text, links, before)
		}
		op, kind, failed := strings.Fields(s.Name)[0], tracepb.Span_SPAN_KIND_INTERNAL, false
		switch op {
		case "enqueue":
			kind = tracepb.Span_SPAN_KIND_PRODUCER
			if a["messaging.operation.type"] != "send" || a["messaging.message.body.size"] != "7" {
				t.Errorf("%s: %v", text, a)
			}
		case "wait":
			if i > 0 && s.StartTimeUnixNano < spans[i-1].StartTimeUnixNano || s.EndTimeUnixNano != spans[i+1].StartTimeUnixNano {
				t.Errorf("%s: from %d to %d", text, s.StartTimeUnixNano, s.EndTimeUnixNano)
			}
		case "run":
			kind = tracepb.Span_SPAN_KIND_CONSUMER
			if failed = ran < 2; own != runs[ran] || a["messaging.operation.type"] != "process" || a["reprise.holder"] != "w1" {
				t.Errorf("%s: span %s, the worker was told %s; %v", text, own, runs[ran], a)
			}
			ran++
		}
		if s.Kind != kind || a["messaging.operation.name"] != op || (s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR) != failed {
			t.Errorf("%s: kind %s, status %s, %v", text, s.Kind, s.Status, a)
		}
		if failed && s.Status.Message != []string{"no route", "still none"}[ran-1] {
			t.Errorf("%s: status %s", text, s.Status)
		}
	}
}

// order puts spans in sequence that end in the same millisecond.
func order(s *tracepb.Span) string {
	a := attributes(s)
	return map[string]string{"enqueue": "0", "wait": a["reprise.attempt"] + "w", "run": a["reprise.attempt"] + "x"}[strings.Fields(s.Name)[0]]
}

func TestASettingOfTracesThatCannotWorkIsRefused(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "hush")
	said := refusesToStart(t, t.TempDir())
	if !strings.Contains(said, "OTEL_EXPORTER_OTLP_HEADERS must be") || strings.Contains(said, "hush") {
		t.Error(said)
	}
}

func TestACollectorThatIsGoneHoldsNobodyUp(t *testing.T) {
	to := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	to.Close()
	s := start(t, t.TempDir(), "--shutdown-timeout", "1s")
	c := dial(s.url)
	defer c.close()
	for range 20 {
		c.must(t, 201, nil, "POST", "/jobs", `{"type":"x","queue":"mail","payload":1}`,
			"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		c.ends(t, c.traced(t), `"outcome":"ok"`)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
