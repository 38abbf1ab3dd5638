package fold_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Batches: zizq.md 1.16, core.md section 9.

var errFold = job.Errorf(job.Unprocessable, "batch fold: it failed")

// appends is a folder without expressions: when is the longest payload that
// takes another one in, and fold what stands between the two.
func appends(_ context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
	var most int
	_, _ = fmt.Sscan(b.When, &most)
	switch {
	case len(existing) >= most:
		return nil, false, nil
	case string(newcomer) == "bad":
		return nil, false, errFold
	}
	return slices.Concat(existing, []byte(b.Fold), newcomer), true, nil
}

func folding(r *rig) { r.Folder = appends }

func batched(key string, most int) func(*engine.NewJob) {
	return func(n *engine.NewJob) {
		n.Job.Extras = &job.Extras{Batch: &job.Batch{Key: key, When: fmt.Sprint(most), Fold: "+"}}
	}
}

// payload wants a job to be there with a payload.
func (r *rig) payload(id job.ID, want string) {
	r.Helper()
	j, body, err := r.Get(r.Context(), id)
	if err != nil || string(body) != want || int(j.PayloadSize) != len(want) {
		r.Fatalf("the payload is %q, want %q: %+v, %v", body, want, j, err)
	}
}

func TestAWaitingJobTakesInThoseThatFollow(t *testing.T) { // zizq.md 1.16
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", batched("k", 100))
		r.AddAll("q", "z")
		before := r.Job("a")
		added := r.PutAgain(newNamed("other", "b", batched("k", 0), func(n *engine.NewJob) { n.Job.Priority = 1 }))[0]
		if !added.Folded || added.Duplicate || added.ID != id || added.Job.Queue != "q" || added.Job.PayloadSize != 3 {
			r.Fatalf("%+v", added)
		}
		r.PutAgain(newNamed("q", "c", batched("k", 0)))
		r.payload(id, "a+b+c")
		after := *r.Job("a")
		if after.Payload == before.Payload {
			r.Error("the payload was changed in place")
		}
		if after.Payload, after.PayloadSize = before.Payload, before.PayloadSize; fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", *before) {
			r.Errorf("more than the payload changed:\n%+v\n%+v", *before, after)
		}
		if s, folded := r.Stats(), r.Part.Folds.Folded(); s.Put != 2 || folded != 2 || s.Duplicates != 0 {
			r.Errorf("%+v, %d folded", s, folded)
		}
		r.Call(id, "a+b+c")
		r.Anonymous(9).Gets("a+b+c", "z") // its place is what it was
	}, folding)
}

func TestAJobThatWasTakenTakesNobodyInAnyMore(t *testing.T) { // zizq.md 1.16
	for name, back := range map[string]func(r *rig, s *stream){
		"taken":   func(*rig, *stream) {},
		"retry":   func(_ *rig, s *stream) { s.Fails("a", func(s *engine.Settle) { s.RetryIn = 1 }) },
		"requeue": func(_ *rig, s *stream) { s.End() },
		"restart": func(r *rig, _ *stream) { r.Restart(0) },
		"crash":   func(r *rig, _ *stream) { r.PowerCut() },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				a := r.Add("q", "a", batched("k", 100))
				s := r.Anonymous(1, "q")
				s.Gets("a")
				r.restarted(name, func() { back(r, s) })
				added := r.PutAgain(newNamed("p", "b", batched("k", 100)))[0]
				if added.Folded || added.ID == a {
					r.Fatalf("%+v", added)
				}
				r.PutAgain(newNamed("p", "c", batched("k", 100)))
				r.payload(a, "a")
				r.payload(added.ID, "b+c")
			}, folding)
		})
	}
}

// restarted does what brings a job back. A take is not synced; what a crash
// would forget is the take, so something durable follows it.
func (r *rig) restarted(how string, f func()) {
	if how == "crash" {
		r.AddAll("aside", "x")
	}
	f()
}

func TestAJobThatWaitsThroughARestartTakesInOnAfterIt(t *testing.T) {
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", batched("k", 100))
		r.PutAgain(newNamed("q", "b", batched("k", 0)))
		r.PowerCut()
		r.PutAgain(newNamed("q", "c", batched("k", 0)))
		r.payload(id, "a+b+c")
	}, folding)
}

