package httpapi_test

import (
	"bytes"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/httpapi"
)

const noID = "03gq0x7k2m4v9c1d8f5h6j0a1"

func TestPathsAreTakenAsTheyAre(t *testing.T) {
	bothProtocols(t, httpapi.Options{Version: "v1"}, func(t *testing.T, a *api) {
		const notFound = `{"error":"not found","code":"not_found"}`
		const noJob = `{"error":"job not found","code":"not_found"}`
		const notHeld = `{"error":"job not found in in-flight set","code":"not_found"}`
		for _, c := range []struct {
			method, path, sent string
			status             int
			body               string
		}{
			{"GET", "/nope", "", 404, notFound},
			{"GET", "/jobs/", "", 404, notFound},
			{"GET", "//jobs", "", 404, notFound},
			{"GET", "/jobs//errors", "", 404, notFound},
			{"GET", "/jobs/../queues", "", 404, notFound},
			{"GET", "/queues/", "", 404, notFound},
			{"GET", "/JOBS", "", 404, notFound},
			{"POST", "/jobs/x/else", "", 404, notFound},
			{"GET", "/jobs/x/errors/1/2", "", 404, notFound},
			{"GET", "/jobs/x", "", 404, noJob},
			{"GET", "/jobs/x%2Ferrors", "", 404, noJob},
			{"GET", "/jobs/" + noID, "", 404, noJob},
			{"GET", "/jobs/" + noID + "/errors", "", 404, noJob},
			{"GET", "/jobs/" + noID + "/errors/1", "", 404, noJob},
			{"DELETE", "/jobs/" + noID, "", 404, noJob},
			{"POST", "/jobs/" + noID + "/success", "", 404, notHeld},
			{"POST", "/jobs/x/success", "ignored {", 404, notHeld},
			{"POST", "/jobs/" + noID + "/failure", `{"message":"m"}`, 404, notHeld},
			{"POST", "/jobs/x/failure", `{"message":"m"}`, 404, notHeld},
			{"POST", "/jobs/x/failure", `{}`, 400, `{"error":"message is missing","code":"invalid"}`},
			{"GET", "/jobs/" + noID + "/errors/one", "", 400, `{"error":"the number of the attempt must be a whole number","code":"invalid"}`},
			{"GET", "/queues/a,b", "", 400, `{"error":"queue must not contain ','","code":"invalid"}`},
			{"GET", "/health", "", 200, `{"status":"ok"}`},
			{"GET", "/ready", "", 200, `{"status":"ready"}`},
			{"GET", "/", "", 200, `{"product":"reprise","what":"a durable work queue","look_at":["/openapi.json","/version","/health","/ready","/queues","/jobs","/dead","/metrics"],"command_line":"reprise --help"}`},
			{"GET", "/version", "", 200, `{"version":"0.7.0","product":"reprise","reprise":"v1"}`},
			{"GET", "/queues", "", 200, `{"queues":[]}`},
			{"GET", "/jobs/count?", "", 200, `{"count":0}`},
			{"GET", "/jobs?", "", 200, `{"jobs":[],"pages":{"self":"/jobs?order=asc&limit=50","next":null,"prev":null}}`},
			{"HEAD", "/jobs", "", 200, ""},
			{"HEAD", "/jobs/take", "", 200, ""},
			{"HEAD", "/jobs/" + noID, "", 404, ""},
		} {
			a.want(c.status, c.body, c.method, c.path, c.sent)
		}
	})
}

func TestAWrongMethodSaysWhichAreRight(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", "/jobs", "DELETE, GET, HEAD, PATCH, POST"},
		{"OPTIONS", "/jobs", "DELETE, GET, HEAD, PATCH, POST"},
		{"GET", "/reset", "POST"},
		{"GET", "/jobs/bulk", "POST"},
		{"POST", "/jobs/take", "GET, HEAD"},
		{"DELETE", "/jobs/take", "GET, HEAD"},
		{"GET", "/jobs/success", "POST"},
		{"POST", "/jobs/" + noID, "DELETE, GET, HEAD, PATCH"},
		{"GET", "/jobs/" + noID + "/failure", "POST"},
		{"DELETE", "/queues/q", "GET, HEAD, PATCH"},
		{"POST", "/health", "GET, HEAD"},
	} {
		got := a.call(c.method, c.path, "")
		if got.status != 405 || got.body != "" || got.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: got %d %q, Allow %q", c.method, c.path, got.status, got.body, got.header.Get("Allow"))
		}
	}
}

