package e2e

import (
	"fmt"
	"net/url"
	"testing"
)

// Calls over many jobs against the built binary: what they did is there after a
// kill, and a guard keeps everything from being deleted by a slip.
func TestChangesOfManyJobsSurviveAKill(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--guard")
	c := dial(s.url)
	want := func(status int, body, method, path string, send any) {
		t.Helper()
		got, err := c.do(t.Context(), method, path, send)
		if err != nil || got.status != status || body != "*" && string(got.body) != body {
			t.Fatalf("%s %s: %v, %v; want %d %s", method, path, got, err, status, body)
		}
	}
	list := ""
	for i := range 1200 {
		list += fmt.Sprintf(`,{"type":"t","queue":"q%d","payload":{"n":%d}}`, i%2, i)
	}
	want(201, "*", "POST", "/jobs/bulk", `{"jobs":[`+list[1:]+`]}`)
	want(200, `{"patched":600}`, "PATCH", "/jobs?queue=q1", `{"queue":"q2","priority":5}`)
	want(200, `{"deleted":300}`, "DELETE", "/jobs?queue=q0&filter="+url.QueryEscape(".n % 4 == 0"), nil)
	want(400, "*", "DELETE", "/jobs", nil)
	want(400, "*", "POST", "/reset", nil)
	want(400, "*", "DELETE", "/crons", nil)
	s.kill()
	c.close()
	s = start(t, dir, "--guard")
	c = dial(s.url)
	want(200, `{"count":900}`, "GET", "/jobs/count", nil)
	want(200, `{"count":600}`, "GET", "/jobs/count?queue=q2&priority=5", nil)
	want(200, `{"count":0}`, "GET", "/jobs/count?queue=q0&filter="+url.QueryEscape(".n % 4 == 0"), nil)
	want(204, "", "POST", "/reset?all=true", nil)
	s.kill()
	c.close()
	s = start(t, dir)
	c = dial(s.url)
	want(200, `{"count":0}`, "GET", "/jobs/count", nil)
	want(200, `{"deleted":0}`, "DELETE", "/jobs", nil)
	c.close()
}