func TestAConditionThatDoesNotHoldSealsTheBatch(t *testing.T) { // zizq.md 1.16
	scenario(t, func(r *rig) {
		a := r.Add("q", "a", batched("k", 3))
		r.PutAgain(newNamed("q", "b", batched("k", 3)))
		c := r.PutAgain(newNamed("q", "c", batched("k", 3)))[0]
		d := r.PutAgain(newNamed("q", "d", batched("k", 3)))[0]
		if c.Folded || !d.Folded || d.ID != c.ID {
			r.Errorf("%+v %+v", c, d)
		}
		r.payload(a, "a+b")
		r.payload(c.ID, "c+d")
	}, folding)
}

func TestOnlyWhatIsDueAtOnceFolds(t *testing.T) { // zizq.md 1.16
	scenario(t, func(r *rig) {
		later := r.PutAgain(newNamed("q", "a", batched("k", 9), due(r.Now()+job.Hour)))[0]
		b := r.PutAgain(newNamed("q", "b", batched("k", 9)))[0]
		after := r.PutAgain(newNamed("q", "c", batched("k", 9), due(r.Now()+job.Hour)))[0]
		past := r.PutAgain(newNamed("q", "d", batched("k", 9), due(r.Now()-1)))[0]
		if later.Folded || b.Folded || after.Folded || !past.Folded || past.ID != b.ID {
			r.Errorf("%+v %+v %+v %+v", later, b, after, past)
		}
		if later.Job.Extras.Batch == nil {
			r.Error("a scheduled job lost its batch")
		}
		r.Pass(2 * job.Hour)
		if e := r.PutAgain(newNamed("q", "e", batched("k", 9)))[0]; e.ID != b.ID {
			r.Errorf("one that was scheduled collects: %+v", e)
		}
	}, folding)
}

func TestJobsOfOneCallFoldIntoEachOther(t *testing.T) { // zizq.md 1.8
	scenario(t, func(r *rig) {
		a := r.Add("q", "a", batched("k", 5))
		added := r.PutAgain(
			newNamed("q", "b", batched("k", 9)),
			newNamed("q", "x", batched("l", 9)),
			newNamed("q", "c", batched("k", 9)), // a+b+c is full after it
			newNamed("q", "d", batched("k", 9)),
			newNamed("q", "plain"),
			newNamed("q", "e", batched("k", 9)),
			newNamed("q", "y", batched("l", 9)),
		)
		for i, want := range []struct {
			folded bool
			id     job.ID
		}{{true, a}, {false, added[1].ID}, {true, a}, {false, added[3].ID}, {false, added[4].ID}, {true, added[3].ID}, {true, added[1].ID}} {
			if got := added[i]; got.Folded != want.folded || got.ID != want.id || got.Job == nil || got.Job.ID != want.id {
				r.Errorf("%d: %+v", i, got)
			}
		}
		r.payload(a, "a+b+c")
		r.payload(added[3].ID, "d+e")
		r.payload(added[1].ID, "x+y")
		if n, _ := r.Count(r.Context(), all); n != 4 {
			r.Errorf("%d jobs", n)
		}
		if f := r.PutAgain(newNamed("q", "f", batched("k", 9)))[0]; f.ID != added[3].ID {
			r.Errorf("%+v", f)
		}
	}, folding)
}

func TestAFoldThatFailsRefusesItsOwnCallOnly(t *testing.T) { // zizq.md 9, defect 19
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", batched("k", 99))
		var done sync.WaitGroup
		failed, stranger := error(nil), error(nil)
		done.Go(func() {
			_, failed = r.Put(r.Context(), []engine.NewJob{newNamed("q", "b", batched("k", 9)), newNamed("q", "bad", batched("k", 9)), newNamed("q", "s")})
		})
		done.Go(func() { _, stranger = r.Put(r.Context(), []engine.NewJob{newNamed("q", "t")}) })
		done.Wait()
		if job.KindOf(failed) != job.Unprocessable || stranger != nil {
			r.Errorf("%v; a stranger: %v", failed, stranger)
		}
		r.payload(id, "a")
		if n, _ := r.Count(r.Context(), all); n != 2 {
			r.Errorf("%d jobs", n)
		}
	}, folding)
}

