package lock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/audit"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/lock"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/store"
)

// Named locks: spec/inbox.md decision 11, core.md section 4.

// rig is an engine with the part, new in each life.
type rig struct {
	*enginetest.Rig
	part  *lock.Locks
	audit *audit.Log
	desk  *desk.Desk
	turn  *turn.Turns
	max   int
}

func scenario(t *testing.T, f func(*rig), edits ...func(*rig)) {
	t.Helper()
	r := &rig{}
	enginetest.Scenario(t, func(*enginetest.Rig) { f(r) }, func(in *enginetest.Rig) {
		r.Rig = in
		for _, edit := range edits {
			edit(r)
		}
		in.Parts = func() []engine.Part {
			r.part, r.audit, r.desk, r.turn = &lock.Locks{Max: r.max}, &audit.Log{}, &desk.Desk{}, &turn.Turns{}
			return []engine.Part{r.audit, r.desk, r.part, r.turn}
		}
	})
}

// writes has the engine write something.
func (r *rig) writes() {
	r.Helper()
	n := engine.NewJob{Job: job.Job{Queue: "q", Type: "t", Priority: job.PriorityDefault, RetainDone: job.Unset, RetainDead: job.Unset}}
	if _, err := r.Put(r.Context(), []engine.NewJob{n}); err != nil {
		r.Fatal(err)
	}
}

// most is the lock-at-most of the reference's vectors.
const most = 300 * job.Second

// locks asks for a lock and wants it.
func (r *rig) locks(name, by string, edits ...func(*job.LockAsk)) lock.State {
	r.Helper()
	s, got := r.asks(name, by, edits...)
	if !got || s.Token.IsZero() || !s.Held || s.By != by {
		r.Fatalf("%s does not get the lock %s: %+v", by, name, s)
	}
	return s
}

// isKeptOut asks for a lock and wants to hear who has it, until when.
func (r *rig) isKeptOut(name, by, holder string, until job.Millis) {
	r.Helper()
	s, got := r.asks(name, by)
	if got || s.By != holder || s.Ends-r.Clock.Wall() != until {
		r.Fatalf("%s asks for %s: got %v, of %s for %s; want it with %s for %s", by, name, got, s.By, s.Ends-r.Clock.Wall(), holder, until)
	}
}

func (r *rig) asks(name, by string, edits ...func(*job.LockAsk)) (lock.State, bool) {
	r.Helper()
	ask := job.LockAsk{Name: name, By: by, Most: most}
	for _, edit := range edits {
		edit(&ask)
	}
	s, got, err := r.part.Take(r.Context(), ask)
	if err != nil {
		r.Fatal(err)
	}
	return s, got
}

