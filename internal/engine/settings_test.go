package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// settingsRefused wants new settings of a queue to be refused, and nothing to
// have changed.
func (r *rig) settingsRefused(kind job.Kind, name string) {
	r.Helper()
	before := r.Rows(job.Queues)
	q, err := r.Part.Desk.SetQueue(r.Context(), name, func(q *job.Queue) error { q.MaxJobs = 7; return nil }, job.Actor{})
	if err == nil || job.KindOf(err) != kind || q != nil || r.Rows(job.Queues) != before {
		r.Fatalf("settings of %s: %v, %v; %d rows, then %d", name, q, err, before, r.Rows(job.Queues))
	}
}

func TestSettingsMakeAQueueAndCountAgainstTheMostQueues(t *testing.T) { // core.md section 10, max_queues
	scenario(t, func(r *rig) {
		limit := func(q *job.Queue) { q.MaxJobs = 100 }
		r.AddAll("one", "a")
		r.SetQueue("two", limit)
		r.settingsRefused(job.OverLimit, "three")
		r.TooMuch(newNamed("three", "c"))
		r.SetQueue("one", limit) // that they exist already
		r.SetQueue("two", limit)
		r.AddAll("two", "b")
		r.Restart(0)
		r.settingsRefused(job.OverLimit, "three")
		r.Operate("b", cancel)
		r.SetQueue("two", limit)
	}, func(r *rig) { r.Opts.QueuesMax = 2 })
}

func TestAQueueWithSettingsOnlyIsKnownAfterARestart(t *testing.T) { // max_queues
	scenario(t, func(r *rig) {
		r.SetQueue("one", func(q *job.Queue) { q.MaxJobs = 100 })
		r.Restart(0)
		r.settingsRefused(job.OverLimit, "two")
		r.TooMuch(newNamed("two", "b"))
		r.AddAll("one", "a")
	}, func(r *rig) { r.Opts.QueuesMax = 1 })
}
