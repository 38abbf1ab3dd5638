package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/job"
)

// The example of the specification, as it stands there.
const inboxFile = `
inboxes:
  reservations:
    group: {header: X-Correlation-Hint}
    sort: sequence
    deliver: {http: {url: "http://127.0.0.1:9000/correlate"}}
    batch:
      mode: all
      query:   {pollInitialDelay: PT10S, pollInterval: PT6S}
      cleanup: {pollInitialDelay: PT1M, pollInterval: PT1M}
    persistence: {messageMaxRetries: 100, messageFetchPageSize: 100, messageBatchSize: -1}
    retry: {retryMaxBackoffMinutes: 180, retryBackoffBase: 2.0, capApplies: interval}
    message: {timeToLive: PT10S}
    onExhausted: block
  # the words of the seed's example, which has its retries under persistence
  flights:
    group: {json: .orderId}
    batch: {mode: fail_first, query: none}
    persistence:
      messageMaxRetries: 100
      messageBatchSize: 1
      retryMaxBackoffMinutes: 5
      retryBackoffBase: 2.0
    message: {timeToLive: 10s}
cluster: {enabled: true, queuePollLockMostInterval: PT5M}
`

func TestInboxesAreConfiguredInTheNamesOfTheSeed(t *testing.T) {
	cfg, report, err := load(t, nil, nil, inboxFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Inboxes) != 2 || cfg.Inboxes[0].Name != "flights" || cfg.Inboxes[1].Name != "reservations" {
		t.Fatalf("%+v", cfg.Inboxes)
	}
	if f := cfg.Inboxes[0]; f.Mode != inbox.ModeFailFirst || f.Query.Interval != 0 || f.BatchSize != 1 || f.MaxBackoffMinutes != 5 || f.TTL != 10*job.Second {
		t.Errorf("%+v", f.Settings)
	}
	if r := cfg.Inboxes[1]; r.HTTP == nil || r.Query.Interval != 6*job.Second || r.BatchSize != -1 || r.TTL != 10*job.Second {
		t.Errorf("%+v", r.Settings)
	}
	if cfg.Cluster != (Cluster{Enabled: true, LockMost: 5 * job.Minute}) {
		t.Errorf("%+v", cfg.Cluster)
	}
	if len(cfg.Targets) != 1 || cfg.Targets[0] != "http://127.0.0.1:9000/correlate" {
		t.Errorf("targets %q", cfg.Targets)
	}
	shown := 0
	for _, v := range report.Values {
		if strings.HasPrefix(v.Name, "inboxes.") || strings.HasPrefix(v.Name, "cluster.") {
			shown++
		}
	}
	if shown != 4 {
		t.Errorf("the report tells %d values of inboxes and cluster, want 4", shown)
	}
}

func TestBadInboxesAreRefusedAtTheirLine(t *testing.T) {
	for file, want := range map[string]string{
		"inboxes:\n  a:\n    group: {json: .x}\n    persistence:\n      messageBatchSize: 0\n":      "reprise.yaml:5: inboxes.a.persistence.messageBatchSize: must be -1 (all messages of the group)",
		"inboxes:\n  a:\n    group: {json: .x}\n    persistence: {messageBatchSize: -2}\n":          "reprise.yaml:4: inboxes.a.persistence.messageBatchSize: must be -1",
		"inboxes:\n  a:\n    group: {json: .x}\n    batch:\n      mode: some\n":                     "reprise.yaml:5: inboxes.a.batch.mode: must be one of all, fail_first",
		"inboxes:\n  a:\n    group: {json: .x}\n    message: {timeToLive: -PT10S}\n":                "reprise.yaml:4: inboxes.a.message.timeToLive: ",
		"inboxes:\n  a:\n    group: {json: .x}\n    batch: {query: {pollInterval: P1Y}}\n":          "inboxes.a.batch.query",
		"inboxes:\n  a:\n    sort: sequence\n":                                                      "inboxes.a.group: must say where",
		"inboxes:\n  a: 5\n":                                                                        "inboxes.a: must have the settings of an inbox",
		"inboxes: [a]\n":                                                                            "inboxes: must be names of inboxes",
		"inboxes:\n  a:\n    group: {json: .x}\nqueues:\n  a: {max_jobs: 5}\n":                      "has the name of a queue with settings",
		"inboxes:\n  'a,b':\n    group: {json: .x}\n":                                               "must not contain ','",
		"cluster: {enabled: true}\n":                                                                "queuePollLockMostInterval is missing",
		"cluster: {enabled: maybe}\n":                                                               "cluster.enabled: \"maybe\" must be true or false",
		"cluster: {enabled: true, queuePollLockMostInterval: 1ms}\n":                                "cluster.queuePollLockMostInterval: ",
		"cluster: {lockMost: PT5M}\n":                                                               "cluster.lockMost",
		"inboxes:\n  a:\n    group: {json: .x}\n    persisting: {messageBatchSize: 1}\n":            "inboxes.a.persisting: is not known here",
		"inboxes:\n  a:\n    group: {json: .x}\n    deliver: {http: {url: '${env:NOWHERE}'}}\n":     "NOWHERE",
		"inboxes:\n  a:\n    group: {json: .x}\n    onExhausted: drop\n    batch: {mode: x}\n":      "inboxes.a.onExhausted: must be one of block, skip, park",
		"inboxes:\n  a:\n    group: {json: .x}\n    deliver: {http: {url: 'http://169.254.1.1'}}\n": "",
	} {
		_, _, err := load(t, nil, nil, file)
		if want == "" { // of a target, `reprise doctor` and the start tell
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %s", file, err, want)
		}
	}
}

// A value of a wrong form does not hide what is wrong with the others.
func TestEveryProblemOfAnInboxIsToldAtItsLine(t *testing.T) {
	_, _, err := load(t, nil, nil, `
inboxes:
  a:
    group: {json: 5}
    batch:
      mode: some
      query: {pollInterval: soon}
    persistence:
      messageMaxRetries: many
`)
	for _, want := range []string{
		"reprise.yaml:4: inboxes.a.group.json: must be a text",
		"reprise.yaml:6: inboxes.a.batch.mode: must be one of",
		`reprise.yaml:7: inboxes.a.batch.query.pollInterval: is refused: duration "soon"`,
		"reprise.yaml:9: inboxes.a.persistence.messageMaxRetries: must be a whole number",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestSecretsOfAnInboxAreMaskedAndNotKept(t *testing.T) {
	cfg, report, err := load(t, nil, []string{"RECEIVER=Bearer s3cret"}, `
inboxes:
  a:
    group: {json: .x}
    deliver: {http: {url: "http://127.0.0.1:9/", headers: {Authorization: "${env:RECEIVER}", X-Env: production}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if a := cfg.Inboxes[0]; !a.Secret || a.HTTP.Headers["Authorization"] != "Bearer s3cret" || !slices.Equal(a.HTTP.Mask, []string{"Bearer s3cret"}) {
		t.Errorf("%+v", a)
	}
	for _, v := range report.Values {
		if strings.Contains(v.Value, "s3cret") {
			t.Errorf("%s shows %s", v.Name, v.Value)
		}
	}
}
