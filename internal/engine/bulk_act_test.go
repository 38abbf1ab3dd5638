package engine_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/meter"
	"github.com/reprisehq/reprise/internal/query"
)

func TestAPatchBringsANewPayloadWhereNothingRuns(t *testing.T) {
	scenario(t, func(r *rig) {
		added, err := r.Put(r.Context(), []engine.NewJob{{Job: job.Job{Queue: "q", Type: "t", RetainDone: job.Hour}, Payload: []byte(`"old"`)}})
		if err != nil {
			t.Fatal(err)
		}
		id := added[0].ID
		payload := func(want string) {
			t.Helper()
			if _, body, err := r.Get(r.Context(), id); err != nil || string(body) != want {
				t.Errorf("the payload is %s, %v; want %s", body, err, want)
			}
		}
		edit := desk.Patch{Payload: []byte(`"a new one"`)}
		if v, err := r.Part.Desk.Do(r.Context(), ann, edit.Verb(), id); err != nil || v.Job.PayloadSize != 11 {
			t.Fatal(v, err)
		}
		payload(`"a new one"`)
		r.Restart(job.Second)
		payload(`"a new one"`)
		list, err := r.Lease(r.Context(), engine.LeaseOptions{Queues: []string{"q"}, Max: 1})
		if err != nil || string(list[0].Payload) != `"a new one"` {
			t.Fatal(list, err)
		}
		if _, err := r.Part.Desk.Do(r.Context(), ann, edit.Verb(), id); job.KindOf(err) != job.WrongState || !strings.Contains(err.Error(), "with the payload it has") {
			t.Error(err)
		}
		payload(`"a new one"`)
	}) // which looks at the payloads that are left
}

func TestManyAreSkippedAndThoseThatAreFinishedAreNot(t *testing.T) {
	scenario(t, func(r *rig) {
		var news []engine.NewJob
		for range 3 {
			news = append(news, engine.NewJob{Job: job.Job{Queue: "q", Type: "t", RetainDead: job.Hour}, Payload: []byte("1")})
		}
		added, err := r.Put(r.Context(), news)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Part.Desk.Do(r.Context(), ann, desk.Cancel(ann, "mine"), added[0].ID); err != nil {
			t.Fatal(err)
		}
		all := query.Search{Filter: engine.Filter{Queues: []string{"q"}}}
		if done, refused, err := r.Part.Desk.DoAll(r.Context(), desk.Skip, all); done != 2 || refused != 1 || err != nil {
			t.Errorf("%d, %d, %v", done, refused, err)
		}
		for i, want := range []string{"cancelled by ann: mine", "skipped by an operator", "skipped by an operator"} {
			list, err := r.Failures(r.Context(), added[i].ID, 0, true, 9)
			if err != nil || len(list) != 1 || list[0].Message != want {
				t.Errorf("job %d: %+v, %v", i, list, err)
			}
		}
	})
}

// Cancelled is not dead: no group, no death in lists, counts and replays, unless
// the reason or the job is named.
func TestCancelledIsNotDead(t *testing.T) {
	scenario(t, func(r *rig) {
		for _, name := range []string{"a", "b", "c", "d"} {
			r.Add("q", name)
		}
		s := r.Opened(engine.StreamOptions{Name: "w", Queues: []string{"q"}, Prefetch: 1})
		s.Gets("a")
		s.Fails("a", func(s *engine.Settle) { s.Outcome = job.Died })
		s.Gets("b")
		all := query.Search{Filter: engine.Filter{Queues: []string{"q"}}}
		n, sample, err := r.Part.Desk.PreviewCancel(r.Context(), all)
		if err != nil || n != 3 || len(sample) != 3 {
			t.Errorf("a dry run counts %d, shows %d, %v", n, len(sample), err)
		}
		if n, _, err := r.Part.Desk.DoAll(r.Context(), desk.Cancel(ann, "withdrawn"), all); n != 3 || err != nil {
			t.Errorf("%d were cancelled, %v", n, err)
		}
		for _, name := range []string{"b", "c", "d"} {
			if j := r.Expect(name, job.Dead); j.Reason != job.ReasonCancelled || j.BlocksGroup {
				t.Errorf("%s is %s", name, j.Reason)
			}
			if got := r.messages(name, false); len(got) != 1 || got[0] != "cancelled by ann: withdrawn" {
				t.Errorf("%s says %q", name, got)
			}
		}
		r.Counted("q", map[meter.Count]uint64{
			meter.Enqueued: 4, meter.Taken: 2, meter.SettledDead: 1, meter.EndedCancel: 1, meter.DeadKilled: 1, meter.JobsCancelled: 3,
		})
		groups, _, err := r.Part.Dead.Groups(r.Context(), deadset.GroupQuery{Most: 9, Buckets: 1, Bucket: job.Hour})
		if err != nil || len(groups) != 1 || groups[0].Count() != 1 {
			t.Errorf("%d groups of the dead, %v", len(groups), err)
		}
		for want, s := range map[string]job.Selection{
			"a": {}, "b c d": {Reasons: []job.Reason{job.ReasonCancelled}}, "a b c d": {Reasons: []job.Reason{job.Killed, job.ReasonCancelled}},
			"c": {IDs: []job.ID{r.IDs["c"]}},
		} {
			var got []string
			list, _, err := r.Part.Dead.Jobs(r.Context(), deadset.Page{Select: &s, Most: 9})
			for _, d := range list {
				got = append(got, r.Names[d.Job.ID])
			}
			if strings.Join(got, " ") != want || err != nil {
				t.Errorf("%+v chooses %q, %v; want %q", s, got, err, want)
			}
		}
		if _, err := r.Part.Dead.Revive(r.Context(), r.IDs["b"], deadset.Revival{}, ann); err != nil {
			t.Error(err)
		}
		r.Expect("b", job.Leased)
	})
}
