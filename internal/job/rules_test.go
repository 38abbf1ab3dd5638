package job

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// everyRule are rules of every kind with every field.
const everyRule = `{"when":{"error_type":["A","<B>"],"message":"lock (is )?not free\\n","status":[429,"5xx","600-604"],"exit_code":[1,"64-78"],"timeout":false},` +
	`"do":"retry","limit":2,"curve":{"kind":"list","delays":["5s"],"jitter":"none"},"respect_retry_after":false},` +
	`{"when":{"error_type":["E"]},"do":"dead"},` +
	`{"when":{"status":[503]},"do":"release","delay":"2s"},` +
	`{"when":{"timeout":true},"do":"hold","delay":"1m"},` +
	`{"do":"retry","limit":"unlimited"}`

func TestParseRetryReadsEveryFieldOfARule(t *testing.T) {
	got := mustParse(t, `{"rules":[`+everyRule+`]}`)
	want := Rules{
		{
			When: When{
				ErrorTypes: []string{"A", "<B>"}, Message: `lock (is )?not free\n`,
				Status: []Range{{429, 429}, {500, 599}, {600, 604}}, ExitCode: []Range{{1, 1}, {64, 78}}, Timeout: No,
			},
			Do: DoRetry, Limit: LimitOf(2), Curve: &Curve{Kind: CurveList, Delays: []Millis{5000}}, IgnoreRetryAfter: true,
		},
		{When: When{ErrorTypes: []string{"E"}}, Do: DoDead},
		{When: When{Status: []Range{{503, 503}}}, Do: DoRelease, Delay: 2 * Second},
		{When: When{Timeout: Yes}, Do: DoHold, Delay: Minute},
		{Do: DoRetry, Limit: Unlimited()},
	}
	if got.Rules == nil || !reflect.DeepEqual(*got.Rules, want) {
		t.Errorf("got %+v", got.Rules)
	}
}

