package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestAClientThatWaitsForResultsIsAliveAsLongAsItWaits(t *testing.T) { // A33
	a := start(t, httpapi.Options{})
	const options = `{"id":"s","options":{"client_timeout":"500ms"}}`
	if s := object(t, a.want(201, "*", "POST", "/sessions", options)); s["client_until"] == nil {
		t.Errorf("%v", s)
	}
	a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1}]}`)
	a.want(200, `{"results":[],"next":0}`, "GET", "/sessions/s/results?wait_ms=1200", "")
	if s := object(t, a.want(200, "*", "POST", "/sessions", options)); s["state"] != "open" { // it comes back
		t.Fatalf("%v", s)
	}
	for { // whoever looks on is no client
		s := object(t, a.want(200, "*", "GET", "/sessions/s", ""))
		if s["state"] == "open" || s["state"] == "cancelling" {
			continue
		}
		if s["state"] != "cancelled" || !strings.Contains(fmt.Sprint(s["why"]), "client_timeout") {
			t.Errorf("%v", s)
		}
		return
	}
}
