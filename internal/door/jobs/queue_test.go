package jobs_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// What a session says itself are settings of this list, all but those that the
// configuration may still say of it: docs/config.md names these four.
func TestASessionKeepsAllSettingsButFour(t *testing.T) {
	others := []string{
		`true`, `"start"`, `3`, `"park"`, `"lifo"`, `"never"`, `true`, `true`, `100`, `200`, `"drop_oldest"`, `3`, `4`, `5`, `6`,
		`{"limit":1}`, `1`, `{"per_second":1}`, `{"per_second":2}`, `{}`, `{}`, `{}`, `{}`,
	}
	if len(others) != len(jobs.QueueSettings) {
		t.Fatalf("the test has %d values for %d settings", len(others), len(jobs.QueueSettings))
	}
	set, session, want := job.NewQueue("q"), job.NewQueue("q"), []string{}
	session.Grid = &job.Grid{}
	for i, s := range jobs.QueueSettings {
		if err := s.Read(set, []byte(others[i])); err != nil {
			t.Error(err)
		}
		if !slices.Contains([]string{"paused", "late_ok", "max_jobs", "max_bytes"}, s.Name) {
			want = append(want, s.Name)
		}
	}
	_, _, left := rule.Configured(session, set, 0)
	slices.Sort(left)
	if slices.Sort(want); !slices.Equal(left, want) {
		t.Errorf("a session keeps\n%q, want\n%q", left, want)
	}
}
