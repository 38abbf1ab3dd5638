package jobs_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
)

// sound checks what was read from any body: it says of itself what it is.
func sound(t *testing.T, body string, list []engine.NewJob) {
	t.Helper()
	for i := range list {
		n := &list[i]
		if jobs.CheckName("queue", n.Job.Queue) != nil || jobs.CheckName("type", n.Job.Type) != nil || n.Job.Copies == 0 {
			t.Errorf("%q was read as %+v", body, n)
		}
		if !json.Valid(n.Payload) || bytes.ContainsAny(n.Payload, "\r\n") {
			t.Errorf("%q: the payload is %q", body, n.Payload)
		}
		if n.Job.ReadyAt < 0 || n.Job.ExpiresAt < 0 || n.Job.RunTimeout < 0 || n.Job.RetainDone < job.Unset {
			t.Errorf("%q: a time is negative: %+v", body, n.Job)
		}
		j := n.Job
		line := jobs.AppendLine(nil, &engine.Delivery{Job: &j, Payload: n.Payload}, true)
		if bytes.IndexByte(line, '\n') != len(line)-1 || !json.Valid(line) {
			t.Errorf("%q is delivered as %q", body, line)
		}
	}
}

func refused(t *testing.T, body string, err error) {
	t.Helper()
	text := string(jobs.AppendError(nil, jobs.FaultOf(err).Code, jobs.TextOf(err)))
	if job.KindOf(err) != job.Invalid || !json.Valid([]byte(text)) || len(text) > 8<<10 {
		t.Errorf("%q is refused as %s", body, text)
	}
}

func FuzzEnqueueBody(f *testing.F) {
	f.Add(`{"type":"mail","queue":"default","payload":null}`)
	f.Add(with(`"backoff":{"exponent":2.0,"base_ms":1,"jitter_ms":2},"retention":{"dead_ms":1},"priority":65535`))
	f.Add(with(`"retry":{"limit":3,"curve":{"kind":"list","delays":["1s","PT5S",7]}},"requires":["a=1"],"copies":2`))
	f.Add("{\"payload\":{\r\"a\":\"\\u2028\"},\"t\\u0079pe\":\"t\",\"queue\":\"é\"}")
	f.Fuzz(func(t *testing.T, body string) {
		list, err := reader(body).Enqueue("")
		if err != nil {
			refused(t, body, err)
			return
		}
		sound(t, body, list)
	})
}

func FuzzBulkBody(f *testing.F) {
	f.Add(`{"jobs":[]}`)
	f.Add(`{"jobs":[{"type":"mail","queue":"default","payload":[1,{"a":"b"}]},` + with(`"group":"g","place":"back"`) + `]}`)
	f.Add(`{"jobs":[{"type":"mail","queue":"a,b","payload":1}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		list, err := reader(body).Bulk()
		if err != nil {
			refused(t, body, err)
			return
		}
		sound(t, body, list)
	})
}

func FuzzSettleBody(f *testing.F) {
	f.Add(`[{"id":"` + idA + `","lease":"` + token + `","outcome":"retry","error":{"message":"m"},"retry_at":5}]`)
	f.Add(`{"ids":["` + idA + `","x"]}`)
	f.Add(`{"message":"m","kill":true,"status":500,"retry_in_ms":0}`)
	f.Fuzz(func(t *testing.T, body string) {
		if list, err := reader(body).Settles(); err != nil {
			refused(t, body, err)
		} else if out := jobs.AppendVerdicts(nil, make([]engine.Verdict, len(list)), func(i int) job.ID { return list[i].ID }); !json.Valid(out) {
			t.Errorf("%q is answered with %q", body, out)
		}
		if list, unknown, err := reader(body).Success(); err != nil {
			refused(t, body, err)
		} else if len(list)+len(unknown) == 0 {
			t.Errorf("%q settles nothing", body)
		} else if missing, _ := jobs.Missing(list, make([]engine.Verdict, len(list)), unknown); !json.Valid(jobs.AppendMissing(nil, missing, nil)) {
			t.Errorf("%q is answered with %q", body, missing)
		}
		if s, err := reader(body).Failure(job.ID{}); err != nil {
			refused(t, body, err)
		} else if s.RetryAt < 0 || s.RetryIn < 0 || s.RetryAfter < 0 || s.Hold < 0 || s.Hold > job.MaxMillis || s.Failure.Status < 0 {
			t.Errorf("%q was read as %+v", body, s)
		}
	})
}

func FuzzListQuery(f *testing.F) {
	f.Add("status=ready,dead&queue=a%26b&limit=5&order=desc")
	f.Add("from=" + idA + "&priority=1..5&attempts=..&ready_at=7..")
	f.Add("filter=.a%7C.b&id=" + idB + "&type=%00,%25")
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := jobs.ListQuery(raw)
		if err != nil {
			refused(t, raw, err)
			return
		}
		var answer struct{ Pages struct{ Self, Next string } }
		out := q.AppendList(nil, jobs.Found[query.Listed]{Rows: []query.Listed{{Job: &job.Job{ID: id(t, idA)}}}, More: true})
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%q is answered with %q: %v", raw, out, err)
		}
		path, own, _ := strings.Cut(answer.Pages.Self, "?")
		again, err := jobs.ListQuery(own)
		if err != nil || path != "/jobs" {
			t.Fatalf("%q links to itself as %q: %v", raw, answer.Pages.Self, err)
		}
		if round := string(again.AppendList(nil, jobs.Found[query.Listed]{})); !strings.Contains(round, quoted(answer.Pages.Self)) {
			t.Errorf("%q links to itself as %s, and that as %s", raw, answer.Pages.Self, round)
		}
	})
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSpace(b.String())
}
