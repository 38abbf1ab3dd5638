package httpapi

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
)

// FuzzQueueSettings reads the body of PATCH /queues/{name}. What is taken is
// told by GET in words that mean the same, and says what encoding/json reads;
// what is refused names the field.
func FuzzQueueSettings(f *testing.F) {
	f.Add([]byte(`{"paused":true,"order":"strict","concurrency":1,"on_dead":"park","front_order":"lifo"}`))
	f.Add([]byte(`{"retry":{"limit":3,"curve":{"kind":"list","delays":["1s","PT5S",7]}},"late_ok":"never","require_token":true}`))
	f.Add([]byte(`{"max_jobs":9223372036854775807,"max_bytes":0,"on_full":"drop_oldest","run_timeout_ms":1,"start_timeout_ms":2}`))
	f.Add([]byte(`{"retention":{"completed_ms":null,"dead_ms":5},"non_idempotent":true,"order":null}`))
	f.Add([]byte(`{"retention":{"dead_ms":-1}}`))
	f.Add([]byte(`{"Paused":true}`))
	f.Add([]byte(`{"breaker":{},"group_breaker":{"consecutive":3,"open_for_ms":600000},"max_running":5}`))
	f.Add([]byte(`{"rate":{"per_second":12.5,"burst":2},"group_rate":null,"retry_budget":{"retry_share":0},"fair_share":{"weights":{"a":2,"b":null}}}`))
	f.Add([]byte(`{"breaker":{"failure_ratio":2,"probes":-1}}`))
	f.Add([]byte(`{"paused":true,"paused":false}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q := job.NewQueue("q")
		if err := jobs.ReadQueue(body, q); err != nil {
			fieldIsNamed(t, body, jobs.OneRefusal(err))
			return
		}
		told := append(jobs.AppendQueue([]byte("{"), q), '}')
		again := job.NewQueue("q")
		if err := jobs.ReadQueue(told, again); err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("%q is told as %s, which is read as\n%+v, not\n%+v; %v", body, told, again, q, err)
		}
		sameAsStandard(t, body, told)
	})
}

// sameAsStandard checks that each plain value of the body is what is told.
func sameAsStandard(t *testing.T, body, told []byte) {
	t.Helper()
	read := func(text []byte) (m map[string]any) {
		d := stdjson.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&m); err != nil {
			t.Fatalf("%q was taken, but encoding/json says %v", text, err)
		}
		return m
	}
	got := read(told)
	for name, want := range read(body) {
		switch want := want.(type) {
		case bool, stdjson.Number:
			if got[name] != want {
				t.Errorf("%s is %v, encoding/json reads %v", name, got[name], want)
			}
		case string:
			if got[name] != want && want != "" {
				t.Errorf("%s is %v, encoding/json reads %v", name, got[name], want)
			}
		}
	}
}

func fieldIsNamed(t *testing.T, body []byte, err error) {
	t.Helper()
	if own, ok := errors.AsType[*refusal](err); ok {
		if own.status != 413 || len(body) <= plainMax {
			t.Errorf("%.100q is refused with %d %s", body, own.status, own.text)
		}
		return
	}
	own, ok := errors.AsType[*job.Error](err)
	if !ok || own.Kind != job.Invalid || len(own.Text) > 8<<10 {
		t.Fatalf("%q is refused with a %T of %d bytes", body, err, len(err.Error()))
	}
	if whole := strings.HasPrefix(own.Text, "invalid JSON") || strings.HasPrefix(own.Text, "the body "); !whole && (own.Field == "" && !strings.Contains(own.Text, "late_ok")) {
		t.Errorf("%q is refused without the name of a field: %s", body, own.Text)
	}
}