func (r *rig) unlocks(s lock.State) {
	r.Helper()
	if _, err := r.part.Release(r.Context(), s.Name, s.Token); err != nil {
		r.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, want job.Kind) {
	t.Helper()
	if err == nil || job.KindOf(err) != want {
		t.Errorf("got %v, want kind %d", err, want)
	}
}

// fenced is what a run under a lock writes to: it takes no number below the
// highest it has seen, which is all that a fencing number asks of it.
type fenced struct {
	highest int64
	written []string
}

func (f *fenced) write(s lock.State, what string) error {
	if s.Fence < f.highest {
		return fmt.Errorf("%s writes under %d, and %d was there", s.By, s.Fence, f.highest)
	}
	f.highest = s.Fence
	f.written = append(f.written, what)
	return nil
}

// The three vectors of the reference (correlate.md section 4).
func TestTheLockVectorsOfTheReference(t *testing.T) {
	t.Run("A locks t=0 ends t=2, B at t=3 runs", func(t *testing.T) {
		scenario(t, func(r *rig) {
			a := r.locks("delivery", "A")
			r.Pass(2 * job.Second)
			r.unlocks(a)
			r.Pass(job.Second)
			if b := r.locks("delivery", "B"); b.Fence <= a.Fence {
				r.Errorf("B has %d after A's %d", b.Fence, a.Fence)
			}
		})
	})
	t.Run("A crashes t=1, B skips until t=300", func(t *testing.T) {
		scenario(t, func(r *rig) {
			began := r.Clock.Wall()
			r.locks("delivery", "A")
			r.Pass(job.Second)
			for range 59 {
				r.Pass(5 * job.Second)
				r.isKeptOut("delivery", "B", "A", most-(r.Clock.Wall()-began))
			}
			r.Pass(4*job.Second - 1)
			r.isKeptOut("delivery", "B", "A", 1)
			r.Pass(1)
			r.locks("delivery", "B")
		})
	})
	t.Run("A runs 400 s, B starts at 300, A is refused", func(t *testing.T) {
		scenario(t, func(r *rig) {
			var target fenced
			a := r.locks("delivery", "A")
			r.Pass(299 * job.Second)
			if err := target.write(a, "A at 299"); err != nil {
				r.Error(err)
			}
			r.Pass(job.Second)
			b := r.locks("delivery", "B")
			if err := target.write(b, "B at 300"); err != nil {
				r.Error(err)
			}
			r.Pass(100 * job.Second)
			if err := target.write(a, "A at 400"); err == nil {
				r.Error("A wrote after B")
			}
			_, err := r.part.Extend(r.Context(), "delivery", a.Token, most)
			wantKind(t, err, job.Superseded)
			_, err = r.part.Release(r.Context(), "delivery", a.Token)
			wantKind(t, err, job.Superseded)
			r.isKeptOut("delivery", "C", "B", 200*job.Second)
			if !slices.Equal(target.written, []string{"A at 299", "B at 300"}) {
				r.Error(target.written)
			}
		})
	})
}

// The answer to a grant may be lost: who asks the same again gets the same.
func TestAnAskForALockIsGrantedOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		by := func(request string) func(*job.LockAsk) {
			return func(l *job.LockAsk) { l.Request = request }
		}
		const one, two = "request number one", "request number two"
		a := r.locks("n", "A", by(one))
		again := func() {
			r.Helper()
			if s := r.locks("n", "A", by(one)); s.Token != a.Token || s.Fence != a.Fence || s.At != a.At || s.Until-s.Asked != a.Until-r.Clock.Steady() {
				r.Errorf("again it is %+v, and was %+v", *s.Lock, *a.Lock)
			}
		}
		again()
		r.Pass(100 * job.Second)
		again()
		if _, got := r.asks("n", "A", by(two)); got {
			r.Error("another request of the same owner got it too")
		}
		if _, got := r.asks("n", "B", by(one)); got {
			r.Error("another owner got it by the same request")
		}
		over := func() {
			r.Helper()
			_, _, err := r.part.Take(r.Context(), job.LockAsk{Name: "n", By: "A", Most: most, Request: one})
			wantKind(r.T, err, job.Superseded)
		}
		r.Pass(most - 100*job.Second)
		over() // its time ran out
		b := r.locks("n", "B", by(two))
		if b.Fence <= a.Fence {
			r.Errorf("B has %d after A's %d", b.Fence, a.Fence)
		}
		if _, got := r.asks("n", "A", by(one)); got {
			r.Error("A has it beside B")
		}
		r.unlocks(b)
		_, _, err := r.part.Take(r.Context(), job.LockAsk{Name: "n", By: "B", Most: most, Request: two})
		wantKind(r.T, err, job.Superseded) // given back
		if c := r.locks("n", "A", by(one)); c.Fence <= b.Fence {
			r.Errorf("a request that is forgotten got %d after %d", c.Fence, b.Fence)
		}
	})
	scenario(t, func(r *rig) { // over a crash too
		ask := func(l *job.LockAsk) { l.Request = "request number one" }
		a := r.locks("n", "A", ask)
		r.PowerCut()
		if s := r.locks("n", "A", ask); s.Token != a.Token || s.Fence != a.Fence {
			r.Errorf("after a power cut %+v, before %+v", *s.Lock, *a.Lock)
		}
		if _, err := r.part.Break(r.Context(), "n", job.Actor{}); err != nil {
			r.Fatal(err)
		}
		_, _, err := r.part.Take(r.Context(), job.LockAsk{Name: "n", By: "A", Most: most, Request: "request number one"})
		wantKind(r.T, err, job.Superseded)
	})
}

