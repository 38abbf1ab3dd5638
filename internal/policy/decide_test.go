package policy

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

const ruled = `{"limit": 2, "curve": {"kind": "exponential", "unit": "10s"}, "rules": [
	{"when": {"error_type": "Invalid"}, "do": "dead"},
	{"when": {"message": "lock"}, "do": "release", "delay": "2s"},
	{"when": {"status": 503}, "do": "hold", "delay": "1m"},
	{"when": {"exit_code": 75}, "do": "retry", "limit": 5, "curve": {"kind": "constant", "delay": "7s"}},
	{"when": {"status": 418}, "do": "retry", "respect_retry_after": false}]}`

func TestADecisionIsThatOfTheServer(t *testing.T) { // core.md section 6
	r, err := job.ParseRetry([]byte(ruled))
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		c    Case
		want string
	}{
		"no rule":    {Case{Failure: job.Failure{Status: 500}}, "no rule matches: the policy decides; charged as attempt 1; tried again 0s to 10s later"},
		"the limit":  {Case{Earlier: 2}, "no rule matches: the policy decides; charged as attempt 3; dead, reason exhausted"},
		"dead":       {Case{Failure: job.Failure{Type: "Invalid", Message: "lock"}}, "rules[0] decides: dead; charged as attempt 1; dead, reason killed"},
		"release":    {Case{Failure: job.Failure{Message: "a lock"}, Earlier: 2}, "rules[1] decides: release; not charged; tried again 2s later"},
		"hold":       {Case{Failure: job.Failure{Status: 503}}, "rules[2] decides: hold; charged as attempt 1; tried again 1m to 1m6s later; its group, or else its queue, is held for 1m to 1m6s"},
		"longer":     {Case{Failure: job.Failure{Status: 503}, RetryAfter: job.Hour}, "rules[2] decides: hold; charged as attempt 1; tried again 1h later; its group, or else its queue, is held for 1h"},
		"a wish":     {Case{Failure: job.Failure{Status: 500}, RetryAfter: 5 * job.Minute}, "no rule matches: the policy decides; charged as attempt 1; tried again 5m to 5m30s later; its group, or else its queue, is held for 5m to 5m30s"},
		"unheard":    {Case{Failure: job.Failure{Status: 418}, RetryAfter: 5 * job.Minute}, "rules[4] decides: retry; charged as attempt 1; tried again 0s to 10s later"},
		"at its end": {Case{RetryAfter: 2 * job.Hour, Earlier: 2}, "no rule matches: the policy decides; charged as attempt 3; dead, reason exhausted; its group, or else its queue, is held for 1h"},
		"own limit":  {Case{Failure: job.Failure{ExitCode: 75}, Earlier: 4}, "rules[3] decides: retry; charged as attempt 5; tried again 7s later"},
		"past it":    {Case{Failure: job.Failure{ExitCode: 75}, Earlier: 5}, "rules[3] decides: retry; charged as attempt 6; dead, reason exhausted"},
		"far beyond": {Case{Failure: job.Failure{Message: strings.Repeat("x", job.MatchBytesMax) + "lock"}}, "no rule matches: the policy decides; charged as attempt 1; tried again 0s to 10s later"},
	} {
		d, err := Decide(r, x.c)
		if got := strings.ReplaceAll(d.String(), "\n", "; "); err != nil || got != x.want {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, x.want)
		}
	}
}
