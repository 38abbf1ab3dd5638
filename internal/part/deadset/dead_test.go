package deadset_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
)

func TestAReplayBringsBackEachJobOnceInItsOrder(t *testing.T) { // retry.md section 3
	scenario(t, func(r *rig) {
		r.Dies("q", boom, []string{"a", "b", "c"})
		r.Dies("other", boom, []string{"d"})
		id := r.StartReplay(job.Replay{Select: job.Selection{Queues: []string{"q"}}})
		p := r.Ends(id, 3, 0, 0, 0)
		if p.Total != 3 || p.By != ann || p.Finished != r.Now() {
			r.Errorf("%+v", p)
		}
		r.Anonymous(9).Gets("a", "b", "c")
		r.Expect("d", job.Dead)
		if j := r.Job("a"); j.Attempts != 0 || j.Replays != 1 || j.Failures != 1 {
			r.Errorf("%+v", j)
		}
		r.Audited("ann replay done 3", "ann replay 3")
	})
}

func TestAReplayKeepsItsRateAndGoesOnAfterARestart(t *testing.T) { // retry.md section 3
	scenario(t, func(r *rig) {
		r.Dies("q", boom, numbered("j", 100))
		id := r.StartReplay(job.Replay{Rate: 10})
		expect := func(when string, left int64) {
			r.Helper()
			if n := r.CountOf(dead("q")); n != left {
				r.Fatalf("%s %d are dead, want %d", when, n, left)
			}
		}
		r.Pass(10)
		expect("at first", 100)
		r.Pass(3 * job.Second)
		expect("after 3 s", 70)
		r.Restart(job.Hour)
		expect("after an hour without a server", 70)
		r.Pass(2 * job.Second)
		expect("2 s later", 50)
		r.PowerCut()
		r.Pass(10 * job.Second) // some of it is done again: a step does not wait for the disk
		expect("at the end", 0)
		r.Ends(id, 100, 0, 0, 0)
		for _, name := range numbered("j", 100) {
			if j := r.Expect(name, job.Ready); j.Replays != 1 {
				r.Fatalf("%s was replayed %d times", name, j.Replays)
			}
		}
	}, func(r *rig) { r.Opts.Server.RetainDead = job.Day })
}

func TestAReplayTouchesWhatWasDeadWhenItBegan(t *testing.T) { // retry.md section 3
	scenario(t, func(r *rig) {
		r.Dies("q", boom, numbered("j", 20))
		id := r.StartReplay(job.Replay{Rate: 1})
		r.Pass(2500) // j000 and j001 are back
		r.Dies("late", boom, []string{"late"})
		r.Operate("j010", revive)
		w := r.Opened(engine.StreamOptions{Queues: []string{"q"}, Prefetch: 3})
		w.Gets("j000", "j001", "j010")
		for _, name := range []string{"j000", "j010"} { // one is dead behind the run, one before it
			r.Settled(w.Held[name], job.Died)
		}
		w.End()
		r.Pass(job.Minute)
		r.Ends(id, 19, 0, 0, 1)
		r.Expect("late", job.Dead)
		r.Expect("j000", job.Dead)
		r.Expect("j010", job.Dead)
	})
}

func TestWhoWasReplayedTooOftenStaysDead(t *testing.T) { // retry.md section 3, max_replays
	scenario(t, func(r *rig) {
		r.Dies("q", boom, []string{"a", "b"})
		again := func() {
			r.Helper()
			w := r.Anonymous(1)
			w.Gets("a")
			r.Settled(w.Held["a"], job.Died)
			w.End()
		}
		for range 2 {
			r.Operate("a", revive)
			again()
		}
		r.Ends(r.StartReplay(job.Replay{MaxReplays: 2}), 1, 0, 1, 0)
		r.Expect("a", job.Dead)
		r.Expect("b", job.Ready)
		if _, err := r.Part.Dead.Revive(r.Context(), r.IDs["a"], deadset.Revival{MaxReplays: 2}, ann); job.KindOf(err) != job.WrongState {
			r.Errorf("replaying it alone: %v", err)
		}
	})
}

func TestAGroupOfAStrictQueueIsReplayedInItsOrder(t *testing.T) { // I7, core.md section 2
	scenario(t, func(r *rig) {
		r.SetQueue("q", strict)
		r.Dies("q", boom, []string{"a", "b", "c"}, grouped("g"))
		r.Ends(r.StartReplay(job.Replay{Place: job.PlaceFront}), 0, 3, 0, 0)
		r.Ends(r.StartReplay(job.Replay{Place: job.PlaceFront, Allow: true}), 3, 0, 0, 0)
		w := r.Named("w", 9)
		for _, name := range []string{"a", "b", "c"} {
			w.Gets(name)
			w.OK(name)
		}
		w.Gets()
	})
}

