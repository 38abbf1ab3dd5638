package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/reply"
)

// target is an endpoint that answers as the test says and keeps what it got.
type target struct {
	*httptest.Server
	mu    sync.Mutex // guards what follows
	got   []*http.Request
	body  []string
	conns int
}

func newTarget(t *testing.T, answer http.HandlerFunc) *target {
	x := &target{}
	x.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		x.mu.Lock()
		x.got, x.body = append(x.got, r), append(x.body, string(body))
		x.mu.Unlock()
		answer(w, r)
	}))
	x.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			x.mu.Lock()
			x.conns++
			x.mu.Unlock()
		}
	}
	x.Start()
	t.Cleanup(x.Close)
	return x
}

func (x *target) sink(t *testing.T, o Options) *Sink {
	t.Helper()
	if o.URL == "" {
		o.URL = x.URL + "/in"
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func answerWith(status int, header map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may be gone
	}
}

func one(body string) *connect.Batch {
	return &connect.Batch{Queue: "reservations", Group: "g1", Messages: []connect.Message{{ID: "m1", Attempt: 1, Body: []byte(body)}}}
}

func three(stop bool) *connect.Batch {
	return &connect.Batch{Queue: "q", Group: "g", Stop: stop, Messages: []connect.Message{
		{ID: "a", Attempt: 1, Body: []byte(`{"n":1}`)},
		{ID: "b", Attempt: 2, Type: "T", Header: map[string]string{"X-H": "v"}, Body: []byte(`[2]`), ContentType: "application/vnd.x+json"},
		{ID: "c", Attempt: 3, Body: []byte{0, 1, 0xff}, ContentType: "application/octet-stream"},
	}}
}

func TestAMessageIsPostedAsItIs(t *testing.T) {
	x := newTarget(t, answerWith(204, nil, ""))
	s := x.sink(t, Options{Header: map[string]string{"Authorization": "Bearer s", "X-Tenant": "ours"}, UserAgent: "reprise/9"})
	b := one("not json \x00")
	b.Messages[0] = connect.Message{
		ID: "m\x01ü", Attempt: 7, Type: "Order", ContentType: "text/plain", Body: []byte("not json \x00"),
		Header: map[string]string{
			"X-Correlation-Hint": "h", "X-Tenant": "theirs", "Traceparent": "00-1", "bad name": "x", "Host": "evil", "Transfer-Encoding": "chunked",
			"Reprise-Id": "forged", "Idempotency-Key": "forged", "X-Two-Lines": "a\r\nX-Injected: b",
		},
	}
	if got := s.Deliver(t.Context(), b); len(got) != 1 || got[0] != (connect.Result{Outcome: job.OK}) {
		t.Fatalf("got %+v", got)
	}
	r := x.got[0]
	want := map[string]string{
		"Reprise-Id": "m?ü", "Reprise-Attempt": "7", "Reprise-Type": "Order", "Reprise-Queue": "reservations", "Reprise-Group": "g1",
		"Idempotency-Key": "m?ü", "Content-Type": "text/plain", "User-Agent": "reprise/9", "Authorization": "Bearer s", "X-Tenant": "ours",
		"X-Correlation-Hint": "h", "Traceparent": "00-1", "X-Two-Lines": "a??X-Injected: b", "X-Injected": "", "Bad name": "",
	}
	for name, value := range want {
		if got := r.Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	if r.Method != http.MethodPost || r.URL.Path != "/in" || strings.HasPrefix(r.Host, "evil") || x.body[0] != "not json \x00" {
		t.Errorf("%s %s to %s with %q", r.Method, r.URL, r.Host, x.body[0])
	}
}

func TestTheStatusIsTheAnswerAndThePolicyDecides(t *testing.T) {
	for _, c := range []struct {
		status     int
		header     map[string]string
		body       string
		outcome    job.Outcome
		message    string
		retryAfter job.Millis
		notBefore  job.Millis
	}{
		{200, nil, "anything", job.OK, "", 0, 0},
		{202, map[string]string{"Retry-After": "9"}, "", job.OK, "", 0, 0},
		{301, map[string]string{"Location": "http://169.254.169.254/"}, "", job.Retried, "redirects are not followed: http://169.254.169.254/", 0, 0},
		{404, nil, "no such\nsecond line", job.Retried, "answered 404 Not Found: no such", 0, 0},
		{408, nil, "", job.Retried, "answered 408 Request Timeout", 0, 0},
		{425, nil, "", job.Retried, "answered 425 Too Early", 0, 0},
		{429, map[string]string{"Retry-After": "120"}, "", job.Retried, "429", 120_000, 0},
		{503, map[string]string{"Retry-After": "Fri, 31 Dec 2027 23:59:59 GMT"}, "", job.Retried, "503", 0, 1830297599000},
		{503, map[string]string{"Retry-After": "99999999999999"}, "", job.Retried, "503", job.Day, 0},
		{503, map[string]string{"Retry-After": "soon"}, "", job.Retried, "503", 0, 0},
		{503, map[string]string{"Retry-After": "-5"}, "", job.Retried, "503", 0, 0},
		{500, nil, "binary\x00", job.Retried, "answered 500 Internal Server Error", 0, 0},
		{599, nil, strings.Repeat("x", 10_000), job.Retried, "xxx…", 0, 0},
	} {
		x := newTarget(t, answerWith(c.status, c.header, c.body))
		r := x.sink(t, Options{}).Deliver(t.Context(), one("{}"))[0]
		if r.Outcome != c.outcome || !strings.Contains(r.Failure.Message, c.message) || r.RetryAfter != c.retryAfter || r.NotBefore != c.notBefore {
			t.Errorf("%d %v: %+v", c.status, c.header, r)
		}
		if c.outcome == job.Retried && (r.Failure.Status != c.status || r.Failure.Timeout) {
			t.Errorf("%d: the failure tells status %d, timeout %v", c.status, r.Failure.Status, r.Failure.Timeout)
		}
		if len(r.Failure.Backtrace) > reply.ExcerptBytesMax || strings.Contains(r.Failure.Backtrace, "\x00") {
			t.Errorf("%d: kept %d bytes of the answer", c.status, len(r.Failure.Backtrace))
		}
		if len(x.got) != 1 {
			t.Errorf("%d: %d requests", c.status, len(x.got))
		}
	}
}

func TestABatchIsOneBody(t *testing.T) {
	x := newTarget(t, answerWith(200, nil, ""))
	s := x.sink(t, Options{Batch: true})
	for _, stop := range []bool{true, false, true} {
		for i, r := range s.Deliver(t.Context(), three(stop)) {
			if r != (connect.Result{Outcome: job.OK}) {
				t.Errorf("message %d: %+v", i, r)
			}
		}
	}
	want := `{"queue":"q","group":"g","mode":"fail_first","messages":[` +
		`{"id":"a","attempt":1,"payload":{"n":1}},` +
		`{"id":"b","attempt":2,"type":"T","headers":{"X-H":"v"},"content_type":"application/vnd.x+json","payload":[2]},` +
		`{"id":"c","attempt":3,"content_type":"application/octet-stream","payload_base64":"AAH/"}]}` + "\n"
	if x.body[0] != want {
		t.Errorf("sent\n%swant\n%s", x.body[0], want)
	}
	if x.body[1] != strings.Replace(want, modeFailFirst, modeAll, 1) {
		t.Errorf("without stop: %s", x.body[1])
	}
	h := x.got[0].Header
	if h.Get("Reprise-Messages") != "3" || h.Get("Content-Type") != "application/json" || h.Get("X-H") != "" || h.Get("Reprise-Id") != "" {
		t.Errorf("headers %v", h)
	}
	if key := h.Get("Idempotency-Key"); len(key) != 32 || key != x.got[2].Header.Get("Idempotency-Key") {
		t.Errorf("the same messages have the keys %q and %q", key, x.got[2].Header.Get("Idempotency-Key"))
	}
	if x.conns != 1 {
		t.Errorf("3 deliveries one after another over %d connections", x.conns)
	}
	fewer := three(false)
	fewer.Messages = fewer.Messages[1:]
	s.Deliver(t.Context(), fewer)
	if h.Get("Idempotency-Key") == x.got[3].Header.Get("Idempotency-Key") {
		t.Error("other messages have the same key")
	}
	broken := one("{half")
	s.Deliver(t.Context(), broken)
	if !strings.Contains(x.body[4], `"payload_base64":"e2hhbGY="`) || x.got[4].Header.Get("Idempotency-Key") != "m1" {
		t.Errorf("a body that is no JSON: %s, %v", x.body[4], x.got[4].Header)
	}
}

// shown writes results so that a table can hold them.
func shown(list []connect.Result) string {
	var out []string
	for _, r := range list {
		text := r.Outcome.String()
		if f := r.Failure; f.Type != "" || f.Message != "" {
			text += " " + f.Type + "/" + f.Message
		}
		for _, m := range []job.Millis{r.RetryAfter, r.Delay} {
			if m != 0 {
				text += " " + m.String()
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// thrice is what all of three messages came to.
func thrice(result string) string { return result + "; " + result + "; " + result }

func TestResultsOfABatchAreTakenMessageByMessage(t *testing.T) {
	js := map[string]string{"Content-Type": "application/json"}
	for _, c := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		want   string
	}{
		{
			"each has its own", 200, js, `{"results":[{"id":"c","outcome":"release","delay_ms":1500},{"id":"a","outcome":"ok"},
			{"id":"b","outcome":"dead","error":{"message":"no","error_type":"Bad","status":422}},{"id":"zz","outcome":"ok"}]}`,
			"ok; dead Bad/no; release 1.5s",
		},
		{
			"waits", 200,
			map[string]string{"Retry-After": "7"},
			`{"results":[{"id":"a","outcome":"retry","retry_after_ms":250},
			{"id":"b","outcome":"retry","retry_after":"3","error":{"message":"m"}},{"id":"c","outcome":"dead"}]}`,
			"retry /the target said retry 250ms; retry /m 3s; dead /the target said dead 7s",
		},
		{
			"what is not named failed", 207, js, `{"results":[{"id":"b","outcome":"ok"}]}`,
			"retry answer/the results say nothing of this message; ok; retry answer/the results say nothing of this message",
		},
		{
			"none named", 200, js, `{"results":[]}`,
			thrice("retry answer/the results say nothing of this message"),
		},
		{
			"some done before a crash", 500, js, `{"results":[{"id":"a","outcome":"ok"}]}`,
			"ok" + strings.Repeat("; retry http 500/answered 500 Internal Server Error: "+`{"results":[{"id":"a","outcome":"ok"}]}`, 2),
		},
		{
			"stopped, and yet one done", 200, js, `{"results":[{"id":"a","outcome":"retry","error":{"message":"x"}},{"id":"b","outcome":"dead"},{"id":"c","outcome":"ok"}]}`,
			"retry /x; dead /the target said dead; ok",
		},
		{
			"unknown word", 200, js, `{"results":[{"id":"a","outcome":"maybe"},{"id":"b","outcome":"ok"},{"id":"c","outcome":""}]}`,
			`retry answer/the outcome of this message is "maybe"; it has to be ok, retry, dead or release; ok; ` +
				`retry answer/the outcome of this message is ""; it has to be ok, retry, dead or release`,
		},
		{
			"named twice", 200, js, `{"results":[{"id":"a","outcome":"ok"},{"id":"b","outcome":"ok"},{"id":"c","outcome":"ok"},{"id":"b","outcome":"dead"}]}`,
			"ok; retry answer/the results speak of this message twice; ok",
		},
		{
			"negative numbers", 200, js, `{"results":[{"id":"a","outcome":"release","delay_ms":-5},{"id":"b","outcome":"retry","retry_after_ms":-1},{"id":"c","outcome":"ok"}]}`,
			"release; retry /the target said retry; ok",
		},
		{"no results", 200, js, `{"done":true}`, "ok; ok; ok"},
		{"no JSON", 200, map[string]string{"Content-Type": "text/html"}, `{"results":[`, "ok; ok; ok"},
		{
			"broken JSON", 200, js, `{"results":[`,
			thrice("retry answer/the results cannot be read: unexpected end of JSON input"),
		},
		{
			"other shapes", 200, js, `{"results":{"a":"ok"}}`,
			thrice("retry answer/the results cannot be read: json: cannot unmarshal object into Go struct field answer.results of type []web.said"),
		},
		{
			"as a whole", 503,
			map[string]string{"Retry-After": "2"},
			"",
			thrice("retry http 503/answered 503 Service Unavailable 2s"),
		},
		{"as a whole, stopped", 400, nil, "", thrice("retry http 400/answered 400 Bad Request")},
		{
			"too long", 200, js, `{"results":[` + strings.Repeat(" ", resultsBytesMax) + `]}`,
			thrice("retry answer/the answer is longer than 8388608 bytes"),
		},
	} {
		x := newTarget(t, answerWith(c.status, c.header, c.body))
		if got := shown(x.sink(t, Options{Batch: true}).Deliver(t.Context(), three(true))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestAFailureOfTheTargetIsKeptInBounds(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	body, err := json.Marshal(map[string]any{"results": []any{map[string]any{
		"id": "m1", "outcome": "retry", "error": map[string]any{"message": long, "error_type": long, "backtrace": long, "status": 70_000, "timeout": true},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	x := newTarget(t, answerWith(200, nil, string(body)))
	f := x.sink(t, Options{Batch: true}).Deliver(t.Context(), one("{}"))[0].Failure
	if len(f.Message) != job.MatchBytesMax || len(f.Type) != typeBytesMax || len(f.Backtrace) != reply.ExcerptBytesMax || f.Status != 0 || !f.Timeout {
		t.Errorf("kept %d, %d and %d bytes, status %d, timeout %v", len(f.Message), len(f.Type), len(f.Backtrace), f.Status, f.Timeout)
	}
}

// An endpoint that answers with what it was sent tells no secret to those who may read failures.
func TestSecretsAreMaskedInWhatIsKeptOfAnAnswer(t *testing.T) {
	const secret = `s3cr"t/<1>`
	long := strings.Repeat("x", reply.ExcerptBytesMax-4) // a secret that the bounds of an excerpt would cut is masked before
	raw, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	said := func(outcome string) string {
		return `{"results":[{"id":"m1","outcome":` + outcome + `,"error":{"message":` + string(raw) + `,"error_type":` + string(raw) + `,"backtrace":` + string(raw) + `}}]}`
	}
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		batch  bool
	}{
		"body":        {500, nil, "Authorization: Bearer " + secret, false},
		"JSON":        {500, nil, string(raw), false},
		"other JSON":  {500, nil, `"s3cr\"t\/<1>"`, false},
		"HTML":        {500, nil, "<p>s3cr&#34;t/&lt;1&gt;</p>", false},
		"cut body":    {500, nil, long + secret, false},
		"cut line":    {500, nil, strings.Repeat("x", 196) + secret, false},
		"redirect":    {302, map[string]string{"Location": "/login?key=" + secret}, "", false},
		"result":      {200, nil, said(`"retry"`), true},
		"wrong one":   {200, nil, said(string(raw)), true},
		"cut result":  {200, nil, strings.Replace(said(`"dead"`), `"backtrace":"`, `"backtrace":"`+long, 1), true},
		"a whole one": {503, nil, "no " + secret, true},
	} {
		x := newTarget(t, answerWith(c.status, c.header, c.body))
		s := x.sink(t, Options{Batch: c.batch, Header: map[string]string{"Authorization": "Bearer " + secret}, Mask: []string{"abc", "", secret}})
		b := one(`"abc"`)
		f := s.Deliver(t.Context(), b)[0].Failure
		if text := f.Type + "\n" + f.Message + "\n" + f.Backtrace; strings.Contains(text, "s3c") || !strings.Contains(text, "***") {
			t.Errorf("%s: kept is %q", name, text)
		}
	}
	raw500 := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 500 no abcdefg here\r\nContent-Length: 0\r\n\r\n") // the client may be gone
		_ = conn.Close()
	})
	if f := raw500.sink(t, Options{Mask: []string{"abcdefg"}}).Deliver(t.Context(), one("1"))[0].Failure; f.Message != "answered 500 no ******** here" {
		t.Errorf("of a status line: %q", f.Message)
	}
	noHTTP := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "no abcdefg\r\n\r\n") // the client may be gone
		_ = conn.Close()
	})
	if f := noHTTP.sink(t, Options{Mask: []string{"abcdefg"}}).Deliver(t.Context(), one("1"))[0].Failure; strings.Contains(f.Message, "abcdefg") || !strings.Contains(f.Message, "****") {
		t.Errorf("of an answer that is no HTTP: %q", f.Message)
	}
	if got := reply.Masks([]string{"abcd", "abcdef", "abc\"", "Bearer x-y z"}).Replace("abcdef-abc\\\"-abcd-x-y z"); got != "********-********-********-********" {
		t.Errorf("of secrets that begin alike: %q", got)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	second := newTarget(t, answerWith(200, nil, ""))
	first := newTarget(t, answerWith(307, map[string]string{"Location": second.URL}, ""))
	for _, b := range []bool{false, true} {
		if r := first.sink(t, Options{Batch: b}).Deliver(t.Context(), one("{}"))[0]; r.Failure.Status != 307 {
			t.Errorf("got %+v", r)
		}
	}
	if len(second.got) != 0 {
		t.Error("the redirect was followed")
	}
}

func TestNoAnswerIsAFailureOfItsOwnKind(t *testing.T) {
	hang := make(chan struct{})
	slow := newTarget(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	defer close(hang)
	r := slow.sink(t, Options{Timeout: time.Millisecond}).Deliver(t.Context(), one("{}"))[0]
	if r.Outcome != job.Retried || r.Failure.Type != connect.TypeTimeout || !r.Failure.Timeout || r.Failure.Message != "no answer within 1ms" {
		t.Errorf("slow: %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := slow.sink(t, Options{}).Deliver(ctx, one("{}"))[0]; r != (connect.Result{Outcome: job.Released}) {
		t.Errorf("stopped by us: %+v", r)
	}
	late, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if r := slow.sink(t, Options{}).Deliver(late, one("{}"))[0]; r != (connect.Result{Outcome: job.Released}) {
		t.Errorf("the caller's own time: %+v", r)
	}

	gone := newTarget(t, answerWith(200, nil, ""))
	gone.Close()
	if r := gone.sink(t, Options{}).Deliver(t.Context(), one("{}"))[0]; r.Failure.Type != connect.TypeNetwork || r.Outcome != job.Retried || strings.Contains(r.Failure.Message, "Post ") {
		t.Errorf("gone: %+v", r)
	}

	cut := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"results":`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if r := cut.sink(t, Options{Batch: true}).Deliver(t.Context(), one("{}"))[0]; r.Outcome != job.Retried || !strings.Contains(r.Failure.Message, "broke off") {
		t.Errorf("an answer that broke off: %+v", r)
	}
	if r := cut.sink(t, Options{}).Deliver(t.Context(), one("{}"))[0]; r.Outcome != job.OK {
		t.Errorf("the status had arrived: %+v", r)
	}
}

func TestTheRulesOfEgressHoldAtEachDial(t *testing.T) {
	x := newTarget(t, answerWith(200, nil, ""))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(x.URL, "http://"))
	any, err := connect.ParseEgress([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	// The name passes the pattern; the address it leads to does not.
	r := x.sink(t, Options{URL: "http://localhost:" + port + "/", Egress: any}).Deliver(t.Context(), one("{}"))[0]
	if r.Failure.Type != connect.TypeEgress || r.Outcome != job.Retried || !strings.Contains(r.Failure.Message, "no public address") {
		t.Errorf("got %+v", r)
	}
	t.Setenv("HTTP_PROXY", x.URL)
	if r := x.sink(t, Options{URL: "http://localhost:" + port + "/", Egress: any}).Deliver(t.Context(), one("{}"))[0]; r.Failure.Type != connect.TypeEgress {
		t.Errorf("through a proxy: %+v", r)
	}
	if len(x.got) != 0 {
		t.Error("it was called")
	}
}

func TestOptionsThatCannotBeKeptAreRefused(t *testing.T) {
	nothing, err := connect.ParseEgress(nil)
	if err != nil {
		t.Fatal(err)
	}
	many := map[string]string{}
	for i := range headersMax + 1 {
		many["X-"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = ""
	}
	for _, c := range []struct {
		o           Options
		field, want string
	}{
		{Options{}, "url", "no web address"},
		{Options{URL: "http://169.254.169.254/latest/meta-data"}, "url", "never called"},
		{Options{URL: "http://example.com", Egress: nothing}, "url", "allows nothing"},
		{Options{URL: "http://example.com", Timeout: -1}, "timeout", "must be between"},
		{Options{URL: "http://example.com", Timeout: TimeoutMax + 1}, "timeout", "must be between"},
		{Options{URL: "http://example.com", Connections: -1}, "connections", "must be between"},
		{Options{URL: "http://example.com", Connections: ConnectionsMax + 1}, "connections", "must be between"},
		{Options{URL: "http://example.com", Header: map[string]string{"a b": ""}}, "header", "no header"},
		{Options{URL: "http://example.com", Header: map[string]string{"a": "b\nc"}}, "header", "no header"},
		{Options{URL: "http://example.com", Header: map[string]string{"host": "x"}}, "header", "by Reprise itself"},
		{Options{URL: "http://example.com", Header: map[string]string{"reprise-id": "x"}}, "header", "by Reprise itself"},
		{Options{URL: "http://example.com", Header: many}, "header", "at most"},
	} {
		_, err := New(c.o)
		e, ok := err.(*job.Error) //nolint:errorlint // exactly that, so that the field is seen
		if !ok || e.Field != c.field || e.Kind != job.Invalid || !strings.Contains(e.Text, c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

func TestManyMayDeliverAtOnce(t *testing.T) {
	x := newTarget(t, answerWith(200, nil, ""))
	s := x.sink(t, Options{Connections: 4})
	for range 5 {
		var all sync.WaitGroup
		results := make([]connect.Result, 4)
		for i := range results {
			all.Go(func() { results[i] = s.Deliver(t.Context(), one("{}"))[0] })
		}
		all.Wait()
		if slices.ContainsFunc(results, func(r connect.Result) bool { return r.Outcome != job.OK }) {
			t.Fatalf("got %+v", results)
		}
	}
	if len(x.got) != 20 {
		t.Errorf("%d requests", len(x.got))
	}
}

func TestABatchOfTheWrongSizeIsOurOwnFault(t *testing.T) {
	x := newTarget(t, answerWith(200, nil, ""))
	for _, b := range []*connect.Batch{{}, three(false)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d messages are delivered as one", len(b.Messages))
				}
			}()
			x.sink(t, Options{}).Deliver(t.Context(), b)
		}()
	}
	if bytes.ContainsAny([]byte(strings.Join(x.body, "")), "{") {
		t.Error("something was sent")
	}
}

// A reload leaves a sink alone that sends what it would send.
func TestSinksWithTheSameHeadersAreTheSame(t *testing.T) {
	made := func(key string) *Sink {
		s, err := New(Options{URL: "http://127.0.0.1:1/", Header: map[string]string{"X-Key": key}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if a := made("a"); !a.Same(made("a")) || a.Same(made("b")) {
		t.Error("sinks are compared wrongly")
	}
}
