package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

const protectedFile = `
queues:
  hooks:
    max_running: 100
    rate: {per_second: 50, burst: 5}
    group_rate: {per_second: 0.5}
    breaker: {}
    group_breaker:
      consecutive: 5
      open_for_ms: 600000
    retry_budget: {retry_share: 0}
    fair_share:
      weights:
        gold.example: 3
        7: 2
  plain:
    fair_share:
      weights:
  none: {max_running: 0, rate: {per_second: 0}}
`

func TestProtectionIsReadFromTheFileAsFromTheWire(t *testing.T) {
	cfg, report, err := load(t, nil, nil, protectedFile)
	if err != nil {
		t.Fatal(err)
	}
	wired := job.NewQueue("hooks")
	if err := jobs.ReadQueue([]byte(`{"max_running":100,"rate":{"per_second":50,"burst":5},"group_rate":{"per_second":0.5},"breaker":{},
		"group_breaker":{"consecutive":5,"open_for_ms":600000},"retry_budget":{"retry_share":0},
		"fair_share":{"weights":{"gold.example":3,"7":2}}}`), wired); err != nil {
		t.Fatal(err)
	}
	want := wired.Protection
	if got := cfg.Queues[0].Protection; !reflect.DeepEqual(got, want) {
		t.Errorf("hooks: %+v, want %+v", got, want)
	}
	if got := cfg.Queues[2].Protection; !reflect.DeepEqual(got, job.Protection{Fair: &job.FairShare{}}) {
		t.Errorf("plain: %+v", got)
	}
	if got := cfg.Queues[1].Protection; got != (job.Protection{}) {
		t.Errorf("none: %+v", got)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"queues.hooks.max_running":   "100 of 4",
		"queues.hooks.rate":          `{"per_second":50,"burst":5} of 5`,
		"queues.hooks.breaker":       `{"window":20,"failure_ratio":0.5,"open_for_ms":30000,"open_for_max_ms":300000,"probes":1,"ramp_ms":10000} of 7`,
		"queues.hooks.group_breaker": `{"window":20,"consecutive":5,"open_for_ms":600000,"open_for_max_ms":600000,"probes":1,"ramp_ms":10000} of 8`,
		"queues.hooks.retry_budget":  `{"retry_share":0,"floor_per_second":10} of 11`,
		"queues.hooks.fair_share":    `{"weights":{"7":2,"gold.example":3}} of 12`,
		"queues.none.rate":           "0 of 19",
		"queues.plain.breaker":       "",
	} {
		got := report.of(name)
		text, line, _ := strings.Cut(want, " of ")
		if got.Value != text || want != "" && got.Origin.At != "reprise.yaml:"+line {
			t.Errorf("%s is reported as %q from %q, want %s", name, got.Value, got.Origin.At, want)
		}
	}
	cfg.Queues[0].Protection.Breaker.Window = 0
	cfg.Queues[0].Protection.Fair.Weights["7"] = -1
	err = cfg.Validate()
	wantProblems(t, err, []string{"queues.hooks.breaker.window: ", `queues.hooks.fair_share.weights["7"]: `})
}

// What is reported can be written into a file, and means the same.
func TestReportedProtectionCanBeWrittenIntoTheFile(t *testing.T) {
	cfg, report, err := load(t, nil, nil, protectedFile)
	if err != nil {
		t.Fatal(err)
	}
	file := "queues:\n"
	for _, q := range cfg.Queues {
		file += "  " + q.Name + ":\n"
		for _, v := range report.Values {
			if key, ok := strings.CutPrefix(v.Name, "queues."+q.Name+"."); ok && v.Value != "0" {
				file += "    " + key + ": " + v.Value + "\n"
			}
		}
	}
	again, _, err := load(t, nil, nil, file)
	if err != nil || !reflect.DeepEqual(again.Queues[0], cfg.Queues[0]) || !reflect.DeepEqual(again.Queues[2], cfg.Queues[2]) {
		t.Errorf("%v in\n%s", err, file)
	}
}