func TestARunCanBeCancelledAndARunCanDelete(t *testing.T) { // retry.md section 3
	scenario(t, func(r *rig) {
		r.Dies("q", boom, numbered("j", 10))
		r.Dies("q", job.Failure{Type: "F", Message: "bust"}, []string{"f"})
		id := r.StartReplay(job.Replay{Rate: 1})
		r.Pass(4100)
		p, err := r.Part.Dead.CancelReplay(r.Context(), id, ann)
		if err != nil || p.Progress != job.Cancelled || p.Done != 4 {
			r.Fatalf("%+v, %v", p, err)
		}
		r.Pass(job.Minute)
		if n := r.CountOf(dead("q")); n != 7 {
			r.Errorf("after the cancel %d are dead", n)
		}
		if _, err := r.Part.Dead.CancelReplay(r.Context(), id, ann); job.KindOf(err) != job.WrongState {
			r.Errorf("cancelling it again: %v", err)
		}
		if _, err := r.Part.Dead.CancelReplay(r.Context(), job.ID{9}, ann); job.KindOf(err) != job.NotFound {
			r.Errorf("cancelling none: %v", err)
		}
		r.Ends(r.StartReplay(job.Replay{Action: job.ActionDelete, Select: job.Selection{ErrorTypes: []string{"F"}, Text: "BUST"}}), 1, 0, 0, 0)
		if r.Expect("f", job.None); r.CountOf(dead("q")) != 6 {
			r.Error("it deleted others")
		}
		r.Audited("ann delete done 1", "ann delete 1", "ann replay cancelled 4", "ann replay 11")
		r.Pass(8 * job.Day)
		if n := r.Rows(job.Replays); n != 0 {
			r.Errorf("%d runs are kept for ever", n)
		}
	})
}

func TestOneDeadJobIsReplayedWithAnEditedPayload(t *testing.T) { // I8, retry.md section 3
	scenario(t, func(r *rig) {
		r.Dies("q", boom, []string{"a", "b"})
		v, err := r.Part.Dead.Revive(r.Context(), r.IDs["a"], deadset.Revival{Payload: []byte("edited"), Place: job.PlaceFront}, ann)
		if err != nil || v.State != job.Ready || v.Job.PayloadSize != 6 || v.Job.Band != job.BandFront {
			r.Fatalf("%+v, %v", v, err)
		}
		if _, body, err := r.Get(r.Context(), r.IDs["a"]); string(body) != "edited" || err != nil {
			r.Errorf("the payload is %q, %v", body, err)
		}
		if _, err := r.Part.Dead.Revive(r.Context(), r.IDs["a"], deadset.Revival{}, ann); job.KindOf(err) != job.WrongState {
			r.Errorf("replaying it again: %v", err)
		}
		if err := r.Part.Dead.Delete(r.Context(), r.IDs["a"], ann); job.KindOf(err) != job.WrongState {
			r.Errorf("deleting it from the dead: %v", err)
		}
		if err := r.Part.Dead.Delete(r.Context(), r.IDs["b"], ann); err != nil {
			r.Error(err)
		}
		r.Expect("b", job.None)
		if err := r.Part.Dead.Delete(r.Context(), r.IDs["b"], ann); job.KindOf(err) != job.NotFound {
			r.Errorf("deleting it again: %v", err)
		}
		r.Audited("ann delete 1", "ann replay edited 1")
	})
}

func TestAPausedFingerprintHoldsItsJobsUntilItIsResumed(t *testing.T) { // retry.md section 3
	scenario(t, func(r *rig) {
		r.Dies("q", boom, []string{"dead"})
		print := r.Job("dead").Print
		r.Opts.Server.RetainDead = job.Hour
		if _, err := r.Part.Dead.Mark(r.Context(), print, deadset.MarkEdit{Paused: new(true), Note: new("smtp is down")}, ann); err != nil {
			r.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			r.Add("q", name, retry(job.Retry{Limit: job.LimitOf(5), Curve: wait(10)}))
		}
		w := r.Anonymous(9)
		w.Gets("a", "b")
		w.Fails("a", func(s *engine.Settle) { s.Failure = boom })
		w.Fails("b", func(s *engine.Settle) { s.Failure = job.Failure{Type: "other"} })
		r.Pass(job.Minute)
		w.Gets("b")
		groups, all, err := r.Part.Dead.Groups(r.Context(), deadset.GroupQuery{Most: 9, Buckets: 2, Bucket: job.Hour})
		if err != nil || all != 1 || groups[0].Held != 1 || !groups[0].Mark.Paused || groups[0].Mark.Note != "smtp is down" || groups[0].Trend[1] != 1 {
			r.Fatalf("%+v, %v", groups, err)
		}
		r.Restart(0)
		w = r.Anonymous(9)
		w.Gets("b")
		if _, err := r.Part.Dead.Mark(r.Context(), print, deadset.MarkEdit{Paused: new(false), Note: new("")}, ann); err != nil {
			r.Fatal(err)
		}
		w.Gets("a")
		if r.Pass(0); r.Rows(job.Marks) != 0 {
			r.Error("a mark that says nothing is kept")
		}
		r.Audited("ann resume 0", "ann note 0", "ann pause 0", "ann note 0")
	})
}

