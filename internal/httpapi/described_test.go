package httpapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// watched holds every exchange of a test that is no stream to the document.
// Only with strict may a request have nothing that is ignored.
type watched struct {
	http.RoundTripper
	t      *testing.T
	strict bool
}

func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent bytes.Buffer
	if r.Body != nil && r.Body != http.NoBody {
		r = r.Clone(r.Context())
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &sent), r.Body}
	}
	resp, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" && media != "" {
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return resp, nil //nolint:nilerror // the test sees a short body
	}
	if why := described().check(r, sent.Bytes(), resp, body); why != nil && (w.strict || !tolerated(why)) {
		w.t.Errorf("GET /openapi.json tells something else than %s %s: %d: %v\nsent %.500s\ngot %.500s", r.Method, r.URL, resp.StatusCode, why, sent.Bytes(), body)
	}
	return resp, nil
}

func examplesOf(v any) []any {
	list, _ := v.(map[string]any)["examples"].([]any)
	return list
}

func TestTheDescriptionIsServedToEverybodyWithAToken(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		got := a.call("GET", "/openapi.json", "")
		if media := got.header.Get("Content-Type"); got.status != 200 || media != "application/json" {
			t.Errorf("%d, it is %s", got.status, media)
		}
		var doc map[string]any
		if err := json.Unmarshal([]byte(got.body), &doc); err != nil || doc["openapi"] != "3.1.0" || member(doc, "paths", "/jobs/{id}", "get") == nil {
			t.Errorf("%v: %.200s", err, got.body)
		}
		for _, place := range [][]string{
			{"paths", "/jobs", "post", "requestBody"}, {"paths", "/jobs", "post", "responses", "201"}, {"components", "responses", "Invalid"},
		} {
			if content := member(member(doc, place...), "content"); content["application/msgpack"] == nil {
				t.Errorf("%v is not described as MessagePack", place)
			}
		}
		a.want(200, "", "HEAD", "/openapi.json", "")
		a.want(405, "*", "POST", "/openapi.json", "")
		if packed := a.call("GET", "/openapi.json", "", "Accept", "application/msgpack"); packed.status != 200 || len(packed.body) >= len(got.body) {
			t.Errorf("as MessagePack: %d, %d bytes", packed.status, len(packed.body))
		}
		root := a.token("", adminToken)
		ci := a.token(root, `{"name":"ci","scopes":["enqueue"],"queues":["mail-*"]}`)
		a.want(401, "*", "GET", "/openapi.json", "")
		a.want(200, "*", "GET", "/openapi.json", "", bearer(ci)...)
	})
}

// What the document shows must be what it says.
func TestExamplesOfTheDescriptionAreValid(t *testing.T) {
	c, n := described(), 0
	for name, schema := range member(c.doc, "components", "schemas") {
		for _, example := range examplesOf(schema) {
			n++
			if err := c.valid(example, "components", "schemas", name); err != nil {
				text, _ := json.Marshal(example)
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	}
	if n < 30 {
		t.Errorf("there are only %d examples", n)
	}
	for path, item := range member(c.doc, "paths") {
		for method, o := range item.(map[string]any) {
			body, _ := o.(map[string]any)
			if ref, ok := member(body, "requestBody", "content", "application/json", "schema")["$ref"].(string); ok {
				if s, _ := c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...); len(examplesOf(s)) == 0 {
					t.Errorf("the body of %s %s has no example", method, path)
				}
			}
		}
	}
}

// A check that lets everything through would be worth nothing.
func TestTheContractRefuses(t *testing.T) {
	c := described()
	job := `{"id":"03gq0x7k2m4v9c1d8f5h6j0a1","type":"t","queue":"q","priority":1,"status":"ready","ready_at":1,"attempts":0`
	for _, x := range []struct{ method, path, sent, got, want string }{
		{"GET", "/jobs/x", "", job + `}`, ""},
		{"GET", "/jobs/x", "", job + `,"news":1}`, "news"},
		{"GET", "/jobs/x", "", job[:len(job)-13] + `}`, "attempts"},
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":1}`, job + `,"duplicate":false,"folded":false}`, ""},
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":1,"news":1}`, job + `,"duplicate":false,"folded":false}`, "news"},
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":1}`, job + `,"duplicate":false,"folded":false,"news":1}`, "news"},
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":1}`, job + `,"duplicate":false}`, "folded"},
		{"GET", "/jobs/count?limit=1", "", `{"count":1}`, "limit"},
		{"GET", "/jobs/count?status=new", "", `{"count":1}`, "status"},
		{"GET", "/jobs?limit=2001", "", `{"jobs":[],"pages":{"self":"/jobs","next":null,"prev":null}}`, "limit"},
		{"GET", "/news", "", `{}`, "not described"},
		{"PUT", "/jobs", "", `{}`, "not described"},
		{"GET", "/queues", "", ``, "no body"},
	} {
		r := httptest.NewRequest(x.method, "http://localhost"+x.path, nil)
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}
		err := c.check(r, []byte(x.sent), resp, []byte(x.got))
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s %s: %v, wanted %q", x.method, x.path, x.got, err, x.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost/jobs/take", nil)
	for line, bad := range map[string]bool{job + `,"payload":1}`: false, job + `}`: true, job + `,"payload":1,"news":2}`: true} {
		if err := c.checkItem(r, "application/x-ndjson", []byte(line)); (err != nil) != bad {
			t.Errorf("the line %s: %v", line, err)
		}
	}
}
