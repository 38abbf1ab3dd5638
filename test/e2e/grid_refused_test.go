package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// What an engine says that is wrong, late or of somebody else is refused by name,
// and changes nothing: the task goes on, and its own engine ends it.
func TestWrongWordsOfEnginesChangeNothing(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "root"))
	call := func(want int, method, path, body string, into any) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err == nil && into != nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil || res.StatusCode != want {
			t.Fatalf("%s %s %s: %d %s (%v), want %d", method, path, body, res.StatusCode, b, err, want)
		}
		return string(bytes.TrimSpace(b))
	}
	call(201, "POST", "/sessions", `{"id":"s","options":{"collection":"later"}}`, nil)
	call(201, "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":2}]}`, nil)
	var held []wire.Job
	var in wire.LoggedIn
	for _, id := range []string{"a", "b"} {
		call(201, "POST", "/engines", `{"id":"`+id+`","slots":1}`, &in)
		var got struct{ Jobs []wire.Job }
		call(200, "POST", "/jobs/lease", fmt.Sprintf(`{"engine":%q,"epoch":%d,"max":1}`, id, in.Epoch), &got)
		held = append(held, got.Jobs...)
	}
	if len(held) != 2 {
		t.Fatalf("%+v", held)
	}
	task, other := held[0], held[1]
	settle := func(lease, outcome string) string {
		t.Helper()
		var out wire.Verdicts
		call(200, "POST", "/jobs/settle", `[{"id":"`+task.ID+`","lease":"`+lease+`","outcome":"`+outcome+`"}]`, &out)
		return out.Verdicts[0].Status + out.Verdicts[0].Code
	}
	is := func(state string) {
		t.Helper()
		var got wire.TaskState
		call(200, "GET", "/sessions/s/tasks/1", "", &got)
		if got.State != state || got.Retries != 0 || got.Evictions != 0 || len(got.Attempts) != 1 {
			t.Errorf("it is %+v, want %s", got, state)
		}
	}
	for _, lease := range []string{strings.Repeat("1", 40), other.Lease} {
		for _, outcome := range []string{"ok", "retry", "release", "dead"} {
			if got := settle(lease, outcome); got != wire.CodeSuperseded {
				t.Errorf("%s with the lease %q: %s", outcome, lease, got)
			}
		}
	}
	for _, entry := range []string{`"outcome":"ok"`, `"outcome":"ok","lease":""`, `"outcome":"ok","lease":"x"`} {
		var out wire.Verdicts
		req := `[{"id":"` + task.ID + `",` + entry + `}]`
		if strings.Contains(entry, "lease") {
			if text := call(400, "POST", "/jobs/settle", req, nil); !strings.Contains(text, "settles[0]: lease is no token") {
				t.Error(text)
			}
		} else if call(200, "POST", "/jobs/settle", req, &out); out.Verdicts[0].Code != wire.CodeTokenNeeded {
			t.Errorf("without a lease: %+v", out)
		}
	}
	is("active")
	call(409, "POST", "/engines/b/heartbeat", fmt.Sprintf(`{"epoch":%d}`, in.Epoch+1), nil)
	call(404, "POST", "/engines/nobody/heartbeat", `{"epoch":1}`, nil)
	if got := settle(task.Lease, "ok"); got != wire.Completed {
		t.Errorf("its own engine: %s", got)
	}
	is("completed")
	if got := settle(task.Lease, "ok"); got != wire.Completed { // a call that got no answer is repeated
		t.Errorf("the same again: %s", got)
	}
	for _, outcome := range []string{"retry", "release", "dead"} {
		if got := settle(task.Lease, outcome); got != wire.CodeSuperseded {
			t.Errorf("late %s: %s", outcome, got)
		}
	}
	is("completed")
}
