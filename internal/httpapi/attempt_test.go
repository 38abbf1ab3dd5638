package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// attemptsOf tells the attempts at a task as they are on the wire, in words.
func (a *api) attemptsOf(session, task string) (list []string) {
	a.t.Helper()
	got := object(a.t, a.want(200, "*", "GET", "/sessions/"+session+"/tasks/"+task, ""))
	all, _ := got["attempts"].([]any)
	for _, one := range all {
		m := one.(map[string]any)
		words := []string{fmt.Sprint(m["number"]), fmt.Sprint(m["engine"], "@", m["host"])}
		for _, name := range []string{"reason", "charged", "error", "copy"} {
			if m[name] != nil {
				words = append(words, fmt.Sprint(m[name]))
			}
		}
		if (m["ended"] == nil) != (m["reason"] == nil) {
			a.t.Errorf("%v", m)
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

func TestEveryAttemptAtATaskIsShown(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(201, "*", "POST", "/sessions", `{"id":"s","options":{"max_retries":1}}`)
		a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1}]}`)
		if got := a.attemptsOf("s", "1"); got != nil {
			t.Errorf("%q", got)
		}
		one := a.login("e1", 1, `,"host":"h1"`)
		first := a.tasksOf("e1", one, 1)[0]
		if got := a.attemptsOf("s", "1"); fmt.Sprint(got) != "[1 e1@h1]" {
			t.Errorf("%q", got)
		}
		a.ends(first, `"outcome":"retry","error":{"message":"out of luck"}`)
		a.tasksOf("e1", one, 1)
		a.want(204, "", "POST", "/engines/e1/logoff", "")
		two := a.login("e2", 1, "")
		a.ends(a.tasksOf("e2", two, 1)[0], `"outcome":"retry","error":{"message":"again"}`)
		const want = "[1 e1@h1 error retry 1 2 e1@h1 evicted eviction 3 e2@e2 error retry 2]"
		if got := a.attemptsOf("s", "1"); fmt.Sprint(got) != want {
			t.Errorf("%q", got)
		}
		page := object(t, a.want(200, "*", "GET", "/sessions/s/results", ""))
		failed := page["results"].([]any)[0].(map[string]any)
		if failed["state"] != "failed" || len(failed["attempts"].([]any)) != 3 {
			t.Errorf("%v", failed)
		}
	})
}

func TestOneAttemptIsToldThatItMayCommit(t *testing.T) { // A19
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
		a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":2}]}`)
		first := a.tasksOf("e1", a.login("e1", 1, ""), 1)[0]
		ask := func(task, lease string) string {
			return a.want(200, "*", "POST", "/sessions/s/tasks/"+task+"/try_commit", `{"lease":"`+lease+`"}`)
		}
		lease := first["lease"].(string)
		for range 2 {
			if got := ask("1", lease); got != `{"committed":true,"state":"active"}` {
				t.Error(got)
			}
		}
		if got := ask(first["id"].(string), lease); got != `{"committed":true,"state":"active"}` {
			t.Error(got)
		}
		if got := ask("1", strings.Repeat("0", 40)); got != `{"committed":false,"state":"active"}` {
			t.Errorf("a token of nobody: %s", got)
		}
		if got := ask("2", lease); got != `{"committed":false,"state":"waiting"}` {
			t.Errorf("a token for another task: %s", got)
		}
		a.want(204, "", "POST", "/engines/e1/logoff", "")
		if got := ask("1", lease); got != `{"committed":false,"state":"waiting"}` {
			t.Errorf("an attempt that is over: %s", got)
		}
		second := a.tasksOf("e2", a.login("e2", 2, ""), 2)
		for _, j := range second {
			if got := ask(j["id"].(string), j["lease"].(string)); got != `{"committed":true,"state":"active"}` {
				t.Error(got)
			}
			a.ends(j, `"outcome":"ok"`)
		}
		a.want(400, "*", "POST", "/sessions/s/tasks/1/try_commit", `{"lease":"x"}`)
		a.want(400, "*", "POST", "/sessions/s/tasks/1/try_commit", `{"lease":"`+lease+`","more":1}`)
		a.want(404, "*", "POST", "/sessions/s/tasks/9/try_commit", `{"lease":"`+lease+`"}`)
		a.want(404, "*", "POST", "/sessions/other/tasks/1/try_commit", `{"lease":"`+lease+`"}`)
	})
}