func TestOneConditionNeedsNoList(t *testing.T) {
	for text, want := range map[string]When{
		`{"status":429}`:                       {Status: []Range{{429, 429}}},
		`{"status":"429"}`:                     {Status: []Range{{429, 429}}},
		`{"status":"5xx"}`:                     {Status: []Range{{500, 599}}},
		`{"exit_code":"64-78"}`:                {ExitCode: []Range{{64, 78}}},
		`{"error_type":"E","timeout":true}`:    {ErrorTypes: []string{"E"}, Timeout: Yes},
		`{"message":"(?i)deadlock|lock wait"}`: {Message: "(?i)deadlock|lock wait"},
		`{}`:                                   {},
	} {
		r := mustParse(t, `{"rules":[{"when":`+text+`,"do":"dead"}]}`)
		if got := (*r.Rules)[0].When; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestRulesAreReplacedWhole(t *testing.T) { // retry.md section 1, core.md section 6
	queue := mustParse(t, `{"limit":9,"rules":[{"do":"dead"}]}`)
	for own, want := range map[string]*Rules{
		`{"limit":3}`:                         queue.Rules,
		`{"rules":[]}`:                        {},
		`{"rules":[{"do":"retry"}]}`:          {{Do: DoRetry}},
		`{"curve":{"kind":"immediate"}}`:      queue.Rules,
		`{"rules":[],"loss_limit":"3"}`:       {},
		`{"rules":[{"do":"dead"}]}`:           {{Do: DoDead}},
		`{"rules":[{"when":{},"do":"dead"}]}`: {{Do: DoDead}},
	} {
		if got := mustParse(t, own).Over(queue); !reflect.DeepEqual(got.Rules, want) {
			t.Errorf("%s over the queue's: %+v", own, got.Rules)
		}
	}
}

func TestParseRetryRefusesRules(t *testing.T) {
	many := strings.Repeat(`{"when":{"status":1},"do":"dead"},`, RulesMax)
	for text, problem := range map[string]string{
		`{}`:                            "rules: must be a list of rules",
		`null`:                          "rules: must be a list",
		`[7]`:                           "rules[0]: must be an object",
		`[{}]`:                          "rules[0].do: is missing; use one of retry, dead, release, hold",
		`[{"do":"die"}]`:                `rules[0].do: do "die": use one of`,
		`[{"do":7}]`:                    "rules[0].do: must be a string",
		`[{"do":"dead","then":1}]`:      "rules[0].then: unknown key; the keys are when, do",
		`[{"do":"dead","limit":1}]`:     "rules[0].limit: is no field of do dead; its keys are when, do",
		`[{"do":"retry","delay":"1s"}]`: "rules[0].delay: is no field of do retry",
		`[{"do":"release"}]`:            "rules[0].delay: must be given and above 0",
		`[{"do":"hold","delay":0}]`:     "rules[0].delay: must be given and above 0",
		`[{"do":"hold","delay":-1}]`:    "rules[0].delay: must not be negative",
		`[{"do":"retry","limit":-1}]`:   "rules[0].limit:",
		`[{"do":"retry","curve":{"kind":"list"}}]`:                               "rules[0].curve.delays: is missing",
		`[{"do":"retry","curve":{"kind":"uniform","base":0}}]`:                   "rules[0].curve.base: must be above 0",
		`[{"do":"retry","respect_retry_after":1}]`:                               "rules[0].respect_retry_after: must be true or false",
		`[{"do":"dead"},{"do":"retry"}]`:                                         "rules[1]: is never reached: rules[0] has no condition",
		`[{"when":7,"do":"dead"}]`:                                               "rules[0].when: must be an object",
		`[{"when":{"code":7},"do":"dead"}]`:                                      "rules[0].when.code: unknown key; the keys are error_type, message, status, exit_code, timeout",
		`[{"when":{"status":0},"do":"dead"}]`:                                    "rules[0].when.status: 0 must be a number from 1 to 999 or a range such as 503, 5xx",
		`[{"when":{"status":[429,"6x"]},"do":"dead"}]`:                           "rules[0].when.status[1]: 6x must be a number",
		`[{"when":{"status":"504-500"},"do":"dead"}]`:                            "rules[0].when.status: 504-500",
		`[{"when":{"status":1000},"do":"dead"}]`:                                 "rules[0].when.status:",
		`[{"when":{"status":[]},"do":"dead"}]`:                                   "rules[0].when.status: must have at least one entry",
		`[{"when":{"exit_code":256},"do":"dead"}]`:                               "rules[0].when.exit_code: 256 must be a number from 1 to 255",
		`[{"when":{"exit_code":true},"do":"dead"}]`:                              "rules[0].when.exit_code: true",
		`[{"when":{"timeout":"yes"},"do":"dead"}]`:                               "rules[0].when.timeout: must be true or false",
		`[{"when":{"error_type":""},"do":"dead"}]`:                               "rules[0].when.error_type[0]: must be a text of 1 to 1024",
		`[{"when":{"error_type":404},"do":"dead"}]`:                              "rules[0].when.error_type: must be a string",
		`[{"when":{"error_type":["A",1]},"do":"dead"}]`:                          "rules[0].when.error_type[1]: must be a string",
		`[{"when":{"message":""},"do":"dead"}]`:                                  "rules[0].when.message: must not be empty",
		`[{"when":{"message":"("},"do":"dead"}]`:                                 "rules[0].when.message: error parsing regexp: missing closing )",
		`[{"when":{"message":"(?=a)"},"do":"dead"}]`:                             "without look-around",
		`[{"when":{"message":"(a{100}){10}b{999}"},"do":"dead"}]`:                "is too large",
		`[{"when":{"message":"` + strings.Repeat("a", 1025) + `"},"do":"dead"}]`: "has 1025 bytes; the most is 1024",
		`[` + many + `{"do":"dead"}]`:                                            "rules: has 33 entries; the most is 32",
	} {
		r, err := ParseRetry([]byte(`{"rules":` + text + `}`))
		if err == nil || !strings.Contains(err.Error(), problem) || KindOf(err) != Invalid || !r.IsZero() {
			t.Errorf("%s: %v, want %s", text, err, problem)
		}
	}
}

func TestEveryProblemOfRulesIsNamedAtOnce(t *testing.T) {
	_, err := ParseRetry([]byte(`{"limit":-1,"rules":[{"do":"dead","delay":1},
		{"when":{"status":"x","exit_code":0,"timeout":3,"message":"[","error_type":7},"do":"retry","curve":{"kind":"constant","delay":-1}},{"do":"release"},{"do":"wait","when":{"message":"*"}}]}`))
	for _, path := range []string{
		"limit", "rules[0].delay", "rules[1].when.status", "rules[1].when.exit_code", "rules[1].when.timeout",
		"rules[1].when.message", "rules[1].when.error_type", "rules[1].curve.delay", "rules[2].delay",
		"rules[3].do", "rules[3].when.message",
	} {
		if err == nil || strings.Count(err.Error(), path+": ") != 1 {
			t.Errorf("%s is not told once by %v", path, err)
		}
	}
}

func TestValidateFindsWhatGoCodeGotWrongInRules(t *testing.T) {
	for problem, r := range map[string]Rule{
		"rules[0].do: use one of":                              {},
		"rules[0].do: use":                                     {Do: 9},
		"rules[0].limit: is no field of do hold":               {Do: DoHold, Delay: 1, Limit: LimitOf(1)},
		"rules[0].delay: must not be negative":                 {Do: DoRelease, Delay: -1},
		"rules[0].respect_retry_after: is no field of do dead": {Do: DoDead, IgnoreRetryAfter: true},
		"rules[0].curve.kind: use one of":                      {Do: DoRetry, Curve: &Curve{}},
		"rules[0].when.timeout: must be":                       {Do: DoDead, When: When{Timeout: 9}},
		"rules[0].when.status[0]: 5-4 is no range":             {Do: DoDead, When: When{Status: []Range{{5, 4}}}},
		"rules[0].when.exit_code: has 33 entries":              {Do: DoDead, When: When{ExitCode: make([]Range, 33)}},
		"rules[0].when.error_type: has 33 entries":             {Do: DoDead, When: When{ErrorTypes: make([]string, 33)}},
		"rules[0].when.error_type[0]: must be a text":          {Do: DoDead, When: When{ErrorTypes: []string{"\xff"}}},
	} {
		bad := Retry{Rules: &Rules{r}}
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want %s", r, err, problem)
		}
	}
	rules := make(Rules, RulesMax+1)
	if err := (Retry{Rules: &rules}).Validate(); err == nil || !strings.Contains(err.Error(), "rules: has 33 entries") {
		t.Error(err)
	}
}

func TestRulesAreWrittenAsTheyAreBestRead(t *testing.T) {
	got, err := json.Marshal(mustParse(t, `{"rules":[`+everyRule+`]}`))
	// encoding/json escapes < and > of what MarshalJSON returns.
	if text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(got)); err != nil || text != `{"rules":[`+everyRule+`]}` {
		t.Errorf("%s, %v", text, err)
	}
}