func TestALockStaysTakenForItsLeastTimeAfterItWasGivenBack(t *testing.T) {
	scenario(t, func(r *rig) {
		a := r.locks("n", "A", func(l *job.LockAsk) { l.Least = 30 * job.Second })
		r.Pass(2 * job.Second)
		r.unlocks(a)
		r.unlocks(a) // and again
		r.isKeptOut("n", "A", "A", 28*job.Second)
		r.Restart(20 * job.Second)
		r.isKeptOut("n", "B", "A", 8*job.Second)
		if s, err := r.part.Get(r.Context(), "n"); err != nil || s.Held || s.Free {
			r.Errorf("%+v, %v", s, err)
		}
		r.Pass(8 * job.Second)
		r.locks("n", "B")
	})
}

func TestARunningHolderKeepsItsLockByExtendingIt(t *testing.T) {
	scenario(t, func(r *rig) {
		a := r.locks("n", "A")
		for range 5 {
			r.Pass(200 * job.Second)
			s, err := r.part.Extend(r.Context(), "n", a.Token, most)
			if err != nil || s.Ends != r.Clock.Wall()+most || s.Fence != a.Fence || s.At != a.At {
				r.Fatalf("%+v, %v", s, err)
			}
		}
		r.isKeptOut("n", "B", "A", most)
		r.Pass(most)
		_, err := r.part.Extend(r.Context(), "n", a.Token, most)
		wantKind(t, err, job.Superseded) // nobody took it, and yet its holder had to stop
		r.locks("n", "B")
	})
}

func TestLocksAreCarriedOverRestartsAndPowerCuts(t *testing.T) {
	for name, again := range map[string]func(*rig){
		"restart":   func(r *rig) { r.Restart(0) },
		"power cut": func(r *rig) { r.PowerCut() },
		"the date was set ahead before the restart": func(r *rig) {
			r.Clock.Step.Add(int64(job.Hour))
			r.Pass(job.Millis(1500)) // the engine sees it
			r.writes()
			r.Restart(0)
		},
		"the date was set back before the restart": func(r *rig) {
			r.Clock.Step.Add(-int64(job.Hour))
			r.writes()
			r.Restart(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				a := r.locks("n", "A")
				free := r.locks("free", "A")
				r.unlocks(free)
				r.Pass(100 * job.Second)
				gone := 100 * job.Second
				again(r)
				if strings.HasPrefix(name, "the date was set ahead") {
					gone += 1500
				}
				s, got := r.asks("n", "B")
				left := s.Until - r.Clock.Steady()
				if got || left != most-gone {
					r.Fatalf("B gets it: %v; A has it for %s, want %s", got, left, most-gone)
				}
				if f := r.locks("free", "B"); f.Fence <= a.Fence || f.Fence <= free.Fence {
					r.Errorf("the number went from %d to %d", free.Fence, f.Fence)
				}
				r.Pass(left - 1)
				if _, err := r.part.Extend(r.Context(), "n", a.Token, most); err != nil {
					r.Error(err) // A never stopped
				}
			})
		})
	}
}

func TestWhoHasALockIsOnDiskBeforeTheAnswer(t *testing.T) { // core.md 4
	scenario(t, func(r *rig) {
		for i := range 8 {
			name := fmt.Sprint("n", i)
			a := r.locks(name, "A")
			r.PowerCut()
			r.isKeptOut(name, "B", "A", most)
			r.unlocks(a)
			r.PowerCut()
			r.locks(name, "B")
		}
	})
}

// A grant waits for the disk, and so does what is told of it when its request is said again.
func TestARequestThatIsSaidAgainIsNotAnsweredBeforeTheGrantIsOnDisk(t *testing.T) { // core.md 4
	var disk *slowDisk
	scenario(t, func(r *rig) {
		type answer struct {
			lock.State
			got bool
			err error
		}
		answers := make(chan answer, 2)
		for range 2 {
			go func() {
				s, got, err := r.part.Take(r.Context(), job.LockAsk{Name: "n", By: "A", Most: most, Request: "request number one"})
				answers <- answer{s, got, err}
			}()
			synctest.Wait() // the next one is a transaction of its own
		}
		if n := len(answers); n != 0 {
			r.Errorf("%d requests were answered before the grant was on disk", n)
		}
		close(disk.written)
		first, second := <-answers, <-answers
		if first.err != nil || second.err != nil || !first.got || !second.got || first.Token != second.Token {
			r.Errorf("%+v, %+v", first, second)
		}
	}, func(r *rig) {
		disk = &slowDisk{written: make(chan struct{})}
		r.Around = func(s store.Store) store.Store { disk.Store = s; return disk }
	})
}

