package guard_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestAsidesListWhatIsHeldOrSlowedDown(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx := r.Context()
		r.SetQueue("q", func(q *job.Queue) { groupBreaker(q); q.HoldUntil = r.Now() + job.Second })
		r.SetQueue("qq", groupBreaker)
		for _, group := range []string{"h", "a"} {
			if _, err := r.Part.Guard.Hold(ctx, "q", group, r.Now()+job.Minute, job.Actor{}); err != nil {
				r.Fatal(err)
			}
		}
		for _, queue := range []string{"q", "qq"} {
			if err := r.Part.Guard.ForceBreaker(ctx, queue, "b", job.BreakerOpen, job.Actor{}); err != nil {
				r.Fatal(err)
			}
		}
		for n, want := range map[int]string{0: "", 2: " a b", 9: " a b h"} {
			list, err := r.Part.Guard.Asides(ctx, "q", n)
			if err != nil {
				r.Fatal(err)
			}
			var got []string
			for _, a := range list {
				got = append(got, a.Group)
				if (a.Throttle != nil) != (a.Group == "b") || (a.Hold > 0) == (a.Group == "b") {
					r.Errorf("%+v", a)
				}
			}
			if strings.Join(got, " ") != want {
				r.Errorf("%d: %q, want %q", n, got, want)
			}
		}
	})
}

// Breakers wait by the steady clock: a date that steps moves none of them on.
func TestAStepOfTheDateLeavesABreakerOpen(t *testing.T) { // core.md 8
	for _, step := range []job.Millis{job.Day, -job.Day} {
		scenario(t, func(r *rig) {
			r.SetQueue("q", breaker)
			r.AddAll("q", "a", "b", "c")
			w := r.Anonymous(3)
			w.Gets("a", "b", "c")
			w.FailAll("a", "b", "c")
			r.BreakerIs("q", "", job.BreakerOpen)
			r.Jump(step)
			r.Pass(29 * job.Second)
			r.BreakerIs("q", "", job.BreakerOpen)
			r.Pass(job.Second)
			r.BreakerIs("q", "", job.BreakerHalfOpen)
		})
	}
}
