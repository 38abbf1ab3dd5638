package meter_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/meter"
)

func trace(text string) func(*engine.NewJob) {
	return func(n *engine.NewJob) { n.Job.Extras = &job.Extras{Traceparent: text} }
}

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

func TestWhoFollowsTracesHearsOfSampledJobsOnly(t *testing.T) {
	scenario(t, func(r *rig) {
		traced := r.listen(meter.EventFilter{Traced: true})
		defer traced.Close()
		r.Add("q", "plain")
		r.Add("q", "unsampled", trace(unsampled))
		r.Add("q", "sampled", trace(sampled))
		s := r.Anonymous(3)
		s.Gets("plain", "unsampled", "sampled")
		s.OK("plain")
		r.Settled(s.Held["sampled"], job.Died)
		list, lost := r.heard(traced)
		if got := r.story(list); lost != 0 || len(got) != 3 || got[0] != "enqueued sampled" || got[1] != "taken sampled" || got[2] != "died sampled killed" {
			r.Fatalf("heard %q, lost %d", got, lost)
		}
		first, last := list[0].Trace, list[2].Trace
		if first.Old != nil || first.Job.ID != r.IDs["sampled"] || first.Stored < list[0].At || len(first.Ended) != 0 {
			r.Errorf("%+v", first)
		}
		if last.Old.State != job.Leased || last.Job.State != job.Dead || len(last.Ended) != 1 || last.Ended[0].Outcome != "dead" ||
			last.Ended[0].Lease.Token != s.Held["sampled"].Lease.Token || last.Failure.Message != "boom" {
			r.Errorf("%+v", last)
		}

		all := r.listen(meter.EventFilter{}) // beside it; and what it hears is not less
		defer all.Close()
		s.OK("unsampled")
		if list, _ := r.heard(all); len(list) != 1 || list[0].Trace != nil {
			r.Errorf("heard %v", list)
		}
		if list, _ := r.heard(traced); len(list) != 0 {
			r.Errorf("who follows traces heard %v", list)
		}
	})
}
