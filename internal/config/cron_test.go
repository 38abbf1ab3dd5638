package config

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestCronGroupsOfTheFile(t *testing.T) {
	cfg, report, err := load(t, nil, []string{"TOKEN=s3cret"}, `
crons:
  nightly:
    timezone: Europe/Berlin
    missed: all
    paused: true
    entries:
      - name: report
        expression: 0 3 * * MON-FRI
        missed: skip
        job: {type: report, queue: reports, payload: {n: 9007199254740993, x: "1", none: null}, retry_limit: 3}
      - {name: leap, expression: "@yearly", job: {type: t, queue: q, payload: null}}
  a-first:
    entries: [{name: e, expression: "* * * * *", job: {type: t, queue: q, payload: "${env:TOKEN}"}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Crons) != 2 || cfg.Crons[0].Name != "a-first" {
		t.Fatalf("%+v", cfg.Crons)
	}
	g := cfg.Crons[1]
	if g.Zone != "Europe/Berlin" || g.Missed != job.MissedAll || g.Paused == nil || !*g.Paused || len(g.Entries) != 2 {
		t.Errorf("%+v", g)
	}
	e := g.Entries[0]
	if e.Name != "report" || e.Expression != "0 3 * * MON-FRI" || *e.Missed != job.MissedSkip || e.Paused != nil ||
		e.Job.Job.Queue != "reports" || string(e.Job.Payload) != `{"n":9007199254740993,"x":"1","none":null}` || e.Job.Job.Retry == nil {
		t.Errorf("%+v %s", e, e.Job.Payload)
	}
	if string(cfg.Crons[0].Entries[0].Job.Payload) != `"s3cret"` {
		t.Errorf("%s", cfg.Crons[0].Entries[0].Job.Payload)
	}
	for _, v := range report.Values {
		if strings.Contains(v.Value, "s3cret") {
			t.Errorf("a secret is shown: %+v", v)
		}
	}
}

func TestCronGroupsOfTheFileThatAreWrong(t *testing.T) {
	for body, want := range map[string]string{
		"g: {entries: [{name: e, expresion: '* * * * *', job: {type: t, queue: q, payload: 1}}]}":                                                                      "entries[0].expresion: is not known here; did you mean expression?",
		"g: {entries: [{name: e, expression: '61 * * * *', job: {type: t, queue: q, payload: 1}}]}":                                                                    `the minute "61" must be from 0 to 59`,
		"g: {timezone: Nowhere, entries: []}":                                                                                                                          `timezone: "Nowhere" is not known`,
		"g: {entries: [{name: e, expression: '* * * * *', timezone: X, job: {type: t, queue: q, payload: 1}}]}":                                                        `timezone: "X" is not known`,
		"g: {entries: [{name: e, expression: '* * * * *', job: {type: t, queue: q, payload: 1, ready_at: 5}}]}":                                                        "job.ready_at: cannot be set",
		"g: {entries: [{name: e, expression: '@daily', job: {type: t, queue: q, payload: 1}}, {name: e, expression: '@daily', job: {type: t, queue: q, payload: 1}}]}": "two entries of the name 'e'",
		"g: {missed: never, entries: []}": "missed: must be one of once skip all",
		"g: {timezone: UTC}":              "entries: is missing",
		"g: [1]":                          "must have entries and what they share",
		"'a,b': {entries: []}":            "must not contain ','",
		"g: {entries: [{name: e, expression: '${env:SECRET}', job: {type: t, queue: q, payload: 1}}]}": "the value behind the reference is not allowed here",
	} {
		_, _, err := load(t, nil, []string{"SECRET=hush"}, "crons:\n  "+body+"\n")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "crons") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
