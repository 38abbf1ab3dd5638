package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/store"
)

func makes(result string) func(*engine.Settle) {
	return func(s *engine.Settle) { s.Result = []byte(result) }
}

// made wants a job to be done with a result; "" = none.
func (r *rig) made(name, want string) {
	r.Helper()
	j := r.Expect(name, job.Done)
	got, err := r.Result(j)
	if err != nil || string(got) != want || (j.Result() == nil) != (want == "") {
		r.Fatalf("%s made %q (%v), want %q", name, got, err, want)
	}
	if want != "" && int(j.Result().Size) != len(want) {
		r.Fatalf("%s made %d bytes, the job says %d", name, len(want), j.Result().Size)
	}
}

// bodies counts what is kept.
func (r *rig) Payloads(refs ...job.ID) (n int) {
	r.Helper()
	list, err := r.Mem.Payloads(refs...)
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
	for _, result := range []string{`{"n":1}`, large} {
		scenario(t, func(r *rig) {
			w := r.Named("w", 3)
			r.AddAll("q", "a", "b", "c")
			w.Gets("a", "b", "c")
			r.Settled(w.Held["a"], job.OK, makes(result))
			w.OK("b")
			r.made("a", result)
			r.made("b", "")
			if got, err := r.Result(r.Job("c")); got != nil || err != nil {
				r.Errorf("of a job that runs: %q, %v", got, err)
			}
			r.PowerCut()
			r.made("a", result)
			r.Restart(job.Second)
			r.made("a", result)
			ref := r.Job("a").Result().Ref
			r.Pass(job.Hour)
			r.Expect("a", job.None)
			if r.Payloads(ref) != 0 {
				r.Error("the retention is over, and the result is there")
			}
		})
	}
}

func TestAJobWithoutRetentionTakesItsResultWithIt(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Named("w", 1)
		r.AddAll("q", "a")
		w.Gets("a")
		if v := r.Settled(w.Held["a"], job.OK, makes(large)); v.State != job.Done || v.Job.Result() != nil {
			r.Errorf("%+v", v)
		}
		r.Expect("a", job.None) // that no payload without a job stayed is looked at in the end
	}, func(r *rig) { r.Opts.Server.RetainDone = 0 })
}

func TestWhoeverDeletesTheJobHasCollectedItsResult(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Named("w", 1)
		r.AddAll("q", "a")
		w.Gets("a")
		r.Settled(w.Held["a"], job.OK, makes(large))
		refs := []job.ID{r.Job("a").Result().Ref, r.Job("a").Payload}
		if r.Payloads(refs...) != 2 {
			r.Error("nothing to collect")
		}
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"]); err != nil || r.Payloads(refs...) != 0 {
			r.Errorf("%v, %d payloads are there", err, r.Payloads(refs...))
		}
	})
}

func TestTheFirstOKDecidesOnTheResult(t *testing.T) { // I3, core.md section 4
	scenario(t, func(r *rig) {
		x, y := r.Named("x", 2), r.Named("y", 2)
		r.Add("q", "a", copies(2))
		x.Gets("a")
		y.Gets("a")
		first := engine.Settle{ID: r.IDs["a"], Token: x.Held["a"].Lease.Token, Result: []byte("1")}
		again := first
		again.Result = []byte("2")
		other := engine.Settle{ID: r.IDs["a"], Token: y.Held["a"].Lease.Token, Result: []byte("3")}
		list, err := r.Settle(r.Context(), []engine.Settle{first, again, other})
		if err != nil || list[0].Err != nil || list[1].Err != nil || job.KindOf(list[2].Err) != job.Superseded {
			r.Errorf("%+v, %v", list, err)
		}
		r.made("a", "1")
		r.Try(again)
		r.Refused(job.Superseded, other)
		r.made("a", "1")
		r.Add("q", "b")
		d := map[*stream]bool{}
		for _, s := range []*stream{x, y} {
			s.Read()
			if _, ok := s.Held["b"]; ok {
				r.Settled(s.Held["b"], job.OK)
				d[s] = true
				late := engine.Settle{ID: r.IDs["b"], Token: s.Held["b"].Lease.Token, Result: []byte("too late")}
				if v := r.Try(late); v.Err != nil {
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
		r.AddAll("q", "a")
		d := r.Leased(engine.LeaseOptions{Max: 1, For: job.Second}, "a")["a"]
		r.Pass(2 * job.Second)
		r.Expect("a", job.Ready)
		r.Settled(d, job.OK, makes(`"late"`))
		r.made("a", `"late"`)
	})
}

func TestOnlyAnOKHasAResult(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Named("w", 1)
		r.Add("q", "a")
		w.Gets("a")
		r.Settled(w.Held["a"], job.Died, makes("1"))
		if j := r.Expect("a", job.Dead); j.Result() != nil {
			r.Errorf("%+v", j.Result())
		}
	})
}

func TestAResultKeepsWhatElseTheJobCarries(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Named("w", 1)
		r.Add("q", "a", func(n *engine.NewJob) {
			n.Job.Extras = &job.Extras{Labels: []job.Label{{Key: "k", Value: "v"}}, Unique: &job.Unique{Key: "u", While: job.WhileExists}}
		})
		w.Gets("a")
		r.Settled(w.Held["a"], job.OK, makes("1"))
		j := r.Job("a")
		if len(j.Extras.Labels) != 1 || j.Extras.Unique == nil || !j.HoldsKey {
			r.Errorf("%+v", j)
		}
		list, err := enginetest.Page(r.Context(), r.Engine, store.Filter{}, 9)
		if err != nil || len(list) != 1 || string(list[0].Payload) != "a" || list[0].Job.Result().Size != 1 {
			r.Errorf("%+v, %v", list, err)
		}
	})
}
