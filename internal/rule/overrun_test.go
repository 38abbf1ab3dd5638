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

func TestTheWindowInWhichAnOverrunIsSeenIsTold(t *testing.T) { // grid.md 6; gridserver.md section 5, R = 3
	for name, c := range map[string]struct {
		max, period, slack job.Millis
		on                 job.OnTimeout
		attempts           uint32
		limit              job.Limit
		want               OverrunWindow
	}{
		"documented":       {50, 60, 0, job.TimeoutRetry, 0, job.LimitOf(3), OverrunWindow{50, 110, 200, 440}},
		"short tasks":      {5, 60, 0, job.TimeoutRetry, 0, job.LimitOf(3), OverrunWindow{5, 65, 20, 260}},
		"exact":            {50, 0, 0, job.TimeoutRetry, 0, job.LimitOf(3), OverrunWindow{50, 50, 200, 200}},
		"by the engine":    {50, 0, 2, job.TimeoutRetry, 0, job.LimitOf(3), OverrunWindow{50, 52, 200, 208}},
		"at the period":    {50, 60, 2, job.TimeoutRetry, 0, job.LimitOf(3), OverrunWindow{50, 110, 200, 440}},
		"what is left":     {50, 60, 0, job.TimeoutRetry, 2, job.LimitOf(3), OverrunWindow{50, 110, 100, 220}},
		"past its limit":   {50, 60, 0, job.TimeoutRetry, 9, job.LimitOf(3), OverrunWindow{50, 110, 50, 110}},
		"without a limit":  {50, 60, 0, job.TimeoutRetry, 0, job.Unlimited(), OverrunWindow{50, 110, 0, 0}},
		"is copied":        {50, 60, 2, job.TimeoutReschedule, 0, job.LimitOf(3), OverrunWindow{50, 110, 0, 0}},
		"copied, at once":  {50, 0, 2, job.TimeoutReschedule, 0, job.LimitOf(3), OverrunWindow{50, 50, 0, 0}},
		"as long as it is": {0, 60, 2, job.TimeoutRetry, 0, job.LimitOf(3), OverrunWindow{}},
	} {
		q := &job.Queue{RunTimeout: c.max, Grid: &job.Grid{PollPeriod: c.period, TimeoutSlack: c.slack, OnTimeout: c.on}}
		j := &job.Job{State: job.Ready, Attempts: c.attempts}
		w, ok := OverrunOf(q, j, &job.Retry{Limit: c.limit})
		if w != c.want || ok != (c.max > 0) {
			t.Errorf("%s: %+v, %v", name, w, ok)
		}
		if begins := runEnd(View{Queue: q, Steady: 7}, j); ok && (begins < 7+w.From || begins > 7+w.By) {
			t.Errorf("%s: a run that begins at 7 ends at %d", name, begins)
		}
		j.State = job.Done
		if _, ok := OverrunOf(q, j, &job.Retry{}); ok {
			t.Errorf("%s: told of a task that is done", name)
		}
	}
	if _, ok := OverrunOf(&job.Queue{RunTimeout: 50}, &job.Job{State: job.Ready}, &job.Retry{}); ok {
		t.Error("told of a job that is no task")
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