func TestGroupsOfTheDeadAreSortedFilteredAndPaged(t *testing.T) { // retry.md section 3
	scenario(t, func(r *rig) {
		r.Dies("q1", boom, []string{"a", "b"})
		r.Dies("q2", boom, []string{"c"})
		r.Pass(job.Minute)
		r.Dies("q2", job.Failure{Type: "F", Message: "bust"}, []string{"d"})
		find := func(q deadset.GroupQuery) (text string) {
			r.Helper()
			q.Most = 1
			groups, all, err := r.Part.Dead.Groups(r.Context(), q)
			if err != nil {
				r.Fatal(err)
			}
			for _, g := range groups {
				text += fmt.Sprintf("%s %d of ", g.Failure.Type, g.Count())
			}
			return text + fmt.Sprint(all)
		}
		if _, err := r.Part.Dead.Mark(r.Context(), r.Job("d").Print, deadset.MarkEdit{Muted: new(true)}, ann); err != nil {
			r.Fatal(err)
		}
		for _, tt := range []struct {
			q    deadset.GroupQuery
			want string
		}{
			{deadset.GroupQuery{}, "E 3 of 2"},
			{deadset.GroupQuery{Offset: 1}, "F 1 of 2"},
			{deadset.GroupQuery{Offset: 9}, "2"},
			{deadset.GroupQuery{ByLast: true}, "F 1 of 2"},
			{deadset.GroupQuery{Queues: []string{"q2"}}, "E 1 of 2"},
			{deadset.GroupQuery{Queues: []string{"q1"}}, "E 2 of 1"},
			{deadset.GroupQuery{Muted: new(false)}, "E 3 of 1"},
			{deadset.GroupQuery{Muted: new(true)}, "F 1 of 1"},
			{deadset.GroupQuery{Prints: []job.Fingerprint{r.Job("d").Print}}, "F 1 of 1"},
		} {
			if got := find(tt.q); got != tt.want {
				r.Errorf("%+v: %s, want %s", tt.q, got, tt.want)
			}
		}
	})
}

func TestDeadJobsAreFoundByTheirErrorsAcrossPages(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Dies("q", boom, numbered("j", 30))
		r.Dies("q", job.Failure{Type: "F", Message: "bust"}, []string{"f"})
		for _, desc := range []bool{false, true} {
			list, _, err := r.Part.Dead.Jobs(r.Context(), deadset.Page{Select: &job.Selection{Text: "bust"}, Most: 5, Desc: desc, Payload: true})
			if err != nil || len(list) != 1 || string(list[0].Payload) != "f" || list[0].Failure.Type != "F" {
				r.Fatalf("desc %t: %+v, %v", desc, list, err)
			}
		}
		p, err := r.Part.Dead.PreviewReplay(r.Context(), &job.Selection{Queues: []string{"q"}}, nil)
		if err != nil || p.Count != 31 || len(p.Sample) != 5 || r.CountOf(dead("q")) != 31 {
			r.Errorf("%+v, %v", p, err)
		}
		n := 0
		err = r.Part.Dead.Each(r.Context(), &job.Selection{}, nil, func(d deadset.Dead) (bool, error) {
			n++
			return n < 7, nil
		})
		if n != 7 || err != nil {
			r.Errorf("%d, %v", n, err)
		}
	})
}

func TestWhatAnOperatorDidSurvivesAPowerCut(t *testing.T) { // I5, retry.md section 3
	scenario(t, func(r *rig) {
		names := numbered("j", 8)
		r.Dies("q", boom, names)
		for i, name := range names {
			if err := r.Part.Dead.Delete(r.Context(), r.IDs[name], ann); err != nil {
				r.Fatal(err)
			}
			r.PowerCut()
			r.Expect(name, job.None)
			if list, err := r.Part.Audit.List(r.Context(), job.ID{}, 100); err != nil || len(list) != i+1 || list[0].Subject != r.IDs[name].String() {
				r.Fatalf("after %d deletes the audit log has %d entries, %v", i+1, len(list), err)
			}
		}
	})
}
