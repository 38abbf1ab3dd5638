package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// settingsRefused wants new settings of a queue to be refused, and nothing to
// have changed.
func (r *rig) settingsRefused(kind job.Kind, name string) {
	r.Helper()
	before := r.rows(job.Queues)
	q, err := r.part.Desk.SetQueue(r.Context(), name, func(q *job.Queue) error { q.MaxJobs = 7; return nil }, job.Actor{})
	if err == nil || job.KindOf(err) != kind || q != nil || r.rows(job.Queues) != before {
		r.Fatalf("settings of %s: %v, %v; %d rows, then %d", name, q, err, before, r.rows(job.Queues))
	}
}

func TestSettingsMakeAQueueAndCountAgainstTheMostQueues(t *testing.T) { // core.md section 10, max_queues
	scenario(t, func(r *rig) {
		limit := func(q *job.Queue) { q.MaxJobs = 100 }
		r.puts("one", "a")
		r.queue("two", limit)
		r.settingsRefused(job.OverLimit, "three")
		r.tooMuch(newNamed("three", "c"))
		r.queue("one", limit) // that they exist already
		r.queue("two", limit)
		r.puts("two", "b")
		r.Restart(0)
		r.settingsRefused(job.OverLimit, "three")
		r.operate("b", cancel)
		r.queue("two", limit)
	}, func(r *rig) { r.Opts.QueuesMax = 2 })
}

func TestAQueueWithSettingsOnlyIsKnownAfterARestart(t *testing.T) { // max_queues
	scenario(t, func(r *rig) {
		r.queue("one", func(q *job.Queue) { q.MaxJobs = 100 })
		r.Restart(0)
		r.settingsRefused(job.OverLimit, "two")
		r.tooMuch(newNamed("two", "b"))
		r.puts("one", "a")
	}, func(r *rig) { r.Opts.QueuesMax = 1 })
}