func TestRefusalsNameTheField(t *testing.T) {
	a := start(t, httpapi.Options{})
	const good = `{"type":"t","queue":"q","payload":1}`
	for _, c := range []struct{ path, sent, text string }{
		{"/jobs", `{"type":"t","queue":"","payload":1}`, "queue must not be empty"},
		{"/jobs", `{"type":"t","queue":"q","payload":1,"priority":65536}`, "priority must be"},
		{"/jobs", `{"type":"t","queue":"q","payload":1,"budgets":{}}`, "budgets must be an array"},
		{"/jobs", ``, "the body is empty; send a JSON object with type, queue, payload"},
		{"/jobs/bulk", `{"jobs":[` + good + `,{"type":"t*","queue":"q","payload":1}]}`, "jobs[1]: type must not contain '*'"},
		{"/jobs/success", `{"ids":[]}`, "ids must not be empty"},
		{"/jobs/settle", `[{}]`, "settles[0]: id is missing"},
		{"/jobs/lease", `{"max":0}`, "max must be a whole number from 1 to 1000"},
		{"/jobs/lease", `{"max":1.5}`, "max must be a whole number"},
		{"/jobs/lease", `{"queues":"q"}`, "queues must be an array"},
		{"/jobs/lease", `{"queues":[1]}`, "queues[0] must be a string"},
		{"/jobs/lease", `{"properties":{"a":1}}`, "properties.a must be a string"},
		{"/jobs/lease", `{"lease_ms":0}`, "lease_ms must be"},
		{"/jobs/lease", `{"wait_ms":300001}`, "wait_ms must be a whole number from 0 to 300000"},
		{"/jobs/lease", `{"worker":"a,b"}`, "worker must not contain ','"},
		{"/jobs/lease", `[]`, "the body must be an object"},
		{"/jobs/lease", `{`, "invalid JSON: "},
		{"/jobs/extend", `{}`, "leases is missing"},
		{"/jobs/extend", `{"secret":"s"}`, "worker is missing: whose secret is it?"},
		{"/jobs/extend", `{"leases":[{"id":"x"}]}`, "leases[0].id is refused: "},
		{"/jobs/extend", `{"leases":[{"id":"` + noID + `","lease":"x"}]}`, "leases[0].lease is refused: "},
	} {
		got := a.call("POST", c.path, c.sent)
		text, _ := object(t, got.body)["error"].(string)
		if got.status != 400 || !strings.HasPrefix(text, c.text) {
			t.Errorf("POST %s %s\n got %d %s\nwant %s", c.path, c.sent, got.status, got.body, c.text)
		}
	}
	for path, text := range map[string]string{
		"/jobs?limit=0":                 "limit must be",
		"/jobs?nope=1":                  "invalid query parameters: ",
		"/jobs/count?status=x":          "status must be",
		"/jobs/" + noID + "/errors?x=1": "invalid query parameters: ",
		"/jobs/take?prefetch=-1":        "prefetch must be",
		"/jobs/take?nope=1":             "invalid query parameters: ",
		"/jobs/take?prop=x":             "prop must be",
		"/jobs/take?lease=stream":       "lease must be token",
		"/jobs/take?lease=token":        "lease=token needs to know",
	} {
		got := a.call("GET", path, "")
		if said, _ := object(t, got.body)["error"].(string); got.status != 400 || !strings.HasPrefix(said, text) {
			t.Errorf("GET %s\n got %d %s\nwant %s", path, got.status, got.body, text)
		}
	}
	if got := a.call("GET", "/jobs/count", ""); got.body != `{"count":0}` {
		t.Errorf("refused requests left %s", got.body)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	bothProtocols(t, httpapi.Options{BodyMax: 200, InflightMax: 300}, func(t *testing.T, a *api) {
		big := `{"type":"t","queue":"q","payload":"` + strings.Repeat("x", 200) + `"}`
		const tooLarge = `{"error":"the body is larger than 200 bytes","code":"too_large"}`
		a.want(413, tooLarge, "POST", "/jobs", big)
		unsized := a.request("POST", "/jobs", big)
		unsized.Body, unsized.ContentLength = io.NopCloser(strings.NewReader(big)), -1
		if got := a.do(unsized); got.status != 413 || got.body != tooLarge {
			t.Errorf("without a length: got %d %s", got.status, got.body)
		}
		a.put("")
	})
}

// stall sends a request whose body does not come to its end.
func (a *api) stall(path, token string, sent int) net.Conn {
	a.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	head := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Length: " + strconv.Itoa(sent+1) + "\r\n\r\n"
	_, _ = io.WriteString(conn, head+strings.Repeat(" ", sent)) // it may be refused before its end
	return conn
}

// Bodies that stall half-way count, for all together and for the token they came
// with, and give back what they had when they end. What workers say finds room.
func TestRequestsInWorkAreBounded(t *testing.T) {
	a := start(t, httpapi.Options{BodyMax: 10 << 20, InflightMax: 10 << 20, Upload: httpapi.Upload{Bytes: -1}})
	root := a.token("", adminToken)
	tokens := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		tokens[name] = a.token(root, `{"name":"`+name+`","scopes":["admin"]}`)
	}
	job := `{"type":"t","queue":"q","payload":"` + strings.Repeat("x", 8<<10) + `"}`
	settle := `[` + strings.Repeat(" ", 20<<10) + `{"id":"` + noID + `","outcome":"ok"}]`
	as := func(token, path, body string) answer {
		return a.call("POST", path, body, "Authorization", "Bearer "+tokens[token])
	}
	enqueues := func(token string) bool { return as(token, "/jobs", job).status == 201 }
	var open []net.Conn
	for i, path := range []string{"/jobs", "/jobs/settle"} {
		token := []string{"a", "b"}[i]
		open = append(open, a.stall(path, tokens[token], 5<<20))
		a.eventually("it came so far", func() bool { return httpapi.BytesOfBodies(a.handler) == int64(i+1)*5<<20 })
		if got := as(token, "/jobs", job); got.status != 503 || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "max_inflight_bytes") {
			t.Errorf("%d %s %s", got.status, got.header, got.body)
		}
		if other := enqueues("c"); other != (i == 0) {
			t.Errorf("an enqueue of another token is taken: %t, while %d bodies stall", other, i+1)
		}
		for token := range tokens {
			if got := as(token, "/jobs/settle", settle); got.status != 200 {
				t.Errorf("a settle of %s: %d %s", token, got.status, got.body)
			}
		}
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	a.eventually("enqueues are taken again", func() bool { return enqueues("a") && enqueues("b") && enqueues("c") })
}

