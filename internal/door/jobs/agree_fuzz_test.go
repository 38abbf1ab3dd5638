package jobs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// members reads an object with encoding/json. Its maps know no struct, so
// nothing is matched by a name in other letters; null counts as not given.
func members(t *testing.T, raw []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%q was read, but encoding/json says %v", raw, err)
	}
	for name, value := range m {
		if string(value) == "null" && name != "payload" {
			delete(m, name)
		}
	}
	return m
}

// agrees checks a value that we read against what encoding/json reads.
func agrees[T comparable](t *testing.T, m map[string]json.RawMessage, name string, got, otherwise T) {
	t.Helper()
	want := otherwise
	if raw, ok := m[name]; ok {
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Errorf("%s was read as %v from %s: %v", name, got, raw, err)
		}
	}
	if got != want {
		t.Errorf("%s was read as %v, encoding/json reads %v", name, got, want)
	}
}

// strict reports whether a text is JSON by RFC 8259 and I-JSON: encoding/json
// repairs what is not Unicode, and takes the last of two equal names.
func strict(body string) bool {
	return json.Valid([]byte(body)) && utf8.ValidString(body) && !strings.Contains(strings.ToLower(body), `\ud`)
}

// namesWhat checks that a refusal is one of syntax, of a text that is none, or
// names the field.
func namesWhat(t *testing.T, body string, err error) {
	t.Helper()
	refused(t, body, err)
	own, ok := errors.AsType[*job.Error](err)
	switch {
	case !ok:
		t.Errorf("%q is refused with a %T", body, err)
	case strings.TrimSpace(body) == "" && strings.HasPrefix(own.Text, "the body is empty"):
	case strings.HasPrefix(own.Text, "invalid JSON"):
		if strict(body) {
			t.Errorf("%q is JSON, but is refused: %v", body, err)
		}
	case own.Field == "" || !strings.Contains(own.Text, own.Field):
		t.Errorf("%q is refused without the name of a field: %v", body, err)
	}
}

func sameJob(t *testing.T, m map[string]json.RawMessage, n *engine.NewJob) {
	t.Helper()
	j := &n.Job
	agrees(t, m, "type", j.Type, "")
	agrees(t, m, "queue", j.Queue, "")
	agrees(t, m, "group", j.Group, "")
	agrees(t, m, "idempotency_key", n.Key, "")
	agrees(t, m, "priority", j.Priority, job.PriorityDefault)
	agrees(t, m, "ready_at", int64(j.ReadyAt), 0)
	agrees(t, m, "expires_at", int64(j.ExpiresAt), 0)
	agrees(t, m, "run_timeout_ms", int64(j.RunTimeout), 0)
	agrees(t, m, "start_timeout_ms", int64(j.StartTimeout), 0)
	agrees(t, m, "copies", j.Copies, 1)
	var compact bytes.Buffer
	if err := json.Compact(&compact, m["payload"]); err != nil {
		t.Fatal(err)
	}
	var own bytes.Buffer
	if err := json.Compact(&own, n.Payload); err != nil || !bytes.Equal(own.Bytes(), compact.Bytes()) {
		t.Errorf("the payload %s was kept as %s, %v", m["payload"], n.Payload, err)
	}
	if raw, ok := m["retention"]; ok {
		r := members(t, raw)
		agrees(t, r, "completed_ms", int64(j.RetainDone), int64(job.Unset))
		agrees(t, r, "dead_ms", int64(j.RetainDead), int64(job.Unset))
	}
	if raw, ok := m["retry_limit"]; ok {
		count, counted := j.Retry.Limit.Count()
		if !counted || fmt.Sprint(count) != string(raw) {
			t.Errorf("retry_limit %s was read as %v", raw, j.Retry.Limit)
		}
	}
}

// FuzzEnqueueAgrees holds our reader of enqueues against encoding/json: what
// we read, it reads the same; what we call no JSON, is none; everything else
// that we refuse, we refuse by the name of a field.
func FuzzEnqueueAgrees(f *testing.F) {
	f.Add(with(`"priority":1,"ready_at":2,"expires_at":3,"run_timeout_ms":4,"start_timeout_ms":5,"copies":6,"retry_limit":7`))
	f.Add(with(`"retention":{"completed_ms":0},"idempotency_key":"k\n","group":"\u00e9\ud83d\ude00"`))
	f.Add(with(`"group":"\ud800"`))
	f.Add(with(`"priority":1e2`))
	f.Add(with(`"copies":null,"Copies":9,"unknown":[{"a":[]}]`))
	f.Add(with(`"type":"again"`))
	f.Add("\ufeff" + with(`"a":1`))
	f.Fuzz(func(t *testing.T, body string) {
		list, err := reader(body).Enqueue("")
		if err != nil {
			namesWhat(t, body, err)
			return
		}
		m := members(t, []byte(body))
		sameJob(t, m, &list[0])
		bulk := `{"jobs":[` + body + `,` + body + `]}`
		two, err := reader(bulk).Bulk()
		if err != nil || len(two) != 2 {
			t.Fatalf("taken alone, but in a bulk: %v", err)
		}
		sameJob(t, m, &two[1])
	})
}

