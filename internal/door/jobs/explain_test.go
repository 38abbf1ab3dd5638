package jobs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

func TestAWaitIsToldInWordsAndAsData(t *testing.T) { // retry.md section 5
	ten := job.Curve{Kind: job.CurveConstant, Delay: 10 * job.Second}
	for name, x := range map[string]struct {
		w          rule.RetryWait
		text, data string
	}{
		"the policy's curve": {
			rule.RetryWait{By: job.WaitCurve, Number: 2, Drew: 10_000, Waits: 10_000, Min: 10_000, Max: 20_000},
			"retry 2 waits 10s, drawn from 10s to 20s by the constant curve of the queue",
			`{"retry":2,"by":"curve","curve":"constant","from":"queue","wait_ms":10000,"drew_ms":10000,"min_ms":10000,"max_ms":20000}`,
		},
		"the rule's curve": {
			rule.RetryWait{By: job.WaitCurve, Number: 2, Rule: 3, Ruled: true, Drew: 10_000, Waits: 10_000, Min: 10_000, Max: 20_000},
			"retry 2 waits 10s, drawn from 10s to 20s by the constant curve of the queue's rule 3",
			`{"retry":2,"by":"curve","rule":3,"rule_from":"job","curve":"constant","from":"queue","wait_ms":10000,"drew_ms":10000,"min_ms":10000,"max_ms":20000}`,
		},
		"a rule without a curve": {
			rule.RetryWait{By: job.WaitCurve, Number: 1, Rule: 3, Drew: 10_000, Waits: 10_000, Min: 10_000, Max: 10_000},
			"retry 1 waits 10s, drawn from 10s to 10s by the constant curve of the queue; the failure fits rule 3 of the job", "",
		},
		"another policy since": {
			rule.RetryWait{By: job.WaitCurve, Number: 1, Drew: 5, Waits: 5, Min: 10_000, Max: 10_000},
			"retry 1 waits 5ms; the policy has changed since: the constant curve of the queue draws from 10s to 10s", "",
		},
		"given back": {
			rule.RetryWait{By: job.WaitRule, Rule: 1, Waits: 2000, Min: 10_000, Max: 10_000},
			"it was given back without charge and waits 2s, by rule 1 of the job",
			`{"retry":0,"by":"rule","rule":1,"rule_from":"job","curve":"constant","from":"queue","wait_ms":2000,"min_ms":10000,"max_ms":10000}`,
		},
		"worker": {rule.RetryWait{By: job.WaitWorker, Number: 1, Waits: 2000}, "retry 1 waits 2s, as its worker asked for", ""},
		"target": {
			rule.RetryWait{By: job.WaitTarget, Number: 1, Rule: 2, Waits: 2000},
			"retry 1 waits 2s, as its target asked for (Retry-After); the failure fits rule 2 of the job", "",
		},
		"hold":  {rule.RetryWait{By: job.WaitHold, Number: 1, Waits: 2000}, "retry 1 waits 2s, until the hold of its group or queue ends", ""},
		"grace": {rule.RetryWait{By: job.WaitGrace, Waits: 6000}, "its failure is suppressed and it waits 6s, inside its grace", ""},
		"fence": {
			rule.RetryWait{By: job.WaitFence, Waits: 30_000},
			"it waits 30s behind its fence (fence_wait), because the engine that had it may run it yet", "",
		},
	} {
		x.w.Curve, x.w.From, x.w.Rules = ten, rule.FromQueue, rule.FromJob
		got := jobs.Explain(query.Explanation{Job: &job.Job{ID: id(t, idA), State: job.Scheduled}, Retry: &x.w}, 0, nil)
		if got.Text != x.text {
			t.Errorf("%s: %s, want %s", name, got.Text, x.text)
		}
		if data, err := json.Marshal(got.Retry); err != nil || x.data != "" && string(data) != x.data {
			t.Errorf("%s: %s, %v, want %s", name, data, err, x.data)
		}
	}
}

func TestTheWordsForWhoChoseAWaitArePublic(t *testing.T) {
	words := []string{"", wire.ByCurve, wire.ByRule, wire.ByWorker, wire.ByTarget, wire.ByHold, wire.ByGrace, wire.ByFence}
	for by := range job.WaitBys {
		if by.String() != words[by] {
			t.Errorf("%q is public as %q", by, words[by])
		}
	}
	if n := int(job.WaitBys); n != len(words) {
		t.Errorf("%d words for %d of them: %s", len(words), n, strings.Join(words, " "))
	}
}
