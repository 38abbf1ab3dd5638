package job_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestATraceparentIsReadAsTheRecommendationSays(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if !job.IsTraceparent(good) {
		t.Errorf("%s is refused", good)
	}
	for _, bad := range []string{
		"", "00", good + "-", good[:len(good)-1],
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
	} {
		if job.IsTraceparent(bad) {
			t.Errorf("%q is accepted", bad)
		}
	}
}
