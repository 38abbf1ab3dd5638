package job_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestACronEntryIsDueAtItsTickOrWhenItsRefusalIsOver(t *testing.T) {
	for _, c := range []struct{ next, retry, want job.Millis }{
		{0, 0, 0}, {0, 9, 0}, {5, 0, 5}, {5, 9, 9}, {9, 5, 9},
	} {
		e := job.CronEntry{Next: c.next, Retry: c.retry}
		if got := e.Due(); got != c.want {
			t.Errorf("next %d, retry %d: due %d, want %d", c.next, c.retry, got, c.want)
		}
	}
}

func TestTheWordsOfMissed(t *testing.T) {
	for m, want := range map[job.Missed]string{job.MissedOnce: "once", job.MissedSkip: "skip", job.MissedAll: "all", 9: "unknown(9)"} {
		if m.String() != want || m.Valid() != (m < 9) {
			t.Errorf("%s, valid %t", m, m.Valid())
		}
	}
}
