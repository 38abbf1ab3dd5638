package engine_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
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
		edit := engine.Patch{Payload: []byte(`"a new one"`)}
		if v, err := r.Patch(r.Context(), ann, id, edit); err != nil || v.Job.PayloadSize != 11 {
			t.Fatal(v, err)
		}
		payload(`"a new one"`)
		r.restart(job.Second)
		payload(`"a new one"`)
		list, err := r.Lease(r.Context(), engine.LeaseOptions{Queues: []string{"q"}, Max: 1})
		if err != nil || string(list[0].Payload) != `"a new one"` {
			t.Fatal(list, err)
		}
		if _, err := r.Patch(r.Context(), ann, id, edit); job.KindOf(err) != job.WrongState || !strings.Contains(err.Error(), "with the payload it has") {
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
		if _, err := r.Cancel(r.Context(), ann, added[0].ID, "mine"); err != nil {
			t.Fatal(err)
		}
		all := engine.Search{Filter: engine.Filter{Queues: []string{"q"}}}
		if done, refused, err := r.SkipAll(r.Context(), all); done != 2 || refused != 1 || err != nil {
			t.Errorf("%d, %d, %v", done, refused, err)
		}
		for i, want := range []string{"mine", "skipped by an operator", "skipped by an operator"} {
			list, err := r.Failures(r.Context(), added[i].ID, 0, true, 9)
			if err != nil || len(list) != 1 || list[0].Message != want {
				t.Errorf("job %d: %+v, %v", i, list, err)
			}
		}
	})
}
