package engine_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

func makes(result string) func(*engine.Settle) {
	return func(s *engine.Settle) { s.Result = []byte(result) }
}

// large is a result that is a payload of its own.
var large = strings.Repeat("1", job.ResultInline+1)

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
			w := r.named("w", 3)
			r.puts("q", "a", "b", "c")
			w.gets("a", "b", "c")
			r.settle(w.held["a"], job.OK, makes(result))
			w.ok("b")
			r.made("a", result)
			r.made("b", "")
			if got, err := r.Result(r.job("c")); got != nil || err != nil {
				r.Errorf("of a job that runs: %q, %v", got, err)
			}
			r.PowerCut()
			r.made("a", result)
			r.Restart(job.Second)
			r.made("a", result)
			ref := r.job("a").Result().Ref
			r.Pass(job.Hour)
			r.expect("a", job.None)
			if r.Payloads(ref) != 0 {
				r.Error("the retention is over, and the result is there")
			}
		})
	}
}

func TestAJobWithoutRetentionTakesItsResultWithIt(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.named("w", 1)
		r.puts("q", "a")
		w.gets("a")
		if v := r.settle(w.held["a"], job.OK, makes(large)); v.State != job.Done || v.Job.Result() != nil {
			r.Errorf("%+v", v)
		}
		r.expect("a", job.None) // that no payload without a job stayed is looked at in the end
	}, func(r *rig) { r.Opts.Server.RetainDone = 0 })
}

func TestWhoeverDeletesTheJobHasCollectedItsResult(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.named("w", 1)
		r.puts("q", "a")
		w.gets("a")
		r.settle(w.held["a"], job.OK, makes(large))
		refs := []job.ID{r.job("a").Result().Ref, r.job("a").Payload}
		if r.Payloads(refs...) != 2 {
			r.Error("nothing to collect")
		}
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["a"]); err != nil || r.Payloads(refs...) != 0 {
			r.Errorf("%v, %d payloads are there", err, r.Payloads(refs...))
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
		r.Pass(2 * job.Second)
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
		if len(j.Extras.Labels) != 1 || j.Extras.Unique == nil || !j.HoldsKey {
			r.Errorf("%+v", j)
		}
		list, err := enginetest.Page(r.Context(), r.Engine, store.Filter{}, 9)
		if err != nil || len(list) != 1 || string(list[0].Payload) != "a" || list[0].Job.Result().Size != 1 {
			r.Errorf("%+v, %v", list, err)
		}
	})
}

// inADirectory lets the engine keep its work in a directory, which every start opens
// anew, and in which nothing is left in the end.
func inADirectory(r *rig) {
	fs, shut := vfs.NewMem(), func() error { return nil }
	r.Around = func(store.Store) store.Store {
		if err := shut(); err != nil {
			r.Fatal(err)
		}
		st, err := embedded.Open(embedded.Options{Dir: "data", FS: fs, Now: r.Clock.Wall})
		if err != nil {
			r.Fatal(err)
		}
		shut = st.Close
		return st
	}
	r.Cleanup(func() {
		if err := shut(); err != nil {
			r.Error(err)
		}
		if in, err := embedded.Inspect(fs, "data"); err != nil || in.Jobs != [job.States]int64{} || in.Payloads != 0 || in.Damaged != 0 {
			r.Errorf("left is %+v (%v)", in, err)
		}
	})
}

func TestResultsOfAllSizesAreCollectedAlike(t *testing.T) {
	results := map[string][]byte{
		"A": nil, "B": {}, "C": []byte("1"), "D": []byte(large)[1:], "E": []byte(large),
	}
	for name, on := range map[string]func(*rig){"mem": func(*rig) {}, "embedded": inADirectory} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s")
				m := g.engine("e", len(results))
				g.tasks("s", "A", "B", "C", "D", "E")
				m.gets("A", "B", "C", "D", "E")
				for name, made := range results {
					g.settle(m.held[name], job.OK, func(s *engine.Settle) { s.Result = made })
				}
				var last int64
				for range 2 {
					list, _, _, err := g.part.Grid.Collect(g.Context(), "s", 0, 9, func(int) error { return nil })
					if err != nil || len(list) != len(results) {
						g.Fatalf("%d results, %v", len(list), err)
					}
					for _, got := range list {
						last = max(last, got.Number)
						name := g.names[got.Job.ID]
						want := results[name]
						alone, err := g.Result(got.Job)
						if !reflect.DeepEqual(got.Payload, want) || !reflect.DeepEqual(alone, want) || err != nil {
							g.Errorf("%s made %q: collected is %q, and read %q (%v)", name, want, got.Payload, alone, err)
						}
						kept := got.Job.Result()
						if (kept == nil) != (want == nil) || kept != nil && (int(kept.Size) != len(want) || kept.Ref.IsZero() != (len(want) <= 256)) {
							g.Errorf("%s made %d bytes, kept as %+v", name, len(want), kept)
						}
					}
					g.Restart(job.Second)
				}
				g.ack("s", last)
				for name := range results {
					g.expect(name, job.None)
				}
			}, on)
		})
	}
}