// A body that comes more slowly than it must is refused, and its connection ends.
func TestABodyThatStallsIsRefused(t *testing.T) {
	a := start(t, httpapi.Options{Upload: httpapi.Upload{Bytes: 1 << 20, Within: 50 * time.Millisecond}})
	conn := a.stall("/jobs", "", 10_000)
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") || !strings.Contains(string(got), "min_upload_rate") || !strings.Contains(string(got), "Connection: close") {
		t.Errorf("%s (%v)", got, err)
	}
	settle, err := io.ReadAll(a.stall("/jobs/settle", "", 10_000)) // 408 is final for workers
	if err != nil || !strings.HasPrefix(string(settle), "HTTP/1.1 503 ") || !strings.Contains(string(settle), "Retry-After: 1") {
		t.Errorf("a settle: %s (%v)", settle, err)
	}
	a = start(t, httpapi.Options{Upload: httpapi.Upload{Bytes: 1 << 20, Within: time.Minute}})
	if got := a.call("POST", "/jobs", `{"type":"t","queue":"q","payload":"`+strings.Repeat("x", 4<<20)+`"}`); got.status != 201 {
		t.Errorf("one that comes at once: %d %s", got.status, got.body)
	}
}

// The memory that becomes of a body counts, too.
func TestWhatBecomesOfABodyCounts(t *testing.T) {
	a := start(t, httpapi.Options{BodyMax: 1 << 20, InflightMax: 1 << 20})
	conn := a.stall("/jobs", "", 100<<10)
	a.eventually("it came so far", func() bool { return httpapi.BytesOfBodies(a.handler) == 100<<10 })
	one := `{"type":"t","queue":"q","payload":1}`
	many := `{"jobs":[` + strings.Repeat(one+",", 999) + one + `]}`
	a.want(503, "*", "POST", "/jobs/bulk", many)
	_ = conn.Close()
	a.eventually("alone it is taken", func() bool { return a.call("POST", "/jobs/bulk", many).status == 201 })
}