// slowDisk does not say that a lock is on disk which is new, until it is written.
type slowDisk struct {
	store.Store
	written chan struct{}
}

func (d *slowDisk) Update(ctx context.Context, f func(store.Tx) error) (store.Commit, error) {
	var before, after []job.Row
	c, err := d.Store.Update(ctx, func(tx store.Tx) (err error) {
		if before, err = tx.Rows(job.Locks, "", 1); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		after, err = tx.Rows(job.Locks, "", 1)
		return err
	})
	if err != nil || len(before) == len(after) {
		return c, err
	}
	return slowCommit{c, d.written}, nil
}

type slowCommit struct {
	store.Commit
	written chan struct{}
}

func (c slowCommit) Wait() error { <-c.written; return c.Commit.Wait() }

func TestALockThatNobodyWantsIsForgottenAndItsNumberStillRises(t *testing.T) {
	scenario(t, func(r *rig) {
		a := r.locks("n", "A")
		r.Pass(most + job.LockKeep - 1)
		if list, err := r.part.List(r.Context(), "", 9); err != nil || len(list) != 1 || list[0].By != "A" || list[0].Held || !list[0].Free {
			r.Fatalf("%+v, %v", list, err)
		}
		r.Pass(1)
		if list, err := r.part.List(r.Context(), "", 9); err != nil || len(list) != 0 {
			r.Fatalf("%+v, %v", list, err)
		}
		_, err := r.part.Get(r.Context(), "n")
		wantKind(t, err, job.NotFound)
		_, err = r.part.Release(r.Context(), "n", a.Token)
		wantKind(t, err, job.NotFound)
		if b := r.locks("n", "B"); b.Fence <= a.Fence {
			r.Errorf("the number went from %d to %d", a.Fence, b.Fence)
		}
	})
}

func TestAnOperatorBreaksALockAndTheLogSaysWho(t *testing.T) {
	scenario(t, func(r *rig) {
		a := r.locks("n", "A", func(l *job.LockAsk) { l.Least = most })
		by := job.Actor{Name: "ann"}
		for range 2 { // the second time there is nothing to break
			if s, err := r.part.Break(r.Context(), "n", by); err != nil || !s.Free {
				r.Fatalf("%+v, %v", s, err)
			}
		}
		_, err := r.part.Extend(r.Context(), "n", a.Token, most)
		wantKind(t, err, job.Superseded)
		r.locks("n", "B")
		_, err = r.part.Break(r.Context(), "none", by)
		wantKind(t, err, job.NotFound)
		list, err := r.audit.List(r.Context(), job.ID{}, 9)
		if err != nil || len(list) != 1 || list[0].Action != "break lock" || list[0].Subject != "n of A" || list[0].By != by {
			r.Errorf("%+v, %v", list, err)
		}
	})
}

func TestWhatCannotBeALockIsRefusedAndNothingChanges(t *testing.T) {
	scenario(t, func(r *rig) {
		for _, c := range []struct {
			edit  func(*job.LockAsk)
			field string
		}{
			{func(l *job.LockAsk) { l.Name = "" }, "name"},
			{func(l *job.LockAsk) { l.Name = "a\x00b" }, "name"},
			{func(l *job.LockAsk) { l.Name = strings.Repeat("n", 256) }, "name"},
			{func(l *job.LockAsk) { l.By = "" }, "owner"},
			{func(l *job.LockAsk) { l.By = "a\nb" }, "owner"},
			{func(l *job.LockAsk) { l.By = strings.Repeat("o", 256) }, "owner"},
			{func(l *job.LockAsk) { l.Most = 0 }, "lock_at_most_ms"},
			{func(l *job.LockAsk) { l.Most = job.LockSpanMax + 1 }, "lock_at_most_ms"},
			{func(l *job.LockAsk) { l.Most = job.MaxMillis }, "lock_at_most_ms"},
			{func(l *job.LockAsk) { l.Least = -1 }, "lock_at_least_ms"},
			{func(l *job.LockAsk) { l.Least = l.Most + 1 }, "lock_at_least_ms"},
		} {
			ask := job.LockAsk{Name: "n", By: "A", Most: most}
			c.edit(&ask)
			_, _, err := r.part.Take(r.Context(), ask)
			if e, ok := err.(*job.Error); !ok || e.Kind != job.Invalid || e.Field != c.field { //nolint:errorlint // exactly that
				r.Errorf("%+v: %v", ask, err)
			}
		}
		if list, err := r.part.List(r.Context(), "", 9); err != nil || len(list) != 0 {
			r.Errorf("%+v, %v", list, err)
		}
		a := r.locks("n", "A")
		for _, span := range []job.Millis{0, -1, job.LockSpanMax + 1} {
			_, err := r.part.Extend(r.Context(), "n", a.Token, span)
			wantKind(t, err, job.Invalid)
		}
		_, err := r.part.Extend(r.Context(), "n", job.Token{9}, most)
		wantKind(t, err, job.Superseded)
		_, err = r.part.Extend(r.Context(), "none", a.Token, most)
		wantKind(t, err, job.NotFound)
		r.isKeptOut("n", "B", "A", most)
	})
}