func TestAPlanThatDoesNotHoldAnyMoreIsMadeAgain(t *testing.T) { // core.md section 9: compare-and-set
	for name, change := range map[string]func(r *rig){
		"taken":   func(r *rig) { r.Anonymous(1).Gets("a") },
		"deleted": func(r *rig) { _, _ = r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"]) },
		"put away": func(r *rig) {
			r.Operate("a", rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.ReadyAt = r.Now() + job.Hour }})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var folds atomic.Int32
			var at *rig
			scenario(t, func(r *rig) {
				at = r
				r.Add("q", "a", batched("k", 99))
				added := r.PutAgain(newNamed("q", "b", batched("k", 99)))[0]
				if added.Folded || folds.Load() != 1 {
					r.Fatalf("%+v after %d evaluations", added, folds.Load())
				}
				r.payload(added.ID, "b")
			}, func(r *rig) {
				r.Folder = func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
					folds.Add(1)
					change(at)
					return appends(ctx, b, existing, newcomer)
				}
			})
		})
	}
}

func TestABatchThatAlwaysChangesIsRefusedAfterAWhile(t *testing.T) {
	var at *rig
	rounds := 0
	name := func() string { return fmt.Sprint("a", rounds) }
	scenario(t, func(r *rig) {
		at = r
		r.Add("q", name(), batched("k", 99))
		for n := range 20 {
			r.Add("q", fmt.Sprint("a", n+1), batched("k", 99), due(r.Now()+job.Hour))
		}
		before, _ := r.Count(r.Context(), all)
		_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "b", batched("k", 99)), newNamed("q", "c")})
		if job.KindOf(err) != job.Unavailable || rounds != 10 {
			r.Errorf("%v after %d rounds", err, rounds)
		}
		if after, _ := r.Count(r.Context(), all); after != before-10 {
			r.Errorf("%d jobs, then %d", before, after)
		}
		if err := r.Ready(); err != nil {
			r.Error(err)
		}
	}, func(r *rig) {
		r.Folder = func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
			if _, err := at.Part.Desk.Do(ctx, job.Actor{}, desk.Delete, at.IDs[name()]); err != nil {
				at.Error(err)
			}
			rounds++
			at.Operate(name(), rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.ReadyAt, j.HoldsKey = 1, true }})
			return appends(ctx, b, existing, newcomer)
		}
	})
}

func TestManyFoldIntoOneJobAndNothingIsLost(t *testing.T) {
	scenario(t, func(r *rig) {
		id := r.Add("q", "0", batched("k", 9999))
		var done sync.WaitGroup
		for n := range 40 {
			done.Go(func() {
				added, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", fmt.Sprint(n+1), batched("k", 0))})
				if err != nil || !added[0].Folded {
					r.Errorf("%d: %+v, %v", n, added, err)
				}
			})
		}
		done.Wait()
		_, body, err := r.Get(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		parts := strings.Split(string(body), "+")
		seen := map[string]bool{}
		for _, p := range parts {
			seen[p] = true
		}
		if len(parts) != 41 || len(seen) != 41 {
			r.Errorf("%d parts, %d different: %s", len(parts), len(seen), body)
		}
	}, folding)
}

func TestACallThatWaitsForABatchMayBeBrokenOff(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	scenario(t, func(r *rig) {
		r.Add("q", "a", batched("k", 99))
		enter, leave = make(chan struct{}), make(chan struct{})
		slow := make(chan error)
		go func() {
			_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "b", batched("k", 9))})
			slow <- err
		}()
		<-enter
		ctx, stop := context.WithCancel(r.Context())
		broken := make(chan error)
		go func() {
			_, err := r.Put(ctx, []engine.NewJob{newNamed("q", "x", batched("other", 9)), newNamed("q", "c", batched("k", 9))})
			broken <- err
		}()
		synctest.Wait()
		stop()
		if err := <-broken; !errors.Is(err, context.Canceled) {
			r.Error(err)
		}
		r.AddAll("q", "stranger") // nobody else waits
		close(leave)
		if err := <-slow; err != nil {
			r.Error(err)
		}
		r.PutAgain(newNamed("q", "y", batched("other", 9))) // its lock is free
		r.payload(r.IDs["a"], "a+b")
	}, func(r *rig) {
		r.Folder = func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
			if string(newcomer) == "b" {
				close(enter)
				<-leave
			}
			return appends(ctx, b, existing, newcomer)
		}
	})
}

