package rule

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

func TestA9OverrunsAreSeenInThePollWindow(t *testing.T) {
	v := loadGrid(t).PollWindow
	ms := func(seconds float64) job.Millis { return job.Millis(math.Round(seconds * 1000)) }
	if len(v.Cases) < 5 {
		t.Fatal("vectors are missing")
	}
	for _, c := range v.Cases {
		start := ms(c[0])
		if got := OverrunSeen(start+ms(v.MaxTime), ms(v.PollPeriod)) - start; got != ms(c[1]) {
			t.Errorf("a run that began at %v s: seen after %d ms, want %v s", c[0], got, c[1])
		}
	}
	for _, c := range []struct{ limit, period, best, worst, bestAll, worstAll job.Millis }{ // reference section 5, R = 3
		{50, 60, 50, 110, 200, 440}, {5, 60, 5, 65, 20, 260}, {50, 0, 50, 50, 200, 200}, {50, -1, 50, 50, 200, 200},
	} {
		if best, worst, bestAll, worstAll := OverrunWindow(c.limit, c.period, 3); best != c.best || worst != c.worst || bestAll != c.bestAll || worstAll != c.worstAll {
			t.Errorf("limit %d, period %d: %d to %d, together %d to %d", c.limit, c.period, best, worst, bestAll, worstAll)
		}
	}
}

func TestAnOverrunIsSeenAtTheFirstSweepThatIsNotBeforeIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := job.Millis(rapid.Int64Range(0, 1<<40).Draw(t, "end"))
		period := job.Millis(rapid.Int64Range(-1, 100_000).Draw(t, "period"))
		at := OverrunSeen(end, period)
		switch {
		case period <= 0 && at != end:
			t.Fatalf("without sweeps it is seen %d ms late", at-end)
		case period > 0 && (at < end || at-end >= period || at%period != 0):
			t.Fatalf("seen at %d", at)
		}
	})
}
