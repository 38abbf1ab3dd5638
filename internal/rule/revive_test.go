package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestADeadJobHasTheFingerprintOfItsLastFailureElseOfItsReason(t *testing.T) { // retry.md section 3
	w := newWorld(t)
	failure := job.Failure{Type: "E", Message: "boom 7"}
	w.put("failed")
	w.do("failed", Command{Verb: Take, Lease: &job.Lease{Token: job.NewToken(1, w.random), Holder: "h"}})
	w.tick(5)
	dead := w.do("failed", Command{Verb: SettleDead, Failure: failure})
	if want := Fingerprint(&failure); dead.Print != want || dead.DiedAt != w.now {
		t.Errorf("fingerprint %s at %d, want %s at %d", dead.Print, dead.DiedAt, want, w.now)
	}
	w.put("expired", func(j *job.Job) { j.ExpiresAt = w.now + 1 })
	w.tick(1)
	if got, want := w.do("expired", Command{Verb: Expire}).Print, Fingerprint(&job.Failure{Type: "expired"}); got != want {
		t.Errorf("a job that never failed has the fingerprint %s, want that of its reason, %s", got, want)
	}
}

func TestAReplayStartsAgainOrUsesWhatIsLeft(t *testing.T) { // retry.md section 3, I4
	for _, remaining := range []bool{false, true} {
		w := newWorld(t)
		w.queue.Retry.Limit = job.LimitOf(0)
		w.put("a")
		for range 2 {
			w.do("a", Command{Verb: Take, Lease: &job.Lease{Token: job.NewToken(1, w.random), Holder: "h"}})
			w.do("a", Command{Verb: SettleRetry, Token: w.jobs["a"].Leases[0].Token, Failure: job.Failure{Type: "E"}})
			w.tick(10)
			w.do("a", Command{Verb: Revive, Remaining: remaining, Edit: func(j *job.Job) { j.PayloadSize = 9 }})
		}
		j := w.jobs["a"]
		attempts, revived := uint32(0), w.now
		if remaining {
			attempts, revived = 2, 0
		}
		if j.Attempts != attempts || j.RevivedAt != revived || j.Replays != 2 || j.DiedAt != 0 || j.Failures != 2 || j.PayloadSize != 9 {
			t.Errorf("remaining %t: %+v", remaining, j)
		}
	}
}