func TestARepeatedCallDoesNotFoldTwice(t *testing.T) { // the idempotency key goes first
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", batched("k", 99))
		for n := range 3 {
			added := r.PutAgain(newNamed("q", "b", keyed("i"), batched("k", 9)))[0]
			if added.ID != id || added.Folded != (n == 0) || added.Duplicate != (n > 0) {
				r.Errorf("%d: %+v", n, added)
			}
		}
		r.payload(id, "a+b")
		if _, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "b", keyed("i"), batched("l", 9))}); job.KindOf(err) != job.Exists {
			r.Errorf("the batch is content: %v", err)
		}
		twins := r.PutAgain(newNamed("q", "c", keyed("j"), batched("k", 9)), newNamed("q", "c", keyed("j"), batched("k", 9)))
		if !twins[0].Folded || !twins[1].Duplicate || twins[1].ID != id {
			r.Errorf("%+v", twins)
		}
		r.payload(id, "a+b+c")
	}, folding)
}

func TestAFoldStaysInsideTheBytesOfItsQueue(t *testing.T) { // core.md section 10
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxBytes = 8 })
		id := r.Add("q", "a", batched("k", 99))
		r.PutAgain(newNamed("other", "b", batched("k", 9)))
		r.TooMuch(newNamed("other", "longer", batched("k", 9)))
		r.payload(id, "a+b")
		if d := r.DepthOf("q"); d.Bytes != 3 {
			r.Errorf("%+v", d)
		}
	}, folding)
}

func TestWhatAJobTookInIsPushedOutWithIt(t *testing.T) { // I9
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs, q.OnFull = 1, job.FullDropOldest })
		id := r.Add("q", "a", batched("k", 99))
		added := r.PutAgain(newNamed("q", "b", batched("k", 9)), newNamed("q", "c"))
		if !added[0].Folded || r.Expect("a", job.Dead).Reason != job.Evicted {
			r.Errorf("%+v", added)
		}
		r.payload(id, "a+b")
		if d := r.PutAgain(newNamed("p", "d", batched("k", 9)))[0]; d.Folded {
			r.Errorf("%+v", d)
		}
	}, folding)
}

func TestAJobThatExpiredTakesNobodyIn(t *testing.T) {
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", batched("k", 99), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + job.Minute })
		r.Clock.Step.Add(int64(job.Minute)) // the put comes before the clock's duties
		if b := r.PutAgain(newNamed("q", "b", batched("k", 9)))[0]; b.Folded || b.ID == id {
			r.Errorf("%+v", b)
		}
	}, folding)
}

func TestAnEngineWithoutAFolderRefusesBatches(t *testing.T) {
	scenario(t, func(r *rig) {
		if _, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "a", batched("k", 9))}); job.KindOf(err) != job.Invalid {
			r.Error(err)
		}
	})
}

// gated holds transactions up until its gate, if there is one, is opened.
type gated struct {
	store.Store
	gate atomic.Pointer[chan struct{}]
}

func (g *gated) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	if gate := g.gate.Load(); gate != nil {
		<-*gate
	}
	return g.Store.Update(ctx, fn)
}

func TestAFoldThatOvertookAnotherIsPlannedAgain(t *testing.T) { // core.md section 9: the payload must be the same
	st := &gated{}
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", batched("k", 99))
		gate := make(chan struct{})
		st.gate.Store(&gate)
		ctx, giveUp := context.WithCancel(r.Context())
		broken := make(chan error)
		go func() {
			_, err := r.Put(ctx, []engine.NewJob{newNamed("q", "b", batched("k", 9))})
			broken <- err
		}()
		synctest.Wait() // until it is on its way
		giveUp()        // nobody waits for it any more, and it goes on
		if err := <-broken; !errors.Is(err, context.Canceled) {
			r.Fatal(err)
		}
		done := make(chan engine.Added)
		go func() { done <- r.PutAgain(newNamed("q", "c", batched("k", 9)))[0] }()
		synctest.Wait()
		close(gate)
		if added := <-done; !added.Folded {
			r.Errorf("%+v", added)
		}
		r.payload(id, "a+b+c")
	}, folding, func(r *rig) {
		r.Around = func(s store.Store) store.Store { st.Store = s; return st }
	})
}
