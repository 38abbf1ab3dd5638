package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// Why a task waits is told in the words of sessions and engines, and of engines
// that ask call by call as of those with a stream.
func TestWhyATaskWaitsIsToldInTheWordsOfTheGrid(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(201, "*", "POST", "/sessions", `{"id":"s","options":{"max_engines":3}}`)
	a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":2,"needs":[1]},
		{"seq":3,"payload":3,"requires":["os = linux","cpuMHz > 350"]},{"seq":4,"payload":4},{"seq":5,"payload":5}]}`)
	why := func(seq int, want string) {
		t.Helper()
		x := object(t, a.want(200, "*", "GET", fmt.Sprintf("/sessions/s/tasks/%d/explain", seq), ""))
		if x["text"] != want {
			t.Errorf("task %d: %q, want %q", seq, x["text"], want)
		}
		if same := object(t, a.want(200, "*", "GET", "/jobs/"+x["id"].(string)+"/explain", "")); same["text"] != want {
			t.Errorf("as a job: %q, want %q", same["text"], want)
		}
	}
	why(1, "no engine is logged in that works for its session")
	why(2, "it needs task 1, which is waiting")
	epoch := a.login("e", 2, "")
	if got := a.tasksOf("e", epoch, 1); len(got) != 1 {
		t.Fatal(got)
	}
	why(2, "it needs task 1, which is active")
	why(3, "no engine meets what it requires: cpuMHz > 350, os = linux")
	why(4, "nothing holds it back: it is given out when its turn comes; its session should have 2 of the slots now, and has 1")
	a.tasksOf("e", epoch, 1)
	why(5, "no engine that may run it has a slot free; its session should have 2 of the slots now, and has 2")
	a.tasksOf("f", a.login("f", 1, `,"properties":{"os":"linux","cpuMHz":"2400"}`), 1)
	why(5, "its session runs as many tasks as it may at once: max_engines is 3")
	a.want(200, "*", "PATCH", "/sessions/s", `{"options":{"max_engines":0}}`)
	a.want(200, "*", "PATCH", "/sessions/s", `{"suspend":true}`)
	why(5, "its session is suspended, or has the weight 0")
	one := a.want(200, "*", "GET", "/sessions/s/tasks/1/explain", "")
	if !strings.Contains(one, `"text":"it runs since `) {
		t.Error(one)
	}
}

// Who cancelled a job or a session, and when, is told with it; and the queue that a
// session is does not work any more.
func TestWhoCancelledIsTold(t *testing.T) {
	a := start(t, httpapi.Options{})
	id := object(t, a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":1}`))["id"].(string)
	a.want(200, "*", "POST", "/jobs/"+id+"/cancel", `{"reason":"withdrawn"}`)
	says := func(path, member, want string) {
		t.Helper()
		if got := fmt.Sprint(object(t, a.want(200, "*", "GET", path, ""))[member]); !strings.HasPrefix(got, want) {
			t.Errorf("%s of %s is %q, want %q", member, path, got, want)
		}
	}
	says("/jobs/"+id+"/explain", "text", "it is dead: cancelled by an operator: withdrawn, at 20")
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	says("/queues/s", "session", "open")
	a.want(200, "*", "DELETE", "/sessions/s", "")
	says("/queues/s", "session", "cancel")
	says("/sessions/s", "why", "by an operator")
}