func TestOnlyWhoKnowsOurNameGetsIn(t *testing.T) {
	a := start(t, httpapi.Options{Live: httpapi.NewLive(httpapi.Changeable{AllowHosts: []string{"Queue.example"}})})
	own := strings.TrimPrefix(a.url, "http://")
	for _, c := range []struct {
		name, host string
		header     []string
		status     int
	}{
		{"the address", own, nil, 200},
		{"localhost", "localhost:1234", nil, 200},
		{"a name below localhost", "reprise.localhost", nil, 200},
		{"with a dot at the end", "LOCALHOST.", nil, 200},
		{"another loopback address", "127.8.8.8:80", nil, 200},
		{"loopback, version 6", "[::1]:7890", nil, 200},
		{"an allowed name", "queue.EXAMPLE:80", nil, 200},
		{"a page's own name, bound to this address", "evil.example:7890", nil, 403},
		{"a name that only starts right", "localhost.evil.example", nil, 403},
		{"another address", "10.1.2.3:7890", nil, 403},
		{"our own page", own, []string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, 200},
		{"an allowed page", own, []string{"Origin", "https://queue.example"}, 200},
		{"no page", own, []string{"Sec-Fetch-Site", "none"}, 200},
		{"another site's page", own, []string{"Origin", "http://evil.example"}, 403},
		{"another port's page", own, []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"a page without a name", own, []string{"Origin", "null"}, 403},
		{"another port's image", own, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"another site's image", own, []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := a.call("GET", "/health", "", append(c.header, "Host", c.host)...)
			if got.status != c.status || c.status == 403 && object(t, got.body)["code"] != "forbidden" {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
}

func TestAPanicIsA500AndLoggedOnce(t *testing.T) {
	var log logged
	h := httpapi.New(httpapi.Options{Null: true, Log: log.logger()}) // it has no engine to list with
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/queues", nil)
	h.ServeHTTP(w, r)
	if w.Code != 500 || w.Body.String() != `{"error":"internal server error","code":"internal"}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if n := bytes.Count(log.Bytes(), []byte("a request handler panicked")); n != 1 || !strings.Contains(log.String(), "/queues") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

func TestNullAnswersAndForgets(t *testing.T) {
	a := start(t, httpapi.Options{Null: true})
	first, second := a.put(`,"payload2":1`), a.put(`,"ready_at":99999999999999`)
	if first >= second || len(first) != 25 {
		t.Errorf("ids %s, %s", first, second)
	}
	a.want(400, "*", "POST", "/jobs", `{"type":"t"}`)
	got := a.want(201, "*", "POST", "/jobs/bulk", `{"jobs":[{"type":"t","queue":"q","payload":1},{"type":"t","queue":"q","payload":1}]}`)
	if list := object(t, got)["jobs"].([]any); len(list) != 2 || list[0].(map[string]any)["status"] != "ready" {
		t.Errorf("got %s", got)
	}
	a.want(200, `{"count":0}`, "GET", "/jobs/count", "")
}
