package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/wire"
)

func minimal(t testing.TB) *job.Job {
	return &job.Job{
		ID: id(t, idA), Type: "mail", Queue: "default", Priority: 32768, State: job.Ready, ReadyAt: 1790000000000,
		Copies: 1, RetainDone: job.Unset, RetainDead: job.Unset,
	}
}

// TestAnswersAreThoseOfTheReference compares with reference 1.22, byte by byte.
func TestAnswersAreThoseOfTheReference(t *testing.T) {
	const fresh = `{"id":"` + idA + `","type":"mail","queue":"default","priority":32768,"status":"ready",` +
		`"ready_at":1790000000000,"attempts":0,"duplicate":false,"folded":false}`
	j := minimal(t)
	added := engine.Added{Job: j, ID: j.ID}
	same(t, jobs.AppendAdded(nil, added, nil), fresh)
	same(t, jobs.AppendAddedAll(nil, []engine.Added{added, added}, make([]engine.NewJob, 2)), `{"jobs":[`+fresh+`,`+fresh+`]}`)
	same(t, jobs.AppendAddedAll(nil, nil, nil), `{"jobs":[]}`)
	same(t, jobs.AppendMissing(nil, []string{idB}, nil), `{"not_found":["`+idB+`"]}`)
	same(t, jobs.AppendError(nil, "not_found", "not found"), `{"error":"not found","code":"not_found"}`)

	failed := *j
	failed.State, failed.Attempts, failed.FailedAt, failed.ReadyAt = job.Scheduled, 1, 1790000000000, 1790000015000
	same(t, jobs.AppendVerdictJob(nil, j.ID, engine.Verdict{Job: &failed}),
		`{"id":"`+idA+`","type":"mail","queue":"default","priority":32768,"status":"scheduled",`+
			`"ready_at":1790000015000,"attempts":1,"failed_at":1790000000000}`)
}

func same(t *testing.T, got []byte, want string) {
	t.Helper()
	if string(got) != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	if !json.Valid(got) {
		t.Errorf("not JSON: %s", got)
	}
}

func TestAJobIsWrittenWithEveryField(t *testing.T) {
	curve := job.ZizqCurve(2.5, 100, 0)
	j := minimal(t)
	j.Queue, j.State, j.Reason = "a\"b\x01<é>", job.Dead, job.Exhausted
	j.Retry = &job.Retry{Limit: job.LimitOf(0), Curve: &curve}
	j.DequeuedAt, j.FailedAt, j.PurgeAt, j.CompletedAt, j.ExpiresAt = 1, 2, 3, 4, 5
	j.RetainDone, j.RetainDead = 0, 9
	j.Group, j.RunTimeout, j.StartTimeout, j.Copies = "g", 6, 7, 2
	j.Requires = []job.Requirement{{Property: "a", Op: "=", Value: "1"}, {Property: "b", Op: ">", Value: "2"}}
	j.Losses, j.Evictions, j.Reschedules = 1, 2, 3
	same(t, jobs.AppendListed(nil, query.Listed{Job: j, Payload: []byte(`{"n":9007199254740993}`)}),
		`{"id":"`+idA+`","type":"mail","queue":"a\"b\u0001<é>","priority":32768,"status":"dead","payload":{"n":9007199254740993},`+
			`"ready_at":1790000000000,"attempts":0,"retry_limit":0,"backoff":{"exponent":2.5,"base_ms":100,"jitter_ms":0},`+
			`"dequeued_at":1,"failed_at":2,"retention":{"completed_ms":0,"dead_ms":9},"purge_at":3,"completed_at":4,`+
			`"group":"g","expires_at":5,"run_timeout_ms":6,"start_timeout_ms":7,"copies":2,"requires":["a = 1","b > 2"],`+
			`"losses":1,"evictions":2,"reschedules":3,"reason":"exhausted"}`)
}

func TestAPolicyThatZizqCannotSayIsWrittenWhole(t *testing.T) {
	j := minimal(t)
	j.Retry = &job.Retry{Limit: job.LimitOf(2), Curve: &job.Curve{Kind: job.CurveImmediate}, Place: job.PlaceFront}
	same(t, jobs.AppendJob(nil, j), `{"id":"`+idA+`","type":"mail","queue":"default","priority":32768,"status":"ready",`+
		`"ready_at":1790000000000,"attempts":0,"retry_limit":2,"retry":{"limit":2,"place":"front","curve":{"kind":"immediate"}}}`)
}