// FuzzSettlesAgree does the same for the ends of attempts.
func FuzzSettlesAgree(f *testing.F) {
	const head = `{"id":"` + idA + `","lease":"` + token + `",`
	f.Add(`[` + head + `"outcome":"retry","error":{"message":"m","error_type":"E","backtrace":"b","status":503},"retry_at":5,"started":7}]`)
	f.Add(`[` + head + `"outcome":"ok"},{"id":"` + idB + `","outcome":"release","delay_ms":9,"place":"front"}]`)
	f.Add(`[` + head + `"outcome":"dead","retry_in_ms":0,"retry_after_ms":1,"error":null,"more":{}}]`)
	f.Add(`[` + head + `"outcome":"ok","hold":90000},` + head + `"outcome":"release","hold":"1m30s"}]`)
	f.Add(`[null]`)
	f.Fuzz(func(t *testing.T, body string) {
		list, err := reader(body).Settles()
		if err != nil {
			namesWhat(t, body, err)
			return
		}
		var all []json.RawMessage
		if err := json.Unmarshal([]byte(body), &all); err != nil || len(all) != len(list) {
			t.Fatalf("%q was read as %d ends, encoding/json reads %d, %v", body, len(list), len(all), err)
		}
		for i := range list {
			s, m := &list[i], members(t, all[i])
			agrees(t, m, "id", s.ID.String(), "")
			agrees(t, m, "outcome", s.Outcome.String(), "")
			agrees(t, m, "started", int64(s.Started), 0)
			agrees(t, m, "delay_ms", int64(s.Delay), 0)
			agrees(t, m, "retry_after_ms", int64(s.RetryAfter), 0)
			if raw := m["hold"]; len(raw) > 0 && raw[0] != '"' {
				agrees(t, m, "hold", int64(s.Hold), 0)
			}
			if raw, ok := m["lease"]; ok != !s.Token.IsZero() && !strings.Contains(string(raw), strings.Repeat("0", 40)) {
				t.Errorf("lease %s was read as %x", raw, s.Token)
			}
			failure := map[string]json.RawMessage{}
			if raw, ok := m["error"]; ok {
				failure = members(t, raw)
			}
			agrees(t, failure, "message", s.Failure.Message, "")
			agrees(t, failure, "error_type", s.Failure.Type, "")
			agrees(t, failure, "backtrace", s.Failure.Backtrace, "")
			agrees(t, failure, "status", s.Failure.Status, 0)
		}
	})
}

// FuzzErrorsQuery reads the query of GET /jobs/{id}/errors, whose cursors are
// numbers: a page links to itself, and the query of a count, which has no
// pages, takes of the same parameters all but those of pages.
func FuzzErrorsQuery(f *testing.F) {
	f.Add("from=1&limit=2")
	f.Add("from=4294967295&order=desc")
	f.Add("from=4294967296")
	f.Add("from=0")
	f.Add("status=dead&priority=..5")
	f.Add("limit=2000&limit=1")
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := jobs.CountQuery(raw); err != nil {
			refused(t, raw, err)
		} else if _, err := jobs.ListQuery(raw); err != nil {
			t.Errorf("%q counts, but does not list: %v", raw, err)
		}
		q, err := jobs.ErrorsQuery(id(t, idA), raw)
		if err != nil {
			refused(t, raw, err)
			return
		}
		rows := []job.Failure{{Number: 1, Message: "m"}, {Number: 1<<32 - 1, Attempt: 2, Message: "m"}}
		var answer struct {
			Pages struct{ Self, Next, Prev string }
		}
		out := q.AppendErrors(nil, jobs.Found[job.Failure]{Rows: rows, More: true})
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%q is answered with %q: %v", raw, out, err)
		}
		for _, link := range []string{answer.Pages.Self, answer.Pages.Next, answer.Pages.Prev} {
			path, own, _ := strings.Cut(link, "?")
			if link == "" {
				continue
			}
			if path != "/jobs/"+idA+"/errors" {
				t.Errorf("%q links to %q", raw, link)
			}
			if _, err := jobs.ErrorsQuery(id(t, idA), own); err != nil {
				t.Errorf("%q links to %q, which is refused: %v", raw, link, err)
			}
		}
	})
}
