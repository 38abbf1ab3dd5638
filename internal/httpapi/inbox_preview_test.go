package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/wire"
)

// seedInbox are the settings of the example of the seed.
func seedInbox(capApplies string) string {
	return `{"group":{"json":".o"},"batch":{"query":{"pollInitialDelay":"PT6S","pollInterval":"PT6S"}},"message":{"timeToLive":"PT10S"},` +
		`"persistence":{"messageMaxRetries":5},"retry":{"retryMaxBackoffMinutes":10,"capApplies":"` + capApplies + `"}}`
}

// tries are the runs of a preview that try the message, in seconds, and how it ends.
func tries(t *testing.T, answer string) (out string) {
	t.Helper()
	var p wire.InboxPreview
	if err := json.Unmarshal([]byte(answer), &p); err != nil {
		t.Fatal(err)
	}
	for _, run := range p.Runs {
		if run.Outcome != "not_due" {
			out += fmt.Sprintf("%d %s %d; ", run.At/1000, run.Outcome, run.Attempts)
		}
	}
	return out
}

// inbox.md 8: both readings of the seed's table, by settings that are set and by
// others.
func TestWhenAnInboxTriesCanBeAsked(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		const age = "6 suppressed 0; 12 noted 1; 72 noted 2; 192 noted 3; 432 noted 4; 600 exhausted 5; 606 over 5; "
		const interval = "6 suppressed 0; 12 noted 1; 72 noted 2; 192 noted 3; 432 noted 4; 912 exhausted 5; 918 over 5; "
		a.want(200, "*", "PUT", "/inboxes/in", seedInbox("age"))
		if got := tries(t, a.want(200, "*", "GET", "/inboxes/in/preview", "")); got != age {
			t.Errorf("as it is set: %s", got)
		}
		if got := tries(t, a.want(200, "*", "POST", "/inboxes/in/preview", seedInbox("interval"))); got != interval {
			t.Errorf("with other settings: %s", got)
		}
		if got := tries(t, a.want(200, "*", "GET", "/inboxes/in/preview", "")); got != age {
			t.Errorf("other settings were kept: %s", got)
		}
		if got := tries(t, a.want(200, "*", "POST", "/inboxes/new/preview", seedInbox("age"))); got != age {
			t.Errorf("of an inbox that is not there: %s", got)
		}
		a.want(404, "*", "GET", "/inboxes/new", "") // and is not made
		a.want(404, "*", "GET", "/inboxes/new/preview", "")
		a.want(405, "*", "PUT", "/inboxes/in/preview", seedInbox("age"))
		for body, want := range map[string]string{
			`{"group":{"json":".o"},"retry":{"capApplies":"both"},"message":{"timeToLive":"-PT5S"}}`: `retry.capApplies must be one of interval, age`,
			`{"group":{"json":".o"},"retry":{"capApplies":7},"message":{"timeToLive":"-PT5S"}}`:      `message.timeToLive is refused`,
			`{}`: `group must say where`,
			``:   `the body is empty`,
		} {
			if text := a.want(400, "*", "POST", "/inboxes/in/preview", body, "Content-Type", "application/json"); !strings.Contains(text, want) {
				t.Errorf("%s: %s", body, text)
			}
		}
	})
}
