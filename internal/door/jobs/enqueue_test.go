package jobs_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

func enqueue(t testing.TB, body string) (engine.NewJob, error) {
	t.Helper()
	var r jobs.Reader
	r.Body.WriteString(body)
	list, err := r.Enqueue("")
	if err != nil {
		if job.KindOf(err) != job.Invalid {
			t.Errorf("%s: the kind of %v is %d", body, err, job.KindOf(err))
		}
		return engine.NewJob{}, err
	}
	if len(list) != 1 {
		t.Fatalf("%s: read %d jobs", body, len(list))
	}
	return list[0], nil
}

// with is a job that is complete, with more members.
func with(members string) string {
	return `{"type":"mail","queue":"default","payload":null,` + members + `}`
}

func TestEnqueueReadsTheMinimalJob(t *testing.T) {
	got, err := enqueue(t, `{"type":"mail","queue":"default","payload":null}`)
	want := engine.NewJob{Payload: []byte("null"), Job: job.Job{
		Type: "mail", Queue: "default", Priority: 32768, Copies: 1, RetainDone: job.Unset, RetainDead: job.Unset,
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEnqueueReadsEveryField(t *testing.T) {
	got, err := enqueue(t, ` { "type":"mail", "queue":"default", "payload":{"a": [1]}, "priority":0, "ready_at":1790000000000,
		"retry_limit":3, "backoff":{"exponent":-2.5,"base_ms":100,"jitter_ms":4294967295,"else":[]},
		"retention":{"completed_ms":0,"dead_ms":60000}, "group":"g, *", "place":"front", "expires_at":1790000000001,
		"run_timeout_ms":5, "start_timeout_ms":6, "idempotency_key":"k", "copies":255,
		"requires":["b > 1", "a=x", "b>1"], "unique_key":null, "tags":{"ignored":true} } `)
	curve := job.ZizqCurve(-2.5, 100, 4294967295)
	want := engine.NewJob{Payload: []byte(`{"a": [1]}`), Place: job.PlaceFront, Key: "k", Job: job.Job{
		Type: "mail", Queue: "default", Priority: 0, ReadyAt: 1790000000000,
		Retry:      &job.Retry{Limit: job.LimitOf(3), Curve: &curve},
		RetainDone: 0, RetainDead: 60000, Group: "g, *", ExpiresAt: 1790000000001, RunTimeout: 5, StartTimeout: 6,
		Copies: 255, Requires: []job.Requirement{{Property: "a", Op: "=", Value: "x"}, {Property: "b", Op: ">", Value: "1"}},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEnqueueReadsLabelsAndTheTrace(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	got, err := enqueue(t, with(`"labels":{"b":"2","a":"","é\"":"x"},"traceparent":"`+trace+`"`))
	want := &job.Extras{Labels: []job.Label{{Key: "a"}, {Key: "b", Value: "2"}, {Key: `é"`, Value: "x"}}, Traceparent: trace}
	if err != nil || !reflect.DeepEqual(got.Job.Extras, want) {
		t.Fatalf("got %+v, %v", got.Job.Extras, err)
	}
	got.Job.ID = job.ID{1}
	told := string(jobs.AppendJob(nil, &got.Job))
	if !strings.Contains(told, `,"labels":{"a":"","b":"2","é\"":"x"},"traceparent":"`+trace+`"`) {
		t.Errorf("told as %s", told)
	}
}

func manyLabels(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"k%d":""`, i))
	}
	return strings.Join(list, ",")
}

func TestEnqueueReadsARetryPolicy(t *testing.T) {
	got, err := enqueue(t, with(`"retry":{"limit":"unlimited","curve":{"kind":"constant","delay":"2s"}}`))
	curve := job.Curve{Kind: job.CurveConstant, Delay: 2000}
	if err != nil || !reflect.DeepEqual(got.Job.Retry, &job.Retry{Limit: job.Unlimited(), Curve: &curve}) {
		t.Errorf("got %+v, %v", got.Job.Retry, err)
	}
}

func TestEnqueueTakesNullAsLeftOut(t *testing.T) {
	plain, _ := enqueue(t, with(`"x":1`))
	for _, name := range []string{
		"priority", "ready_at", "retry_limit", "backoff", "retry", "retention", "group", "idempotency_key", "place",
		"expires_at", "run_timeout_ms", "start_timeout_ms", "copies", "requires", "unique_key", "unique_while",
		"batch", "budgets", "labels", "traceparent",
	} {
		got, err := enqueue(t, with(`"`+name+`":null`))
		if err != nil || !reflect.DeepEqual(got, plain) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestEnqueueKeepsPayloadsAsWritten(t *testing.T) {
	for _, payload := range []string{
		`null`, `0`, `""`, `[]`, `{}`, `9007199254740993`, `-9223372036854775808`, `18446744073709551615`, `1.0`, `1e300`,
		`{"a":1,"a":2}`, `"\u0000<>&\/é"`, `[1 , 2]`, strings.Repeat(`[`, job.NestingMax) + strings.Repeat(`]`, job.NestingMax),
	} {
		got, err := enqueue(t, `{"payload": `+payload+` ,"type":"t","queue":"q"}`)
		if err != nil || string(got.Payload) != payload {
			t.Errorf("%.40s became %.40s, %v", payload, got.Payload, err)
		}
	}
	got, err := enqueue(t, `{"type":"t","queue":"q","payload":`+"{\r\n \"a\" : [1,\n 2.50] }}")
	if err != nil || string(got.Payload) != `{"a":[1,2.50]}` {
		t.Errorf("line breaks became %q, %v", got.Payload, err)
	}
}

func TestPayloadsOutliveTheBodyTheyCameIn(t *testing.T) {
	var r jobs.Reader
	r.Body.WriteString(`{"type":"t","queue":"q","payload":"first"}`)
	list, err := r.Enqueue("")
	if err != nil {
		t.Fatal(err)
	}
	kept := list[0]
	r.Reset(false)
	r.Body.WriteString(`{"type":"u","queue":"p","payload":"other"}`)
	if _, err := r.Enqueue(""); err != nil || string(kept.Payload) != `"first"` || kept.Job.Type != "t" || kept.Job.Queue != "q" {
		t.Errorf("the first job became %+v, %v", kept, err)
	}
}

func TestEnqueueRefusesByName(t *testing.T) {
	long := strings.Repeat("n", 1025)
	for _, c := range []struct{ body, text string }{
		{` `, "the body is empty; send a JSON object with type, queue, payload, "},
		{`{`, "invalid JSON: "},
		{`{"type":"t","queue":"q","payload":{]}`, "invalid JSON: "},
		{`{"type":"t","queue":"q","payload":null}{}`, "invalid JSON: there is more after the first value"},
		{`{"type":"t","queue":"q","payload":null} x`, "invalid JSON: there is more after the first value"},
		{`{"type":"t","queue":"q","payload":"` + "\xff" + `"}`, "invalid JSON: "},
		{`{"type":"t","queue":"q","payload":"\ud800"}`, "invalid JSON: "},
		{`{"type":"t","queue":"q","payload":` + strings.Repeat(`[`, 10001), "invalid JSON: "},
		{`[]`, "the job must be an object"},
		{`null`, "the job is missing"},
		{`{"queue":"q","payload":null}`, "type is missing"},
		{`{"type":null,"queue":"q","payload":null}`, "type is missing"},
		{`{"type":"t","payload":null}`, "queue is missing"},
		{`{"type":"t","queue":"q"}`, "payload is missing"},
		{`{"type":"t","queue":"q","payload":1,"payload":2}`, `the job has the field "payload" twice`},
		{`{"type":"t","queue":"q","payload":1,"p\u0061yload":2}`, `the job has the field "payload" twice`},
		{`{"type":"","queue":"q","payload":null}`, "type must not be empty"},
		{`{"type":"t","queue":"","payload":null}`, "queue must not be empty"},
		{`{"type":"t","queue":"a,b","payload":null}`, "queue must not contain ','"},
		{`{"type":"t\u0000","queue":"q","payload":null}`, "type must not contain null bytes"},
		{`{"type":"t","queue":"a*","payload":null}`, "queue must not contain '*' (reserved)"},
		{`{"type":"t","queue":"a?","payload":null}`, "queue must not contain '?' (reserved)"},
		{`{"type":"t","queue":"a[","payload":null}`, "queue must not contain '[' (reserved)"},
		{`{"type":"t","queue":"a]","payload":null}`, "queue must not contain ']' (reserved)"},
		{`{"type":"t","queue":"a{","payload":null}`, "queue must not contain '{' (reserved)"},
		{`{"type":"t","queue":"a}","payload":null}`, "queue must not contain '}' (reserved)"},
		{`{"type":"t","queue":"a\\","payload":null}`, `queue must not contain '\' (reserved)`},
		{`{"type":"` + long + `","queue":"q","payload":null}`, "type must not be longer than 1024 bytes"},
		{`{"type":7,"queue":"q","payload":null}`, "type must be a string"},
		{with(`"priority":-1`), "priority must be a whole number from 0 to 65535"},
		{with(`"priority":65536`), "priority must be a whole number from 0 to 65535"},
		{with(`"priority":1.0`), "priority must be a whole number from 0 to 65535"},
		{with(`"priority":"5"`), "priority must be a whole number from 0 to 65535"},
		{with(`"ready_at":-5`), "ready_at must be a whole number from 0"},
		{with(`"ready_at":99999999999999999999`), "ready_at must be a whole number from 0"},
		{with(`"retry_limit":4294967296`), "retry_limit must be a whole number from 0 to 4294967295"},
		{with(`"backoff":5`), "backoff must be an object"},
		{with(`"backoff":{}`), "backoff.exponent is missing"},
		{with(`"backoff":{"exponent":2,"jitter_ms":1}`), "backoff.base_ms is missing"},
		{with(`"backoff":{"exponent":2,"base_ms":1}`), "backoff.jitter_ms is missing"},
		{with(`"backoff":{"exponent":"2","base_ms":1,"jitter_ms":1}`), "backoff.exponent must be a number"},
		{with(`"backoff":{"exponent":1e39,"base_ms":1,"jitter_ms":1}`), "backoff.exponent must be a number that fits 32 bits"},
		{with(`"backoff":{"exponent":2,"base_ms":4294967296,"jitter_ms":1}`), "backoff.base_ms must be a whole number from 0 to 4294967295"},
		{with(`"backoff":{"exponent":2,"base_ms":1,"base_ms":1,"jitter_ms":1}`), `backoff has the field "base_ms" twice`},
		{with(`"retention":{"dead_ms":-1}`), "retention.dead_ms must be a whole number"},
		{with(`"retry":{"limit":-1}`), "retry is refused: "},
		{with(`"retry":{"limits":1}`), "retry is refused: "},
		{with(`"retry":{"limit":1},"retry_limit":1`), "retry cannot be given together with backoff or retry_limit"},
		{with(`"backoff":{"exponent":2,"base_ms":1,"jitter_ms":1},"retry":{"limit":1}`), "retry cannot be given together"},
		{with(`"place":"middle"`), "place must be one of front back keep"},
		{with(`"group":"` + long + `"`), "group must not be longer than 1024 bytes"},
		{with(`"group":"a\u0000"`), "group must not contain null bytes"},
		{with(`"expires_at":0`), "expires_at must be a whole number from 1"},
		{with(`"ready_at":9,"expires_at":9`), "expires_at must be later than ready_at"},
		{with(`"run_timeout_ms":0`), "run_timeout_ms must be a whole number from 1"},
		{with(`"start_timeout_ms":1.5`), "start_timeout_ms must be a whole number from 1"},
		{with(`"copies":0`), "copies must be a whole number from 1 to 255"},
		{with(`"copies":256`), "copies must be a whole number from 1 to 255"},
		{with(`"requires":"a=1"`), "requires must be an array"},
		{with(`"requires":["a"]`), "requires is refused: "},
		{with(`"requires":[` + strings.Repeat(`"a=1",`, 32) + `"a=1"]`), "requires must not have more than 32 entries"},
		{with(`"idempotency_key":7`), "idempotency_key must be a string"},
		{with(`"labels":[]`), "labels must be an object"},
		{with(`"labels":{"a":1}`), "labels.a must be a string"},
		{with(`"labels":{"":"x"}`), "labels must not have an empty name"},
		{with(`"labels":{"a":"x","a":"y"}`), "labels has the field \"a\" twice"},
		{with(`"labels":{` + manyLabels(33) + `}`), "labels must not be more than 32, or 4096 bytes together"},
		{with(`"labels":{"a":"` + long[:1024] + `","b":"` + long[:1024] + `","c":"` + long[:1024] + `","d":"` + long[:1024] + `"}`), "labels must not be more than 32, or 4096 bytes together"},
		{with(`"traceparent":"00-1-2-3"`), "traceparent must be a W3C trace context, 00-<32 hex digits>-<16 hex digits>-<2 hex digits>"},
		{with(many(254)), `the job must not have more than 256 fields`},
	} {
		_, err := enqueue(t, c.body)
		if err == nil || !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%.100s\n got %v\nwant %s", c.body, err, c.text)
		}
	}
}

// many are so many unknown members.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"m` + strconv.Itoa(i) + `":0,`)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func TestEnqueueTakesTheKeyFromTheHeader(t *testing.T) {
	for _, c := range []struct{ header, body, key, text string }{
		{"h", with(`"x":1`), "h", ""},
		{"k", with(`"idempotency_key":"k"`), "k", ""},
		{"h", with(`"idempotency_key":"k"`), "", "idempotency_key differs from the header Idempotency-Key"},
		{strings.Repeat("h", 1025), with(`"x":1`), "", "the header Idempotency-Key must not be longer than 1024 bytes"},
	} {
		var r jobs.Reader
		r.Body.WriteString(c.body)
		list, err := r.Enqueue(c.header)
		if c.text != "" {
			if err == nil || err.Error() != c.text {
				t.Errorf("%.20s: got %v, want %s", c.header, err, c.text)
			}
		} else if err != nil || list[0].Key != c.key {
			t.Errorf("%s: got %v", c.header, err)
		}
	}
}

func TestBulkKeepsTheOrder(t *testing.T) {
	var r jobs.Reader
	r.Body.WriteString(`{"else":{"jobs":1},"jobs":[{"type":"a","queue":"q","payload":1},{"type":"b","queue":"q","payload":2,"retry_limit":1},{"type":"a","queue":"q","payload":3}]}`)
	list, err := r.Bulk()
	got := ""
	for _, n := range list {
		got += n.Job.Type + string(n.Payload)
	}
	if err != nil || got != "a1b2a3" || list[0].Job.Retry != nil || list[1].Job.Retry == nil || list[2].Job.Retry != nil {
		t.Errorf("got %s, %v", got, err)
	}
	r.Reset(false)
	r.Body.WriteString(`{"jobs":[]}`)
	if list, err := r.Bulk(); err != nil || len(list) != 0 {
		t.Errorf("an empty bulk: got %v, %v", list, err)
	}
}

func TestBulkRefusesByPlaceAndName(t *testing.T) {
	const good = `{"type":"t","queue":"q","payload":null}`
	for _, c := range []struct{ body, text string }{
		{`[]`, "the body must be an object"},
		{`{}`, "jobs is missing"},
		{`{"jobs":null}`, "jobs is missing"},
		{`{"jobs":{}}`, "jobs must be an array"},
		{`{"jobs":[` + good + `,` + `{"type":"t","queue":"a,b","payload":null}]}`, "jobs[1]: queue must not contain ','"},
		{`{"jobs":[` + good + `,` + `{"type":"t","payload":null}]}`, "jobs[1]: queue is missing"},
		{`{"jobs":[` + good + `,` + good + `,7]}`, "jobs[2]: the job must be an object"},
		{`{"jobs":[null]}`, "jobs[0]: the job is missing"},
		{`{"jobs":[` + good + `],"jobs":[]}`, `the body has the field "jobs" twice`},
		{`{"jobs":[` + good, "invalid JSON: "},
		{`{"jobs":[` + strings.Repeat(good+",", 100_000) + good + `]}`, "jobs must not have more than 100000 entries"},
	} {
		var r jobs.Reader
		r.Body.WriteString(c.body)
		if _, err := r.Bulk(); err == nil || !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%.100s\n got %v\nwant %s", c.body, err, c.text)
		}
	}
}

func TestAReaderThatRefusedReadsOn(t *testing.T) {
	var r jobs.Reader
	for range 3 {
		r.Body.WriteString(`{"jobs":[{"type":"t","queue":"q","payload":[`)
		if _, err := r.Bulk(); err == nil {
			t.Error("half a body was read")
		}
		r.Reset(true)
		r.Body.WriteString(`{"jobs":[{"type":"t","queue":"q","payload":[1]}]}`)
		if list, err := r.Bulk(); err != nil || string(list[0].Payload) != "[1]" {
			t.Errorf("after a refusal: %v, %v", list, err)
		}
		r.Reset(false)
	}
}