func TestEveryProblemOfProtectionIsToldWithItsLine(t *testing.T) {
	_, _, err := load(t, nil, []string{"BURST=hunter2"}, `
queues:
  hooks:
    max_running: -1
    rate:
      per_second: fast
      brust: 5
    group_rate: fast
    breaker:
      window: 1000
      failure_ratio: "0.5"
      open_for_ms: 30s
      probes:
    group_breaker:
    retry_budget: [1]
    fair_share:
      weights:
        gold: 1.5
        silver: {a: 1}
    mx_running: 5
  ratio:
    breaker: {failure_ratio: 1.5,
      open_for_max_ms: 10}
    retry_budget:
      retry_share: 0
      floor_per_second: 0
    fair_share:
      weights:
        a.b: 2
        c.d: 2000
  list:
    max_running: [1]
    fair_share: {weights: [gold]}
  secret: {rate: {per_second: 1, burst: "${env:BURST}"}}
`)
	wantProblems(t, err, []string{
		`reprise.yaml:4: queues.hooks.max_running: "-1" must be a whole number from 0 to`,
		"reprise.yaml:6: queues.hooks.rate.per_second: must be a number",
		"reprise.yaml:7: queues.hooks.rate.brust: is not known here; did you mean burst?",
		"reprise.yaml:8: queues.hooks.group_rate: must have keys, not a single value",
		"reprise.yaml:10: queues.hooks.breaker.window: must be a whole number from 1 to 256",
		"reprise.yaml:11: queues.hooks.breaker.failure_ratio: must be a number",
		"reprise.yaml:12: queues.hooks.breaker.open_for_ms: must be a whole number",
		"reprise.yaml:13: queues.hooks.breaker.probes: has no value; remove the line to use the default",
		"reprise.yaml:14: queues.hooks.group_breaker: has no value; write {} for its defaults, or remove the line",
		"reprise.yaml:15: queues.hooks.retry_budget: must have keys, not a list",
		"reprise.yaml:18: queues.hooks.fair_share.weights.gold: must be a whole number",
		"reprise.yaml:19: queues.hooks.fair_share.weights.silver: must be a whole number",
		"reprise.yaml:20: queues.hooks.mx_running: unknown key; did you mean max_running?",
		"reprise.yaml:22: queues.ratio.breaker.failure_ratio: must be a number from 0 to 1",
		"reprise.yaml:23: queues.ratio.breaker.open_for_max_ms: must be from 30000 to",
		"reprise.yaml:24: queues.ratio.retry_budget: must leave some retries",
		`reprise.yaml:30: queues.ratio.fair_share.weights["c.d"]: must be a whole number from 1 to 1000`,
		"reprise.yaml:32: queues.list.max_running: must be a single value, not a list",
		"reprise.yaml:33: queues.list.fair_share.weights: must have keys, not a list",
		"reprise.yaml:34: queues.secret.rate.burst: the value behind the reference is not allowed here",
	})
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the secret is told")
	}
}

// The file knows every setting of a queue that the API changes: by the same
// word, or without the unit where it takes durations.
func TestTheFileKnowsEverySettingOfTheAPI(t *testing.T) {
	var got, want []string
	for _, s := range jobs.QueueSettings {
		want = append(want, s.Wire)
		if file := strings.TrimSuffix(s.Wire, "_ms"); s.Name != file {
			t.Errorf("%s of the API is %s in the file, not %s", s.Wire, s.Name, file)
		}
	}
	var members func(t reflect.Type, above string)
	members = func(t reflect.Type, above string) {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name == "retention" {
				members(reflect.TypeFor[wire.Retention](), "retention.")
				continue
			}
			got = append(got, above+name)
		}
	}
	members(reflect.TypeFor[wire.QueueSettings](), "")
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("the API has\n%q, and the list of settings\n%q", got, want)
	}
}
