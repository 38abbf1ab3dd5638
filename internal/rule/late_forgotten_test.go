package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// A run whose end was decided never settles again (core.md section 4), however
// many ended after it, and whether or not the server started since: a job
// remembers few tokens, a task also its attempts.
func TestARunThatWasOverStaysSoAfterManyMoreAndAStart(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, x job.Token)
		late bool // its result counts
	}{
		"failed":     {func(w *world, x job.Token) { w.fail("a", x) }, false},
		"given back": {func(w *world, x job.Token) { w.do("a", Command{Verb: SettleRelease, Token: x}) }, false},
		"overran": {func(w *world, _ job.Token) {
			w.tick(job.Minute)
			w.do("a", Command{Verb: Lapse})
		}, false},
		"lost": {func(w *world, _ job.Token) { w.lose("a", "x", job.ByLapse) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, seedGrid, func(q *job.Queue) { q.RunTimeout = job.Minute })
			w.put("a")
			x := w.take("a", "x")
			w.do("a", Command{Verb: Extend, Token: x, Started: true})
			c.end(w, x)
			for range job.EndedMax {
				w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "y")})
			}
			if _, known := endedOf(w.jobs["a"], x); known {
				t.Fatal("its token is remembered yet")
			}
			w.start++
			ok := Command{Verb: SettleOK, Token: x, Match: noMessage}
			if !c.late {
				w.refused(job.Superseded, "a", ok)
			} else if j := w.do("a", ok); j.State != job.Done {
				t.Errorf("it is %s", j.State)
			}
		})
	}
}
