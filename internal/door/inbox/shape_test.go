package inbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestAllThatIsWrongWithSettingsIsToldAtOnce(t *testing.T) {
	for body, want := range map[string][]string{
		`{"group":{"json":5},"sort":7,"deliver":{"http":{"url":3,"timeout":"soon","send":"all","retries":1}},
		  "batch":{"mode":"some","query":{"pollInterval":"-PT6S","pollInitialDelay":[],"every":1},"cleanup":5},
		  "persistence":{"messageBatchSize":0,"messageMaxRetries":"many","messageFetchPageSize":1.5},
		  "retry":{"retryBackoffBase":true,"capApplies":"offset"},"message":{"timeToLive":"-10s"},"onExhausted":{},"polling":true}`: {
			"group.json must be a text", "sort must be a text", "deliver.http.url must be a text",
			`deliver.http.timeout is refused: duration "soon": a number is missing at "soon"; use ms, s, m, h or d, or ISO 8601 such as PT6S`,
			"deliver.http.retries is not known here; there are url, send, headers, timeout, concurrent",
			`batch.query.pollInterval is refused: duration "-PT6S": a wait cannot be negative; use ms, s, m, h or d, or ISO 8601 such as PT6S`,
			`batch.query.pollInitialDelay is refused: duration "[]": a number is missing at "[]"; use ms, s, m, h or d, or ISO 8601 such as PT6S`,
			"batch.query.every is not known here; there are pollInitialDelay, pollInterval",
			"batch.cleanup is refused: use none, or an object with pollInitialDelay and pollInterval",
			"persistence.messageMaxRetries must be a whole number, written without a fraction or an exponent",
			"persistence.messageFetchPageSize must be a whole number, written without a fraction or an exponent",
			"retry.retryBackoffBase must be a number",
			`message.timeToLive is refused: duration "-10s": a wait cannot be negative; use ms, s, m, h or d, or ISO 8601 such as PT6S`,
			"onExhausted must be a text", "polling is not known here; there are group, sort, deliver, batch, persistence, retry, message, onExhausted",
			// and what is wrong with values of the right form
			`deliver.http.send must be one of message, batch, not "all"`,
			`batch.mode must be one of all, fail_first, not "some"`,
			"persistence.messageBatchSize must be -1 (all messages of the group), or from 1 to 1000: 0 would deliver nothing",
			`retry.capApplies must be one of interval, age, not "offset"`,
		},
		`{"group":[],"batch":5,"deliver":{"http":{"url":"ftp://x","headers":{"B:":"x","A:":"x"}}}}`: {
			"group must be an object", "batch must be an object", "deliver.http.url must be an address of the form http://host/path",
			`deliver.http.headers has the name "A:", which must be made of letters, digits and hyphens`,
			`deliver.http.headers has the name "B:", which must be made of letters, digits and hyphens`,
		},
		`{"group":{"json":5,"jq":".a |"},"deliver":{"http":4}}`: {
			"group.json must be a text", "deliver.http must be an object", "group.jq is no expression: " + jqSays(t),
		},
		`{"group":{"json":5,"header":7}}`: {"group.json must be a text", "group.header must be a text"},
		`{"onExhausted":7}`:               {"onExhausted must be a text", "group must say where the key of a message stands, with exactly one of header, json and jq"},
		`["group"]`:                       {"the settings must be an object"},
		`7`:                               {"the settings must be an object"},
	} {
		s, err := ReadSettings([]byte(body))
		if s != nil || err == nil {
			t.Errorf("%s was read", body)
			continue
		}
		if got := err.Error(); got != strings.Join(want, "\n") {
			t.Errorf("%s\ntells\n%s\nwant\n%s", body, got, strings.Join(want, "\n"))
		}
	}
}

func jqSays(t *testing.T) string {
	t.Helper()
	_, err := jqKey(".a |")
	return strings.TrimPrefix(err.Error(), "group.jq is no expression: ")
}

// However long the list of problems is, the answer is not.
func TestOfVeryManyProblemsSomeAreTold(t *testing.T) {
	var b strings.Builder
	for i := range 3 * problemsMax {
		fmt.Fprintf(&b, `,"%d%s":1`, i, strings.Repeat("x", 200))
	}
	_, err := ReadSettings([]byte(`{"group":{"json":".id"}` + b.String() + `}`))
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) || len(many.Unwrap()) != problemsMax || len(err.Error()) > problemsMax*300 {
		t.Errorf("%d bytes: %.300v", len(err.Error()), err)
	}
	for _, one := range many.Unwrap() {
		if bad, ok := errors.AsType[*job.Error](one); !ok || bad.Kind != job.Invalid || bad.Field == "" {
			t.Errorf("%v names no field", one)
		}
	}
}
