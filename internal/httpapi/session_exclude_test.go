package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestEnginesThatASessionExcludesAreToldAndCleared(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(201, "*", "POST", "/sessions", `{"id":"s","options":{"failures_before_exclusion":1,"exclusion_time":"1h","retry_elsewhere":true}}`)
		a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1}]}`)
		epoch := a.login("e1", 1, `,"host":"rack1"`)
		list := a.tasksOf("e1", epoch, 1)
		a.ends(list[0], `"outcome":"retry","error":{"message":"no disk"}`)

		s := object(t, a.want(200, "*", "GET", "/sessions/s", ""))
		out, _ := s["excluded"].([]any)
		if len(out) != 1 || s["stalled"] != true {
			t.Fatalf("%v", s)
		}
		e := out[0].(map[string]any)
		if e["engine"] != "e1" || fmt.Sprint(e["failures"]) != "1" || e["until"] == nil || e["last_at"] == nil || e["spared"] != nil {
			t.Errorf("%v", e)
		}
		x := object(t, a.want(200, "*", "GET", "/sessions/s/tasks/1/explain", ""))
		if fmt.Sprint(x["avoids"]) != "[rack1]" {
			t.Errorf("%v", x)
		}
		a.want(400, "*", "DELETE", "/sessions/s/exclusions?machine=e1", "")
		a.want(404, "*", "DELETE", "/sessions/other/exclusions", "")
		a.want(405, "*", "GET", "/sessions/s/exclusions", "")
		if no := a.want(404, "*", "DELETE", "/sessions/s/exclusions?engine=e2", ""); !strings.Contains(no, `engine \"e2\" is not known`) {
			t.Error(no)
		}
		if s := object(t, a.want(200, "*", "GET", "/sessions/s", "")); s["excluded"] == nil {
			t.Errorf("it forgot another engine: %v", s)
		}
		for _, engine := range []string{"?engine=e1", ""} {
			if s := object(t, a.want(200, "*", "DELETE", "/sessions/s/exclusions"+engine, "")); s["excluded"] != nil || s["stalled"] != nil {
				t.Errorf("%v", s)
			}
		}
		if list := a.tasksOf("e1", epoch, 1); len(list) != 1 {
			t.Errorf("%v", list)
		}
		a.want(200, "*", "DELETE", "/sessions/s", "")
		a.want(422, "*", "DELETE", "/sessions/s/exclusions", "")
	})
}