// TestFormat1ReadsRulesForever pins the stored form: these bytes are on disks.
func TestFormat1ReadsRulesForever(t *testing.T) {
	for stored, text := range map[string]string{
		"\x01\x80\x80\x10\x00":                  `{"rules":[]}`,
		"\x01\x80\x80\x10\x01\x01\x02\x01\x01E": `{"rules":[{"when":{"error_type":"E"},"do":"dead"}]}`,
		"\x01\x80\x80\x10\x02\xde\x02\x01\x01x\x02\xf7\x03\xf7\x03\xf4\x03\xd7\x04\x01\x01\x01\x01\x91\x02\x04\x04\x88\x27\x80\x01\x04\x88\x27": `{"rules":[{"when":{"message":"x","status":[503,"5xx"],"exit_code":1,"timeout":true},"do":"retry","limit":3,"curve":{"kind":"constant"},"respect_retry_after":false},{"do":"hold","delay":"5s"}]}`,
	} {
		want := mustParse(t, text)
		got, rest, err := DecodeRetry([]byte(stored))
		if err != nil || len(rest) != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v %q %v, want %s", stored, got, rest, err, text)
		}
		if now := want.AppendBinary(nil); string(now) != stored {
			t.Errorf("%s is now stored as %q, want %q", text, now, stored)
		}
	}
}

func TestAPatternThatCouldCostMuchIsRefused(t *testing.T) {
	for pattern, ok := range map[string]bool{
		`lock .* not free`: true, `(?i)^(ora|pg)-\d{5}:`: true, `\p{Lu}{20}`: true,
		`a{1000}`: false, `((a{10}){10}){10}`: false, `(x+x+)+y`: true, `\1`: false,
	} {
		re, err := CompilePattern(pattern)
		if (err == nil) != ok || (re != nil) != ok || err != nil && KindOf(err) != Invalid {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func TestPatternsAreNamedOnce(t *testing.T) {
	r := mustParse(t, `{"rules":[{"when":{"message":"a"},"do":"dead"},{"when":{"message":"b","status":3},"do":"dead"},{"when":{"message":"a","status":4},"do":"dead"}]}`)
	if got := r.Rules.Patterns(); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}
