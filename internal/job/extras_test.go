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

func TestATraceparentOfALaterVersionIsReadAsOneOfThis(t *testing.T) {
	const ids = "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for header, want := range map[string]string{
		"00" + ids:                    "00" + ids,
		"01" + ids:                    "00" + ids,
		"cc" + ids + "-what-comes":    "00" + ids,
		"cc" + ids + ".what":          "",
		"00" + ids + "-what":          "",
		"ff" + ids:                    "",
		"0G" + ids:                    "",
		"":                            "",
		"01" + ids[:len(ids)-1]:       "",
		"01" + ids[:len(ids)-1] + "A": "",
		"x":                           "",
		"01-" + "0000000000000000" + "0000000000000000" + ids[33:]: "",
	} {
		if got := job.CarriedTraceparent(header); got != want {
			t.Errorf("%q is read as %q, want %q", header, got, want)
		}
	}
}

func TestAJobIsSampledIfItsCallerIs(t *testing.T) {
	const ids = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "0f": true, "f0": false} {
		if got := (&job.Job{Extras: &job.Extras{Traceparent: ids + flags}}).Sampled(); got != want {
			t.Errorf("flags %s: sampled is %v", flags, got)
		}
	}
	if (&job.Job{}).Sampled() || (&job.Job{Extras: &job.Extras{}}).Sampled() {
		t.Error("a job without a trace context is sampled")
	}
}
