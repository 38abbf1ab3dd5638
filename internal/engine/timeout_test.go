package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// Run and start timeouts: core.md sections 4 and 8.

func TestCopiesThatTimeOutInTheSameMillisecondAreChargedEach(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.RunTimeout = job.Minute })
		x, y := r.anonymous(1), r.anonymous(1)
		r.put("q", "a", copies(2), retry(job.Retry{Limit: job.LimitOf(1)}))
		x.gets("a")
		y.gets("a")
		r.pass(job.Minute)
		if j := r.expect("a", job.Dead); j.Attempts != 2 || j.Failures != 2 || j.Reason != job.Exhausted {
			r.Errorf("%+v", j)
		}
		list, err := r.Failures(r.Context(), r.ids["a"], 0, false, 9)
		if err != nil || len(list) != 2 || list[0].Holder == list[1].Holder {
			r.Errorf("%+v, %v", list, err)
		}
		if s := r.stats(); s.Lapsed != 2 || s.Died != 1 {
			r.Errorf("%+v", s)
		}
	})
}