func TestThereAreOnlySoManyLocks(t *testing.T) {
	scenario(t, func(r *rig) {
		for i := range 3 {
			r.locks(fmt.Sprint("n", i), "A", func(l *job.LockAsk) { l.Most = 1 })
		}
		_, _, err := r.part.Take(r.Context(), job.LockAsk{Name: "one more", By: "A", Most: 1})
		wantKind(t, err, job.OverLimit)
		r.Pass(1)
		r.locks("n1", "B", func(l *job.LockAsk) { l.Most = 1 }) // one that is there
		r.Restart(0)
		_, _, err = r.part.Take(r.Context(), job.LockAsk{Name: "one more", By: "A", Most: 1})
		wantKind(t, err, job.OverLimit)
		r.Pass(1 + job.LockKeep)
		r.locks("one more", "A")
	}, func(r *rig) { r.max = 3 })
}

// What is done under a lock is done only while it is held (inbox.md, decision 11).
func TestTurnsAreGivenOnlyUnderALockThatIsHeld(t *testing.T) {
	scenario(t, func(r *rig) {
		if _, err := r.desk.SetQueue(r.Context(), "in", func(q *job.Queue) error {
			q.Turns, q.Order = true, job.OrderStrict
			q.Protection.Fair = &job.FairShare{}
			return nil
		}, job.Actor{}); err != nil {
			r.Fatal(err)
		}
		for _, group := range []string{"a", "b"} {
			n := engine.NewJob{Job: job.Job{
				Queue: "in", Type: "t", Group: group, Priority: job.PriorityDefault, RetainDone: job.Unset, RetainDead: job.Unset,
			}}
			if _, err := r.Put(r.Context(), []engine.NewJob{n}); err != nil {
				r.Fatal(err)
			}
		}
		asks := func(u lock.Under) (groups []string, err error) {
			list, err := r.turn.Lease(r.Context(), turn.Options{Queue: "in", Once: true, Local: true, While: u.Held})
			for _, t := range list {
				groups = append(groups, t.Group)
			}
			return groups, err
		}
		took := func(u lock.Under, want string) {
			r.Helper()
			if groups, err := asks(u); err != nil || !slices.Equal(groups, []string{want}) {
				r.Errorf("given out: %v, %v; want %s", groups, err, want)
			}
		}
		refused := func(u lock.Under, want job.Kind) {
			r.Helper()
			groups, err := asks(u)
			if len(groups) > 0 {
				r.Errorf("given out: %v", groups)
			}
			wantKind(r.T, err, want)
			wantKind(r.T, r.part.Holds(r.Context(), u), want)
		}
		a := r.locks("inbox/in", "A")
		under := lock.Under{Lock: "inbox/in", Token: a.Token}
		took(under, "a")
		r.Pass(most)
		refused(under, job.Superseded) // its time ran out
		b := r.locks("inbox/in", "B")
		refused(under, job.Superseded)
		refused(lock.Under{Lock: "never", Token: a.Token}, job.NotFound)
		under.Token = b.Token
		if err := r.part.Holds(r.Context(), under); err != nil {
			r.Error(err)
		}
		took(under, "b")
		r.unlocks(b)
		refused(under, job.Superseded)
	})
}
