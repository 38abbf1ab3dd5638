package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/wire"
)

// impatient is a client that leaves once the answer begins, so that a take
// ends.
type impatient struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

func (w impatient) WriteHeader(status int) {
	w.ResponseRecorder.WriteHeader(status)
	w.leave()
}

func (w impatient) Flush() { w.leave() }

// FuzzRequest sends any request to the handler, over a real engine. Nothing is
// an inner error or a panic; a refusal is JSON with a known code and bounded;
// what the API takes in, it can show.
func FuzzRequest(f *testing.F) {
	const job = `{"type":"t","queue":"q","payload":[1]}`
	f.Add("POST", "/jobs", "localhost", "application/json", job)
	f.Add("POST", "/jobs", "localhost", msgpackType, packed(f, job))
	f.Add("POST", "/jobs/settle", "localhost", msgpackType, packed(f, `[{"id":"03cp6hyr0fa5z7pm7wy7p2b9o","outcome":"ok"}]`))
	f.Add("POST", "/jobs/bulk", "[::1]:7890", "application/json; charset=utf-8", `{"jobs":[`+job+`]}`)
	f.Add("GET", "/jobs/take?prefetch=2&queue=q,r&prop=cpu:4&lease=token", "127.0.0.1", "", "")
	f.Add("POST", "/jobs/lease", "localhost", "application/json", `{"queues":["q"],"max":5,"lease_ms":1000,"wait_ms":0,"worker":"w","properties":{"cpu":"4"}}`)
	f.Add("POST", "/jobs/extend", "localhost", "", `{"leases":[{"id":"03cp6hyr0fa5z7pm7wy7p2b9o","lease":"`+strings.Repeat("0a", 20)+`","ms":5}],"ms":7}`)
	f.Add("POST", "/jobs/settle", "localhost", "", `[{"id":"03cp6hyr0fa5z7pm7wy7p2b9o","outcome":"ok"}]`)
	f.Add("POST", "/jobs/success", "localhost", "", `{"ids":["x"]}`)
	f.Add("POST", "/jobs/03cp6hyr0fa5z7pm7wy7p2b9o/failure", "localhost", "", `{"message":"m"}`)
	f.Add("GET", "/jobs/03cp6hyr0fa5z7pm7wy7p2b9o/errors/1?", "localhost", "", "")
	f.Add("GET", "/jobs?limit=5&order=desc&priority=1..5&status=ready", "localhost", "text/plain", "")
	f.Add("PATCH", "/queues/a%2Fb", "localhost", "", `{"order":"strict"}`)
	f.Add("GET", "/queues/%00", "evil.example", "", "")
	f.Add("DELETE", "/jobs/count", "localhost", "", "")
	f.Add("HEAD", "/jobs/take?prefetch=-1", "localhost", "", "")
	handler := httpapi.New(httpapi.Options{Engine: newEngine(f)})
	f.Fuzz(func(t *testing.T, method, target, host, media, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" || !strings.HasPrefix(target, "/") {
			return // net/http answers these itself
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, method, "http://localhost", strings.NewReader(body))
		if err != nil {
			return // no method of HTTP
		}
		r.URL, r.Host, r.RequestURI = u, host, target
		if media != "" {
			r.Header.Set("Content-Type", media)
		}
		r.Header.Set("Worker-Id", "w")
		w := impatient{httptest.NewRecorder(), leave}
		handler.ServeHTTP(w, r)
		looksRight(t, method, target, w.Result(), w.Body.Bytes())
		if method == "POST" && w.Code == http.StatusCreated && u.Path == "/jobs" {
			isShown(t, handler, w.Body.Bytes())
		}
	})
}

func looksRight(t *testing.T, method, target string, res *http.Response, body []byte) {
	t.Helper()
	var refusal wire.Error
	switch isJSON := json.Valid(body); {
	case res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable:
		t.Errorf("%s %q: %d %s", method, target, res.StatusCode, body)
	case res.StatusCode >= 400 && res.StatusCode != http.StatusMethodNotAllowed && !strings.Contains(string(body), `"not_found"`):
		if err := json.Unmarshal(body, &refusal); err != nil || refusal.Error == "" || !listed(refusal.Code, res.StatusCode) || len(body) > 16<<10 {
			t.Errorf("%s %q is refused with %d %.300s", method, target, res.StatusCode, body)
		}
	case len(body) > 0 && !isJSON && res.Header.Get("Content-Type") == "application/json":
		t.Errorf("%s %q: %.300q is no JSON", method, target, body)
	}
}

// listed reports whether the table of codes has this one with the status. Only
// an enqueue is told 429; other calls get 503 with the same code.
func listed(code string, status int) bool {
	return slices.ContainsFunc(wire.Codes, func(c wire.Code) bool {
		return c.Code == code && (c.Status == status || status == http.StatusServiceUnavailable && c.Again)
	})
}

// isShown reads a job back that was answered as taken in.
func isShown(t *testing.T, handler http.Handler, answer []byte) {
	t.Helper()
	var added wire.Enqueued
	if err := json.Unmarshal(answer, &added); err != nil {
		t.Fatalf("an enqueue is answered with %s: %v", answer, err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/jobs/"+added.ID, nil)
	r.Host = "localhost"
	handler.ServeHTTP(w, r)
	var shown wire.Job
	if err := json.Unmarshal(w.Body.Bytes(), &shown); w.Code != http.StatusOK || err != nil ||
		shown.ID != added.ID || shown.Queue != added.Queue || shown.Type != added.Type {
		t.Errorf("%s was taken in and is shown as %d %s", answer, w.Code, w.Body)
	}
	del := httptest.NewRequest(http.MethodDelete, "/jobs/"+added.ID, nil)
	del.Host = "localhost"
	handler.ServeHTTP(httptest.NewRecorder(), del) // so that the store stays small
}
