package jobs_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

const (
	idA   = "03gq0x7k2m4v9c1d8f5h6j0a1"
	idB   = "03gq0x7k2m4v9c1d8f5h6j0a2"
	token = "00000001aabbccddeeff00112233445566778899"
)

func id(t testing.TB, s string) job.ID {
	t.Helper()
	got, err := job.ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func reader(body string) *jobs.Reader {
	r := &jobs.Reader{}
	r.Body.WriteString(body)
	return r
}

func TestSuccessReadsIDs(t *testing.T) {
	list, unknown, err := reader(`{"more":1,"ids":["` + idA + `","nonsense","` + idB + `","nonsense"]}`).Success()
	want := []engine.Settle{{ID: id(t, idA)}, {ID: id(t, idB)}}
	if err != nil || !reflect.DeepEqual(list, want) || !slices.Equal(unknown, []string{"nonsense", "nonsense"}) {
		t.Errorf("got %v, %q, %v", list, unknown, err)
	}
}

func TestSuccessRefusesByName(t *testing.T) {
	for body, text := range map[string]string{
		`{"ids":[]}`:                "ids must not be empty",
		`{}`:                        "ids is missing",
		`{"ids":null}`:              "ids is missing",
		`{"ids":"a"}`:               "ids must be an array",
		`{"ids":["a",7]}`:           "ids[1]: id must be a string",
		`{"ids":[null]}`:            "ids[0]: id is missing",
		`["a"]`:                     "the body must be an object",
		`{"ids":["a"`:               "invalid JSON: ",
		`{"ids":["` + idA + `"]} 1`: "invalid JSON: there is more",
	} {
		if _, _, err := reader(body).Success(); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%s\n got %v\nwant %s", body, err, text)
		}
	}
}

func TestMissingCountsRepeatedIDsOnce(t *testing.T) {
	a, b := id(t, idA), id(t, idB)
	gone := engine.Verdict{Err: job.Errorf(job.NotFound, "gone")}
	done := engine.Verdict{State: job.Done}
	refused := engine.Verdict{Err: job.Errorf(job.TokenNeeded, "by token only")}
	for _, c := range []struct {
		name     string
		ids      []job.ID
		verdicts []engine.Verdict
		unknown  []string
		missing  []string
		why      error
	}{
		{"all done", []job.ID{a, b}, []engine.Verdict{done, done}, nil, nil, nil},
		{"done, then the same again", []job.ID{a, a}, []engine.Verdict{done, gone}, nil, nil, nil},
		{"one gone twice", []job.ID{a, b, a}, []engine.Verdict{gone, done, gone}, nil, []string{idA}, nil},
		{"no ids at all", nil, nil, []string{"y", "x", "y"}, []string{"x", "y"}, nil},
		{"refused for a reason", []job.ID{a, b}, []engine.Verdict{gone, refused}, []string{"x"}, []string{idA, idB, "x"}, refused.Err},
	} {
		var list []engine.Settle
		for _, one := range c.ids {
			list = append(list, engine.Settle{ID: one})
		}
		missing, why := jobs.Missing(list, c.verdicts, c.unknown)
		if !slices.Equal(missing, c.missing) || !errors.Is(why, c.why) {
			t.Errorf("%s: got %q, %v", c.name, missing, why)
		}
	}
}

