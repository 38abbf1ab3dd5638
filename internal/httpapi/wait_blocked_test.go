package httpapi_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// A dead member of a group with order start blocks those that have not begun,
// though it is not the head of any line (core.md 2).
func TestADeadMemberThatBlocksIsWhatTheOthersWaitFor(t *testing.T) { // operations.md, wait
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PATCH", "/queues/q", `{"order":"start","on_dead":"block"}`)
	first, second, other := a.put(`,"group":"g"`), a.put(`,"group":"g"`), a.put(`,"group":"h"`)
	if got := a.waits(second); got != nil {
		t.Errorf("as long as nothing blocks them, members may begin one after another: %v", got)
	}
	taken := object(t, a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"]}`))["jobs"].([]any)[0].(map[string]any)
	a.want(200, "*", "POST", "/jobs/settle", `[{"id":"`+first+`","lease":"`+taken["lease"].(string)+`","outcome":"dead","error":{"message":"m"}}]`)
	for id, want := range map[string]any{second: "behind head", other: nil} {
		if got := a.waits(id); got != want {
			t.Errorf("after its death %s waits for %v, want %v", id, got, want)
		}
	}
	a.want(204, "", "DELETE", "/jobs/"+first, "")
	if got := a.waits(second); got != nil {
		t.Errorf("the dead one is gone: %v", got)
	}
}
