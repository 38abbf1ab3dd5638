package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// page is the first n jobs of a queue, and how many batches were run to find out
// what keeps them from running.
func (r *rig) page(queue string, n int) (list []query.Listed, batches uint64) {
	r.Helper()
	list, err := r.List(r.Context(), engine.Filter{Queues: []string{queue}}, n)
	synctest.Wait() // for what the committer has to do yet
	before := r.Part.Meter.Measure(r.Context()).Stats.Batches
	if err == nil {
		err = r.Obstacles(r.Context(), list)
	}
	if err != nil || len(list) != n {
		r.Fatalf("%d jobs, %v", len(list), err)
	}
	return list, r.Part.Meter.Measure(r.Context()).Stats.Batches - before
}

// What a page costs the committer, whom everybody else waits for.
func TestAPageOfWaitsAsksTheCommitterForAllowancesOnly(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("plain", func(q *job.Queue) { q.Order = job.OrderStrict })
		r.SetQueue("paused", func(q *job.Queue) { q.Paused = true })
		r.SetQueue("limited", func(q *job.Queue) { q.Protection.MaxRunning = 1 })
		r.SetQueue("rated", func(q *job.Queue) { q.Protection.Rate.PerSecond = 0.01 })
		for queue, at := range map[string]string{"plain": "head", "paused": "", "limited": "runs", "rated": "took"} {
			if at != "" {
				r.Add(queue, at, grouped("g"))
			}
			var all []engine.NewJob
			for i := range 50 {
				all = append(all, newNamed(queue, fmt.Sprint(queue, i), grouped("g")))
			}
			if _, err := r.Put(r.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		for _, queue := range []string{"limited", "rated"} {
			w := r.Anonymous(1, queue)
			w.Read()
		}
		for queue, want := range map[string]struct {
			is      rule.Obstacle
			batches uint64
		}{
			"plain": {rule.BehindHead, 0}, "paused": {rule.Paused, 0}, "limited": {rule.QueueLimit, 0}, "rated": {rule.RateUsed, 1},
		} {
			list, batches := r.page(queue, 50)
			if batches != want.batches {
				t.Errorf("%s: %d batches, want %d", queue, batches, want.batches)
			}
			for _, l := range list[1:] {
				if l.Is != want.is {
					t.Errorf("%s: %v, want %v", queue, l.Is, want.is)
				}
			}
		}
	})
}

func TestTheServersLimitIsListedWhereSomebodyCouldWork(t *testing.T) {
	scenario(t, func(r *rig) {
		needs := func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "gpu", Op: "=", Value: "yes"}} }
		r.AddAll("q", "a", "b", "c")
		r.Add("q", "gpu", needs)
		r.AddAll("alone", "d")
		if _, batches := r.page("q", 4); batches != 0 {
			t.Errorf("%d batches while there is room", batches)
		}
		r.Anonymous(9, "q").Gets("a", "b")
		list, batches := r.page("q", 4)
		if batches != 1 || list[2].Is != rule.ServerLimit || list[3].Is != rule.InLine || list[0].Is != rule.InLine {
			t.Errorf("%v in %d batches", list, batches)
		}
		if list, _ := r.page("alone", 1); list[0].Is != rule.InLine {
			t.Errorf("nobody would take it: %v", list)
		}
		r.Why("c", rule.ServerLimit)
		r.Why("gpu", rule.NoFittingWorker)
		r.Why("d", rule.NoWorker)
	}, func(r *rig) { r.Opts.InFlightMax = 2 })
}

func TestASearchByWaitLooksAtEveryPage(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("held", func(q *job.Queue) { q.Paused = true })
		const most, want = 1201, 4 // more than two pages of a search
		var all []engine.NewJob
		for i := range most {
			queue := "works"
			if i%400 == 0 {
				queue = "held"
			}
			all = append(all, newNamed(queue, fmt.Sprint(i)))
		}
		if _, err := r.Put(r.Context(), all); err != nil {
			t.Fatal(err)
		}
		got := 0
		err := r.Each(r.Context(), query.Search{Waits: func(_ *job.Job, is rule.Obstacle) bool { return is == rule.Paused }}, func(l query.Listed) (bool, error) {
			if l.Job.Queue != "held" {
				t.Errorf("%v", l.Job)
			}
			got++
			return true, nil
		})
		if err != nil || got != want {
			t.Errorf("%d of %d, %v", got, want, err)
		}
	}, func(r *rig) { r.Twice = false })
}
