package httpapi_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// A name that no queue can have is a slip of whoever asks, wherever it stands:
// a worker would wait for ever, and a list would look empty.
func TestNamesThatNoQueueCanHaveAreRefusedInQueries(t *testing.T) { // zizq.md 1.4
	names := map[string]string{
		"a*":                      "queue must not contain '*' (reserved)",
		"mail,%5Bbill":            "queue must not contain '[' (reserved)",
		"a%00b":                   "queue must not contain null bytes",
		strings.Repeat("n", 1025): "queue must not be longer than 1024 bytes",
	}
	paths := [][3]string{
		{"HEAD", "/jobs/take?prefetch=1&queue=", ""}, // a take that is not refused does not end
		{"GET", "/jobs/take?prefetch=1&queue=", ""},
		{"GET", "/jobs?queue=", ""},
		{"GET", "/jobs/count?queue=", ""},
		{"PATCH", "/jobs?queue=", `{"priority":1}`},
		{"DELETE", "/jobs?queue=", ""},
		{"PUT", "/jobs/budgets/k?queue=", `{}`},
		{"DELETE", "/jobs/budgets?queue=", ""},
		{"GET", "/dead?queue=", ""},
		{"GET", "/dead/groups?queue=", ""},
		{"GET", "/dead/export?queue=", ""},
		{"GET", "/events?queue=", ""},
	}
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.put("")
		for name, why := range names {
			for _, p := range paths {
				got := a.call(p[0], p[1]+name, p[2])
				if got.status != 400 || p[0] != "HEAD" && !strings.Contains(got.body, why) {
					t.Fatalf("%s %s%.20s: %d %s, want 400 and %q", p[0], p[1], name, got.status, got.body, why)
				}
			}
		}
		for _, path := range []string{"/dead/replay", "/dead/delete"} {
			if body := a.want(400, "*", "POST", path, `{"filter":{"queue":["a*"]}}`); !strings.Contains(body, "queue must not contain '*' (reserved)") {
				t.Errorf("%s: %s", path, body)
			}
		}
		a.want(200, `{"count":1}`, "GET", "/jobs/count?queue=other,,q", "") // unknown names and empty parts are no error
	})
}