func TestADuplicateWhoseJobIsGoneIsToldAsItWasAsked(t *testing.T) {
	asked := engine.NewJob{Job: *minimal(t)}
	asked.Job.ID = job.ID{}
	same(t, jobs.AppendAdded(nil, engine.Added{ID: id(t, idB), Duplicate: true}, &asked),
		`{"id":"`+idB+`","type":"mail","queue":"default","priority":32768,"status":"completed",`+
			`"ready_at":1790000000000,"attempts":0,"gone":true,"duplicate":true,"folded":false}`)
}

func TestALineHoldsTheTokenOnlyForWhoSettlesByIt(t *testing.T) {
	lease, _ := job.ParseToken(token)
	d := &engine.Delivery{Job: minimal(t), Lease: job.Lease{Token: lease, Until: 8, RunEnd: 9}, Held: true}
	const start = `{"id":"` + idA + `","type":"mail","queue":"default","priority":32768,"status":"ready","payload":null,` +
		`"ready_at":1790000000000,"attempts":0`
	same(t, jobs.AppendLine(nil, d, false), start+"}\n")
	const rest = `,"lease":"` + token + `","lease_until":8,"run_until":9,"held":true}`
	same(t, jobs.AppendLine(nil, d, true), start+rest+"\n")
	same(t, jobs.AppendLeases(nil, []engine.Delivery{*d, *d}), `{"jobs":[`+start+rest+`,`+start+rest+`]}`)
	same(t, jobs.AppendLeases(nil, nil), `{"jobs":[]}`)
}

func TestVerdictsNameStatusOrCode(t *testing.T) {
	list := []engine.Verdict{
		{State: job.Done},
		{State: job.Scheduled, Job: minimal(t)},
		{Err: job.Errorf(job.Superseded, "too late")},
		{Err: job.Errorf(job.Internal, "a secret")},
	}
	same(t, jobs.AppendVerdicts(nil, list, func(int) job.ID { return id(t, idA) }), `{"verdicts":[`+
		`{"id":"`+idA+`","status":"completed"},{"id":"`+idA+`","status":"scheduled"},`+
		`{"id":"`+idA+`","code":"superseded","error":"too late"},`+
		`{"id":"`+idA+`","code":"internal","error":"internal server error"}]}`)
	same(t, jobs.AppendVerdictJob(nil, id(t, idA), engine.Verdict{State: job.Dead}), `{"id":"`+idA+`","status":"dead"}`)
	same(t, jobs.AppendMissing(nil, []string{idA}, job.Errorf(job.TokenNeeded, "by token")), `{"not_found":["`+idA+`"],"error":"by token","code":"token_needed"}`)
}

func TestEveryKindHasAFaultOfItsOwn(t *testing.T) {
	codes := map[string]job.Kind{}
	for k := job.Internal; k <= job.Corrupt; k++ {
		f := jobs.FaultOf(&job.Error{Kind: k})
		if other, twice := codes[f.Code]; twice || f.Status < 400 || f.Code == "" {
			t.Errorf("kind %d is told as %+v, kind %d too", k, f, other)
		}
		codes[f.Code] = k
		if !slices.ContainsFunc(wire.Codes, func(c wire.Code) bool { return c.Code == f.Code && c.Status == f.Status }) {
			t.Errorf("kind %d is told as %+v, which is not in the public table", k, f)
		}
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
		if f := jobs.FaultOf(err); f.Status != 503 {
			t.Errorf("%v is told as %+v", err, f)
		}
	}
	if text := jobs.TextOf(errors.New("a secret")); text != "internal server error" {
		t.Errorf("an error of nobody's is told as %q", text)
	}
}

func TestAFailureIsWrittenWithEveryField(t *testing.T) {
	f := job.Failure{Number: 2, Attempt: 2, Message: "m\n", Holder: "a/00ff", Started: 3, Failed: 4}
	same(t, jobs.AppendFailure(nil, f), `{"attempt":2,"message":"m\n","dequeued_at":3,"failed_at":4}`)
	f.Type, f.Backtrace, f.Status, f.Attempt, f.Holder = "E", "b", 500, 1, "w/me/2"
	same(t, jobs.AppendFailure(nil, f),
		`{"attempt":2,"message":"m\n","error_type":"E","backtrace":"b","dequeued_at":3,"failed_at":4,"status":500,"worker":"me/2","attempts":1}`)
	f = job.Failure{Number: 1, Attempt: 1, ExitCode: 75, Timeout: true}
	same(t, jobs.AppendFailure(nil, f), `{"attempt":1,"message":"","dequeued_at":0,"failed_at":0,"exit_code":75,"timeout":true}`)
}
