package guard_test

import (
	"reflect"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// What the configuration says of a queue holds from each start on, protection
// included; of a queue that it does not name, what was set live.
func TestTheConfigurationWinsAtEachStart(t *testing.T) {
	file := job.Protection{Breaker: new(job.DefaultBreaker()), MaxRunning: 2, Fair: &job.FairShare{Weights: map[string]int{"g": 2}}}
	scenario(t, func(r *rig) {
		is := func(queue string, want job.Protection) {
			r.Helper()
			if q, _, err := r.Queue(r.Context(), queue); err != nil || !reflect.DeepEqual(q.Protection, want) {
				r.Errorf("%s has %+v, want %+v; %v", queue, q.Protection, want, err)
			}
		}
		is("q", file)
		live := job.Protection{MaxRunning: 1, Rate: job.Rate{PerSecond: 7}}
		for _, queue := range []string{"q", "other"} {
			r.SetQueue(queue, func(q *job.Queue) { q.Protection = live })
			is(queue, live)
		}
		r.Restart(0)
		is("q", file)
		is("other", live)
		r.AddAll("q", "a", "b", "c")
		w := r.Anonymous(9, "q")
		w.Gets("a", "b") // max_running is the file's
		w.End()
		r.Opts.Queues = []*job.Queue{job.NewQueue("q")} // the file names the queue and protects it no more
		r.Restart(0)
		is("q", job.Protection{})
		r.Anonymous(9, "q").Gets("a", "b", "c")
	}, configured(func(q *job.Queue) { q.Protection = file }))
}

// A breaker that the configuration takes away leaves nothing behind that
// could stop its queue; one that an operator forced stays.
func TestABreakerLeavesWithTheConfiguration(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w := r.Anonymous(1, "q")
		w.Gets("a")
		w.Fails("a")
		w.Gets() // it is open
		if r.Rows(job.Throttles) != 1 {
			r.Fatal("the breaker did not open")
		}
		w.End()
		r.Opts.Queues = []*job.Queue{job.NewQueue("q")}
		r.Restart(0)
		r.Anonymous(1, "q").Gets("b")
		if r.Rows(job.Throttles) != 0 {
			r.Error("something is left of the breaker")
		}
		if err := r.Part.Guard.ForceBreaker(r.Context(), "q", "", job.BreakerOpen, job.Actor{}); err != nil {
			r.Fatal(err)
		}
		r.Restart(0)
		r.Anonymous(1, "q").Gets()
	}, configured(func(q *job.Queue) {
		q.Protection.Breaker = &job.Breaker{Window: 20, Consecutive: 1, OpenFor: job.Hour, OpenForMax: job.Hour, Probes: 1}
	}))
}

// configured gives the engine settings of the queue q.
func configured(edit func(*job.Queue)) func(*rig) {
	return func(r *rig) { r.Configured(edit) }
}
