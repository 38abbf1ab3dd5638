package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

func makes(result string) func(*engine.Settle) {
	return func(s *engine.Settle) { s.Result = []byte(result) }
}

// made wants a job to be done with a result; "" = none.
func (r *rig) made(name, want string) {
	r.Helper()
	j := r.expect(name, job.Done)
	got, err := r.Result(j)
	if err != nil || string(got) != want || (j.Result() == nil) != (want == "") {
		r.Fatalf("%s made %q (%v), want %q", name, got, err, want)
	}
	if want != "" && int(j.Result().Size) != len(want) {
		r.Fatalf("%s made %d bytes, the job says %d", name, len(want), j.Result().Size)
	}
}

// bodies counts what is kept.
func (r *rig) bodies(refs ...job.ID) (n int) {
	r.Helper()
	list, err := r.mem.Payloads(refs...)
	if err != nil {
		r.Fatal(err)
	}
	for _, body := range list {
		if body != nil {
			n++
		}
	}
	return n
}

func TestAResultIsKeptWithTheDoneJob(t *testing.T) { // core.md section 7
	scenario(t, func(r *rig) {
		w := r.named("w", 3)
		r.puts("q", "a", "b", "c")
		w.gets("a", "b", "c")
		r.settle(w.held["a"], job.OK, makes(`{"n":1}`))
		w.ok("b")
		r.made("a", `{"n":1}`)
		r.made("b", "")
		if got, err := r.Result(r.job("c")); got != nil || err != nil {
			r.Errorf("of a job that runs: %q, %v", got, err)
		}
		r.powerCut()
		r.made("a", `{"n":1}`)
		r.restart(job.Second)
		r.made("a", `{"n":1}`)
		ref := r.job("a").Result().Ref
		r.pass(job.Hour)
		r.expect("a", job.None)
		if r.bodies(ref) != 0 {
			r.Error("the retention is over, and the result is there")
		}
	})
}

func TestAJobWithoutRetentionTakesItsResultWithIt(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.named("w", 1)
		r.puts("q", "a")
		w.gets("a")
		if v := r.settle(w.held["a"], job.OK, makes("1")); v.State != job.Done || v.Job.Result() != nil {
			r.Errorf("%+v", v)
		}
		r.expect("a", job.None) // that no payload without a job stayed is looked at in the end
	}, func(r *rig) { r.opts.Server.RetainDone = 0 })
}

func TestWhoeverDeletesTheJobHasCollectedItsResult(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.named("w", 1)
		r.puts("q", "a")
		w.gets("a")
		r.settle(w.held["a"], job.OK, makes("1"))
		refs := []job.ID{r.job("a").Result().Ref, r.job("a").Payload}
		if r.bodies(refs...) != 2 {
			r.Error("nothing to collect")
		}
		if err := r.Delete(r.Context(), r.ids["a"], job.Actor{}); err != nil || r.bodies(refs...) != 0 {
			r.Errorf("%v, %d payloads are there", err, r.bodies(refs...))
		}
	})
}

func TestTheFirstOKDecidesOnTheResult(t *testing.T) { // I3, core.md section 4
	scenario(t, func(r *rig) {
		x, y := r.named("x", 2), r.named("y", 2)
		r.put("q", "a", copies(2))
		x.gets("a")
		y.gets("a")
		first := engine.Settle{ID: r.ids["a"], Token: x.held["a"].Lease.Token, Result: []byte("1")}
		again := first
		again.Result = []byte("2")
		other := engine.Settle{ID: r.ids["a"], Token: y.held["a"].Lease.Token, Result: []byte("3")}
		list, err := r.Settle(r.Context(), []engine.Settle{first, again, other})
		if err != nil || list[0].Err != nil || list[1].Err != nil || job.KindOf(list[2].Err) != job.Superseded {
			r.Errorf("%+v, %v", list, err)
		}
		r.made("a", "1")
		r.try(again)
		r.refused(job.Superseded, other)
		r.made("a", "1")
		r.put("q", "b")
		d := map[*stream]bool{}
		for _, s := range []*stream{x, y} {
			s.read()
			if _, ok := s.held["b"]; ok {
				r.settle(s.held["b"], job.OK)
				d[s] = true
				late := engine.Settle{ID: r.ids["b"], Token: s.held["b"].Lease.Token, Result: []byte("too late")}
				if v := r.try(late); v.Err != nil {
					r.Error(v.Err)
				}
			}
		}
		r.made("b", "") // it made nothing, and that stays
		if len(d) != 1 {
			r.Errorf("b went to %d workers", len(d))
		}
	})
}

func TestALateOKBringsItsResult(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		d := r.lease(engine.LeaseOptions{Max: 1, For: job.Second}, "a")["a"]
		r.pass(2 * job.Second)
		r.expect("a", job.Ready)
		r.settle(d, job.OK, makes(`"late"`))
		r.made("a", `"late"`)
	})
}

func TestOnlyAnOKHasAResult(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.named("w", 1)
		r.put("q", "a")
		w.gets("a")
		r.settle(w.held["a"], job.Died, makes("1"))
		if j := r.expect("a", job.Dead); j.Result() != nil {
			r.Errorf("%+v", j.Result())
		}
	})
}

func TestAResultKeepsWhatElseTheJobCarries(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.named("w", 1)
		r.put("q", "a", func(n *engine.NewJob) {
			n.Job.Extras = &job.Extras{Labels: []job.Label{{Key: "k", Value: "v"}}, Unique: &job.Unique{Key: "u", While: job.WhileExists}}
		})
		w.gets("a")
		r.settle(w.held["a"], job.OK, makes("1"))
		j := r.job("a")
		if len(j.Extras.Labels) != 1 || j.Extras.Unique == nil || !j.Owns {
			r.Errorf("%+v", j)
		}
		list, err := r.List(r.Context(), store.Filter{}, 9, true)
		if err != nil || len(list) != 1 || string(list[0].Payload) != "a" || list[0].Job.Result().Size != 1 {
			r.Errorf("%+v, %v", list, err)
		}
	})
}