func TestFailureReadsEveryField(t *testing.T) {
	got, err := reader(`{"message":"m\n","error_type":"E","backtrace":"b","status":503,"exit_code":75,"timeout":true,"retry_at":0,"retry_in_ms":7,` +
		`"retry_after_ms":8,"started":9,"place":"back","kill":false,"else":{}}`).Failure(id(t, idA))
	want := engine.Settle{
		ID: id(t, idA), Outcome: job.Retried, Failure: job.Failure{Message: "m\n", Type: "E", Backtrace: "b", Status: 503, ExitCode: 75, Timeout: true},
		RetryAt: 1, RetryIn: 7, RetryAfter: 8, Started: 9, Place: job.PlaceBack,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = reader(`{"message":"","kill":true,"retry_at":null,"error_type":null}`).Failure(id(t, idA))
	if want := (engine.Settle{ID: id(t, idA), Outcome: job.Died}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestARetryAfterIsReadAsATargetSaysIt(t *testing.T) { // RFC 9110 section 10.2.3
	for value, want := range map[string]engine.Settle{
		`120`: {RetryAfter: 120 * job.Second}, `"120"`: {RetryAfter: 120 * job.Second}, `" 0 "`: {}, `null`: {},
		`9007199254740991`:                          {RetryAfter: job.MaxMillis / job.Second * job.Second},
		`"Sun, 06 Nov 1994 08:49:37 GMT"`:           {NotBefore: 784111777000},
		`"Sunday, 06-Nov-94 08:49:37 GMT"`:          {NotBefore: 784111777000},
		`"Sun Nov  6 08:49:37 1994"`:                {NotBefore: 784111777000},
		`"Thu, 01 Jan 1970 00:00:00 GMT"`:           {NotBefore: 1},
		`"Sun, 06 Nov 1994 \u0030\u0038:49:37 GMT"`: {NotBefore: 784111777000},
	} {
		got, err := reader(`{"message":"","retry_after":` + value + `}`).Failure(job.ID{})
		want.Outcome = job.Retried
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
}

func TestFailureRefusesByName(t *testing.T) {
	for body, text := range map[string]string{
		`{}`:                                   "message is missing",
		`{"message":null}`:                     "message is missing",
		`{"message":5}`:                        "message must be a string",
		`{"message":"m","kill":"yes"}`:         "kill must be true or false",
		`{"message":"m","retry_at":-1}`:        "retry_at must be a whole number",
		`{"message":"m","status":1000}`:        "status must be a whole number from 0 to 999",
		`{"message":"m","exit_code":256}`:      "exit_code must be a whole number from 0 to 255",
		`{"message":"m","timeout":1}`:          "timeout must be true or false",
		`{"message":"m","retry_after":"soon"}`: "retry_after must be a whole number of seconds or a date",
		`{"message":"m","retry_after":-1}`:     "retry_after must be a whole number of seconds",
		`{"message":"m","retry_after":1.5}`:    "retry_after must be a whole number of seconds",
		`{"message":"m","place":"there"}`:      "place must be one of",
		`{"message":"m","message":"n"}`:        `the body has the field "message" twice`,
		`"m"`:                                  "the body must be an object",
		``:                                     "the body is empty; send a JSON object with message, ",
	} {
		if _, err := reader(body).Failure(job.ID{}); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%s\n got %v\nwant %s", body, err, text)
		}
	}
}

func TestSettlesReadsEveryOutcome(t *testing.T) {
	got, err := reader(`[{"id":"` + idA + `","lease":"` + token + `","outcome":"ok","started":3},
		{"id":"` + idA + `","outcome":"retry","error":{"message":"m","error_type":"E","backtrace":"b","status":500,"else":1},"retry_in_ms":0},
		{"id":"` + idB + `","outcome":"dead","error":null,"lease":null},
		{"outcome":"release","id":"` + idB + `","delay_ms":5,"place":"front","result":null,"else":[]}]`).Settles()
	lease, _ := job.ParseToken(token)
	want := []engine.Settle{
		{ID: id(t, idA), Token: lease, Outcome: job.OK, Started: 3},
		{
			ID: id(t, idA), Outcome: job.Retried, RetryIn: 1,
			Failure: job.Failure{Message: "m", Type: "E", Backtrace: "b", Status: 500},
		},
		{ID: id(t, idB), Outcome: job.Died},
		{ID: id(t, idB), Outcome: job.Released, Delay: 5, Place: job.PlaceFront},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := reader(`[]`).Settles(); err != nil || len(got) != 0 {
		t.Errorf("an empty list: got %v, %v", got, err)
	}
}

func TestSettlesRefusesByPlaceAndName(t *testing.T) {
	const good = `{"id":"` + idA + `","outcome":"ok"}`
	for body, text := range map[string]string{
		`{}`:                                  "settles must be an array",
		`[7]`:                                 "settles[0]: the entry must be an object",
		`[{"outcome":"ok"}]`:                  "settles[0]: id is missing",
		`[` + good + `,{"id":"` + idA + `"}]`: "settles[1]: outcome is missing",
		`[` + good + `,{"id":"` + idA + `","outcome":null}]`:             "settles[1]: outcome is missing",
		`[` + good + `,{"id":"` + idA + `","outcome":"done"}]`:           "settles[1]: outcome must be one of ok retry dead release",
		`[{"id":"x","outcome":"ok"}]`:                                    "settles[0]: id is no id",
		`[{"id":7,"outcome":"ok"}]`:                                      "settles[0]: id must be a string",
		`[{"id":"` + idA + `","outcome":"ok","lease":"x"}]`:              "settles[0]: lease is no token",
		`[{"id":"` + idA + `","outcome":"retry","error":{}}]`:            "settles[0]: error.message is missing",
		`[{"id":"` + idA + `","outcome":"retry","error":{"message":1}}]`: "settles[0]: error.message must be a string",
		`[{"id":"` + idA + `","outcome":"release","delay_ms":-1}]`:       "settles[0]: delay_ms must be a whole number",
		`[{"id":"` + idA + `","outcome":"retry","result":1}]`:            "settles[0]: result goes with the outcome ok only",
		`[{"id":"` + idA + `","result":0,"outcome":"dead"}]`:             "settles[0]: result goes with the outcome ok only",
		`[{"id":"` + idA + `","outcome":"ok","hold":-1}]`:                "settles[0]: hold must be a span: ",
		`[{"id":"` + idA + `","outcome":"ok","outcome":"dead"}]`:         `settles[0]: the entry has the field "outcome" twice`,
	} {
		if _, err := reader(body).Settles(); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%s\n got %v\nwant %s", body, err, text)
		}
	}
}

func TestAHoldIsReadWithEveryOutcome(t *testing.T) {
	for value, want := range map[string]job.Millis{
		`0`: 0, `null`: 0, `1`: 1, `90000`: 90 * job.Second, `"90000"`: 90 * job.Second, `"90s"`: 90 * job.Second,
		`"1m30s"`: 90 * job.Second, `"PT1M30S"`: 90 * job.Second, `"\u0039\u0030s"`: 90 * job.Second, `"7d"`: 7 * job.Day,
		fmt.Sprint(int64(job.MaxMillis)): job.MaxMillis,
	} {
		for _, outcome := range []job.Outcome{job.OK, job.Retried, job.Died, job.Released} {
			got, err := reader(`[{"id":"` + idA + `","outcome":"` + outcome.String() + `","hold":` + value + `}]`).Settles()
			if err != nil || got[0].Hold != want || got[0].Outcome != outcome {
				t.Errorf("hold %s with %s: %+v, %v", value, outcome, got, err)
			}
		}
		for _, kill := range []string{"", `"kill":true,`} {
			got, err := reader(`{"message":"m",` + kill + `"hold":` + value + `}`).Failure(id(t, idA))
			if err != nil || got.Hold != want {
				t.Errorf("hold %s of a failure: %+v, %v", value, got, err)
			}
		}
	}
}

func TestAHoldThatIsNoSpanIsRefusedByName(t *testing.T) {
	for _, value := range []string{
		`-1`, `1.5`, `1e3`, fmt.Sprint(int64(job.MaxMillis) + 1), `99999999999999999999`, `true`, `{}`, `[]`, `""`, `"-5s"`, `"soon"`, `"5 s"`, `"1.5"`, `"1y"`, `"P1Y"`,
		`"999999999999d"`,
	} {
		for _, read := range []func() error{
			func() error { _, err := reader(`{"message":"m","hold":` + value + `}`).Failure(id(t, idA)); return err },
			func() error {
				_, err := reader(`[{"id":"` + idA + `","outcome":"ok","hold":` + value + `}]`).Settles()
				return err
			},
		} {
			err := read()
			own, ok := errors.AsType[*job.Error](err)
			if !ok || own.Field != "hold" || own.Kind != job.Invalid || !strings.Contains(own.Text, "hold must be a span: ") {
				t.Errorf("hold %s: %v", value, err)
			}
		}
	}
}
