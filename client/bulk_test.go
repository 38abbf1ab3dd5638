package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What the calls over many jobs say on the wire; test/e2e makes them against a server.
func TestCallsOverManyJobsSayWhatTheyMean(t *testing.T) {
	said := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		said = r.Method + " " + r.RequestURI + " " + strings.TrimSpace(string(body))
		if r.URL.Path == "/reset" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"patched":2,"refused":1,"deleted":3,"id":"x"}`)
	}))
	defer server.Close()
	c, err := New(server.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	for _, call := range []struct {
		does func() (any, error)
		says string
	}{
		{func() (any, error) { return c.Patch(ctx, "a/b", Change{"priority": 1, "retry_limit": nil}) }, `PATCH /jobs/a%2Fb {"priority":1,"retry_limit":null}`},
		{func() (any, error) {
			return c.PatchMany(ctx, Filter{Queues: []string{"q&"}, Attempts: "1.."}, Change{"queue": "r"})
		}, `PATCH /jobs?attempts=1..&queue=q%26 {"queue":"r"}`},
		{func() (any, error) { return c.PatchMany(ctx, Filter{All: true}, Change{}) }, `PATCH /jobs? {}`},
		{func() (any, error) { return c.DeleteMany(ctx, Filter{Filter: `.a == "b"`}) }, `DELETE /jobs?filter=.a+%3D%3D+%22b%22 `},
		{func() (any, error) { return c.DeleteMany(ctx, Filter{All: true}) }, `DELETE /jobs?all=true `},
		{func() (any, error) { return nil, c.Reset(ctx) }, `POST /reset?all=true `},
	} {
		if _, err := call.does(); err != nil || said != call.says {
			t.Errorf("it says %q, %v; want %q", said, err, call.says)
		}
	}
	said = ""
	for _, f := range []Filter{{}, {All: true, Queues: []string{"q"}}, {Queues: []string{""}}, {Types: []string{"a,b"}}} {
		_, err := c.DeleteMany(ctx, f)
		_, other := c.PatchMany(ctx, f, Change{"priority": 1})
		if err == nil || other == nil || said != "" {
			t.Errorf("%+v went out as %q (%v, %v)", f, said, err, other)
		}
	}
	if n, err := c.PatchMany(ctx, Filter{Types: []string{"t"}}, Change{}); err != nil || n.Patched != 2 || n.Refused != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := c.DeleteMany(ctx, Filter{Types: []string{"t"}}); err != nil || n != 3 || !strings.HasPrefix(said, "DELETE /jobs?type=t") {
		t.Errorf("%d, %v, %s", n, err, said)
	}
}
