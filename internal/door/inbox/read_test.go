package inbox

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// The example of the specification, with the seed's own names.
const example = `{
	"group": {"header": "X-Correlation-Hint"}, "sort": "sequence",
	"deliver": {"http": {"url": "http://127.0.0.1:9000/correlate"}},
	"batch": {
		"mode": "all", "query": {"pollInitialDelay": "PT10S", "pollInterval": "PT6S"},
		"cleanup": {"pollInitialDelay": "PT1M", "pollInterval": "PT1M"}
	},
	"persistence": {"messageMaxRetries": 100, "messageFetchPageSize": 100, "messageBatchSize": -1},
	"retry": {"retryMaxBackoffMinutes": 180, "retryBackoffBase": 2.0, "capApplies": "interval"},
	"message": {"timeToLive": "PT10S"}, "onExhausted": "block"
}`

func TestSettingsAreReadInTheNamesOfTheSeed(t *testing.T) {
	s, err := ReadSettings([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := defaults() // which are the seed's
	want.TTL, want.Group = 10*job.Second, &Key{header: "X-Correlation-Hint"}
	want.HTTP = &HTTP{URL: "http://127.0.0.1:9000/correlate", Timeout: 30 * job.Second, Concurrent: 16}
	if !reflect.DeepEqual(*s, want) {
		t.Errorf("read as %+v, want %+v", *s, want)
	}
	again, err := ReadSettings(s.Append(nil))
	if err != nil || string(again.Append(nil)) != string(s.Append(nil)) {
		t.Errorf("%s\nis read as\n%s, %v", s.Append(nil), again.Append(nil), err)
	}
}

func TestWhatSettingsMean(t *testing.T) {
	const group = `"group":{"json":".id"},`
	for _, c := range []struct {
		text string
		is   func(s *Settings) bool
	}{
		{`"message":{"timeToLive":"PT10S"}`, func(s *Settings) bool { return s.TTL == 10*job.Second }},
		{`"message":{"timeToLive":"10s"}`, func(s *Settings) bool { return s.TTL == 10*job.Second }},
		{`"message":{"time-to-live":"10000ms"}`, func(s *Settings) bool { return s.TTL == 10*job.Second }},
		{`"MESSAGE":{"TIME_TO_LIVE":"PT10S"}`, func(s *Settings) bool { return s.TTL == 10*job.Second }},
		{`"batch":{"query":{"poll-interval":"PT1S","poll_initial_delay":0}}`, func(s *Settings) bool { return s.Query == Schedule{0, job.Second} }},
		{`"persistence":{"message-batch-size":1},"on-exhausted":"skip","deliver":{"http":{"url":"http://a/b","headers":{"X-Poll-Interval":"a"}}}`, func(s *Settings) bool {
			return s.BatchSize == 1 && s.OnExhausted == job.DeadSkip && s.HTTP.Headers["X-Poll-Interval"] == "a"
		}},
		{`"message":{}`, func(s *Settings) bool { return s.TTL == job.Unset }},
		{`"batch":{"query":"none"}`, func(s *Settings) bool { return s.Query == Schedule{} && s.Cleanup.Interval == job.Minute }},
		{`"batch":{"query":{"pollInterval":"PT1S"}}`, func(s *Settings) bool { return s.Query == Schedule{10 * job.Second, job.Second} }},
		{`"batch":{"cleanup":"none"}`, func(s *Settings) bool { return s.Cleanup == Schedule{} }},
		{`"batch":{"mode":"fail_first"}`, func(s *Settings) bool { return s.Ordered() }},
		{`"batch":{"mode":"all"}`, func(s *Settings) bool { return !s.Ordered() }},
		{`"persistence":{"messageBatchSize":1}`, func(s *Settings) bool { return s.BatchSize == 1 }},
		{`"persistence":{"retryMaxBackoffMinutes":5,"retryBackoffBase":3}`, func(s *Settings) bool { return s.MaxBackoffMinutes == 5 && s.BackoffBase == 3 }},
		{`"retry":{"retryMaxBackoffMinutes":5,"capApplies":"age"}`, func(s *Settings) bool { return s.MaxBackoffMinutes == 5 && s.CapApplies == CapAge }},
		{`"retry":{"retryMaxBackoffMinutes":5},"persistence":{"retryBackoffBase":3}`, func(s *Settings) bool { return s.MaxBackoffMinutes == 5 && s.BackoffBase == 3 }},
		{`"onExhausted":"park"`, func(s *Settings) bool { return s.OnExhausted == job.DeadPark }},
		{`"onExhausted":"skip"`, func(s *Settings) bool { return s.OnExhausted == job.DeadSkip }},
		{`"sort":"header:x-no"`, func(s *Settings) bool { return s.Sort == Sort{byHeader, "X-No"} }},
		{`"deliver":"workers"`, func(s *Settings) bool { return s.HTTP == nil }},
		{`"deliver":{"http":{"url":"https://a/b","send":"batch","timeout":"PT1S"}}`, func(s *Settings) bool { return s.HTTP.Batch && s.HTTP.Timeout == job.Second }},
	} {
		s, err := ReadSettings([]byte("{" + group + c.text + "}"))
		if err != nil || !c.is(s) {
			t.Errorf("%s: %+v, %v", c.text, s, err)
			continue
		}
		if again, err := ReadSettings(s.Append(nil)); err != nil || !c.is(again) {
			t.Errorf("%s: written as %s, %v", c.text, s.Append(nil), err)
		}
	}
}

func TestBadSettingsAreRefusedByName(t *testing.T) {
	const group = `"group":{"json":".id"},`
	for _, c := range []struct{ text, field, says string }{
		{group + `"persistence":{"messageBatchSize":0}`, "persistence.messageBatchSize", "0 would deliver nothing"},
		{group + `"persistence":{"messageBatchSize":-2}`, "persistence.messageBatchSize", "must be -1 (all"},
		{group + `"persistence":{"messageBatchSize":1001}`, "persistence.messageBatchSize", "from 1 to 1000"},
		{group + `"persistence":{"messageMaxRetries":0}`, "persistence.messageMaxRetries", "from 1"},
		{group + `"persistence":{"messageMaxRetries":"many"}`, "persistence.messageMaxRetries", "a whole number"},
		{group + `"persistence":{"messageFetchPageSize":-5}`, "persistence.messageFetchPageSize", "from 1"},
		{group + `"batch":{"mode":"some"}`, "batch.mode", `all, fail_first, not "some"`},
		{group + `"batch":{"query":"never"}`, "batch.query", "use none"},
		{group + `"batch":{"query":{"pollInterval":"PT0S"}}`, "batch.query.pollInterval", "from PT0.1S"},
		{group + `"batch":{"query":{"pollInterval":"-PT6S"}}`, "batch.query.pollInterval", "cannot be negative"},
		{group + `"batch":{"query":{"every":"PT6S"}}`, "batch.query.every", "not known"},
		{group + `"batch":{"query":{"pollInitialDelay":"P400D"}}`, "batch.query.pollInitialDelay", "to PT168H"},
		{group + `"batch":{"cleanup":{"pollInterval":"P1M"}}`, "batch.cleanup.pollInterval", "no fixed length"},
		{group + `"message":{"timeToLive":"-10s"}`, "message.timeToLive", "cannot be negative"},
		{group + `"message":{"timeToLive":"P2000D"}`, "message.timeToLive", "to PT8760H"},
		{group + `"message":{"timeToLive":"soon"}`, "message.timeToLive", "soon"},
		{group + `"retry":{"retryMaxBackoffMinutes":-1}`, "retry.retryMaxBackoffMinutes", "from 1"},
		{group + `"persistence":{"retryMaxBackoffMinutes":0}`, "persistence.retryMaxBackoffMinutes", "from 1"},
		{group + `"retry":{"retryBackoffBase":-2}`, "retry.retryBackoffBase", "from 1"},
		{group + `"retry":{"retryBackoffBase":2},"persistence":{"retryBackoffBase":2}`, "retry", "leave it to one"},
		{group + `"retry":{"capApplies":"offset"}`, "retry.capApplies", "interval, age"},
		{group + `"onExhausted":"drop"`, "onExhausted", "block, skip, park"},
		{group + `"sort":"random"`, "sort", "use sequence"},
		{group + `"sort":"header:"`, "sort", "must have a name"},
		{group + `"sort":5`, "sort", "a text"},
		{group + `"deliver":"mail"`, "deliver", "use workers"},
		{group + `"deliver":{"http":{"url":"ftp://x"}}`, "deliver.http.url", "http://host/path"},
		{group + `"deliver":{"http":{"url":"http://x","to":1}}`, "deliver.http.to", "not known"},
		{group + `"deliver":{"http":{"url":"http://x","headers":{"A:":"x"}}}`, "deliver.http.headers", "letters, digits"},
		{group + `"deliver":{"http":{"url":"http://x","timeout":"PT1H"}}`, "deliver.http.timeout", "to PT10M"},
		{group + `"polling":true`, "polling", "not known"},
		{group + `"message":{"timeToLive":10000}`, "message.timeToLive", "write 10000ms or 10000s"},
		{group + `"batch":{"query":{"pollInterval":"6"}}`, "batch.query.pollInterval", "write 6ms or 6s"},
		{group + `"batch":{"query":{"poll-intervall":"PT6S"}}`, "batch.query.poll-intervall", "did you mean pollInterval?"},
		{group + `"batch":{"query":{"poll-interval":"PT6S","pollInterval":"PT7S"}}`, "batch.query.poll-interval", "write it as batch.query.pollInterval"},
		{group + `"batch":{"pollInterval":"PT6S"}`, "batch.pollInterval", "write it as batch.query.pollInterval or batch.cleanup.pollInterval"},
		{group + `"retry":{"messageMaxRetries":5}`, "retry.messageMaxRetries", "write it as persistence.messageMaxRetries"},
		{group + `"message-max-retries":5`, "message-max-retries", "write it as persistence.messageMaxRetries"},
		{group + `"batch.query.poll-interval":"PT6S"`, "batch.query.poll-interval", "write it as batch.query.pollInterval"},
		{group + `"correlate":{"batch":{"mode":"all"}}`, "correlate", "the settings below correlate"},
		{group + `"correlate.batch.mode":"all"`, "correlate.batch.mode", "write it as batch.mode"},
		{group + `"message":{"timeToLiveAsString":"PT10S"}`, "message.timeToLiveAsString", "here it is message.timeToLive"},
		{group + `"batch":{"cluster":{"enabled":true}}`, "batch.cluster", "write cluster: {enabled, queuePollLockMostInterval} at the top of the configuration file"},
		{group + `"batch":{"cluster":{"queue-poll-lock-most-interval":"PT5M"}}`, "batch.cluster", "at the top of the configuration file"},
		{group + `"batch":{"queuePollLockMostInterval":"PT5M"}`, "batch.queuePollLockMostInterval", "write cluster.queuePollLockMostInterval at the top"},
		{group + `"channels":{}`, "channels", "here messages come over POST /inboxes/NAME/messages"},
		{`"sort":"sequence"`, "group", "exactly one of header, json and jq"},
		{`"group":{"json":".a","jq":".b"}`, "group", "exactly one"},
		{`"group":{"json":"orderId"}`, "group.json", ".orderId"},
		{`"group":{"json":".a[x]"}`, "group.json", ".orderId"},
		{`"group":{"json":".a..b"}`, "group.json", ".orderId"},
		{`"group":{"jq":".a |"}`, "group.jq", "no expression"},
		{`"group":{"header":"X Y"}`, "group.header", "letters, digits"},
	} {
		_, err := ReadSettings([]byte("{" + c.text + "}"))
		bad := first(err)
		if bad == nil || bad.Field != c.field || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (field %+v), want field %s and %q", c.text, err, bad, c.field, c.says)
		}
	}
	_, err := ReadSettings([]byte(`{"group":{"json":".id"},"batch":{"mode":"x"},"onExhausted":"y","persistence":{"messageBatchSize":0}}`))
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("of three problems it tells %d: %v", n+1, err)
	}
	if _, err := ReadSettings([]byte(`{`)); err == nil || !strings.Contains(err.Error(), "invalid JSON") {
		t.Error(err)
	}
}

func first(err error) *job.Error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		err = many.Unwrap()[0]
	}
	e, _ := errors.AsType[*job.Error](err)
	return e
}
