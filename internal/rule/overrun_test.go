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
	if len(v.Cases) != 5 {
		t.Fatalf("there are %d vectors", len(v.Cases))
	}
	for _, c := range v.Cases {
		start := ms(c[0])
		if got := OverrunSeen(start+ms(v.MaxTime), ms(v.PollPeriod)) - start; got != ms(c[1]) {
			t.Errorf("a run that began at %v s: seen after %d ms, want %v s", c[0], got, c[1])
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

func TestA10AnEngineEndsARunByItselfAndTheServerAfterTheSlack(t *testing.T) {
	for _, c := range []struct {
		name         string
		edit         func(*job.Queue)
		own          job.Millis // of the task
		stops, after job.Millis // from the start: its engine, the server
	}{
		{"modern", func(q *job.Queue) {}, 0, 50 * job.Second, 52 * job.Second},
		{"a limit of the task's own", func(q *job.Queue) {}, 5 * job.Second, 5 * job.Second, 7 * job.Second},
		{"no slack", func(q *job.Queue) { q.Grid.TimeoutSlack = 0 }, 0, 50 * job.Second, 50 * job.Second},
		{"rescheduled, so that it runs on", func(q *job.Queue) { q.Grid.OnTimeout = job.TimeoutReschedule }, 0, 0, 50 * job.Second},
		{"looked for each minute", func(q *job.Queue) { q.Grid.PollPeriod = job.Minute }, 0, 0, 60 * job.Second},
		{"no limit", func(q *job.Queue) { q.RunTimeout = 0 }, 0, 0, 0},
		{"no task", func(q *job.Queue) { q.Grid = nil }, 0, 0, 50 * job.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := job.NewQueue("s")
			q.RunTimeout, q.Grid = 50*job.Second, &job.Grid{TimeoutSlack: 2 * job.Second}
			c.edit(q)
			j := &job.Job{RunTimeout: c.own}
			if got := StopAfter(q, j); got != c.stops {
				t.Errorf("its engine ends it after %s, want %s", got, c.stops)
			}
			start := 10 * job.Minute // a multiple of the period
			want := c.after
			if want > 0 {
				want += start
			}
			if got := runEnd(View{Steady: start, Queue: q}, j); got != want {
				t.Errorf("the server ends it at %s, want %s", got, want)
			}
		})
	}
}
