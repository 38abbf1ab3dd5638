package mem_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/storetest"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

// count writes the n-th transaction: a row of its own, and how many there are.
func count(t *testing.T, s *mem.Store, n int64, durable bool) (store.Commit, error) {
	t.Helper()
	return s.Update(t.Context(), func(tx store.Tx) error {
		if durable {
			tx.Durable()
		}
		return errors.Join(
			tx.Set(&job.Reserve{Name: "all", Next: n}),
			tx.Set(&job.Reserve{Name: fmt.Sprint(n), Next: n}),
		)
	})
}

// counted returns how many transactions the store kept: always the first ones.
func counted(t *testing.T, s *mem.Store) int64 {
	t.Helper()
	var n int64
	err := s.View(t.Context(), func(r store.Reader) error {
		row, err := r.Row(job.Reserves, "all")
		if all, ok := row.(*job.Reserve); ok {
			n = all.Next
		}
		list, errRows := r.Rows(job.Reserves, "", 1000)
		if len(list) != int(min(n, 1)+n) {
			t.Errorf("%d transactions left %d rows", n, len(list))
		}
		return errors.Join(err, errRows)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantUnavailable(t *testing.T, what string, err, cause error) {
	t.Helper()
	if job.KindOf(err) != job.Unavailable || cause != nil && !errors.Is(err, cause) {
		t.Errorf("%s: got %v, want an error of kind Unavailable because of %v", what, err, cause)
	}
}

// wantDown expects that the store refuses everything.
func wantDown(t *testing.T, s *mem.Store, cause error) {
	t.Helper()
	_, err := count(t, s, 0, true)
	wantUnavailable(t, "Update", err, cause)
	wantUnavailable(t, "View", s.View(t.Context(), func(store.Reader) error { return nil }), cause)
	_, err = s.Payloads(job.ID{1})
	wantUnavailable(t, "Payloads", err, cause)
	wantUnavailable(t, "Sync", s.Sync(), cause)
}

func reopen(t *testing.T, s *mem.Store) {
	t.Helper()
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Check(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// history commits transactions, and waits for some of them. It returns how
// many are safe for sure, and the commits nobody waited for.
func history(t *testing.T, s *mem.Store, rng *rand.Rand, from int64) (last, safe int64, unsure []store.Commit) {
	t.Helper()
	last = from
	for range rng.IntN(20) {
		last++
		durable := rng.IntN(2) == 0
		c, err := count(t, s, last, durable)
		if err != nil {
			t.Fatal(err)
		}
		switch wait := rng.IntN(3) == 0; {
		case wait && durable:
			safe, unsure = last, nil
			fallthrough
		case wait:
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
		case durable:
			unsure = append(unsure, c)
		}
	}
	return last, safe, unsure
}

func TestPowerCutKeepsAllThatWasWaitedForAndSomeOfTheRest(t *testing.T) {
	kept, lost := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := mem.Open(mem.Options{})
		var from int64
		for range 4 {
			last, safe, unsure := history(t, s, rng, from)
			s.PowerCut(rng)
			wantDown(t, s, nil)
			reopen(t, s)
			n := counted(t, s)
			if n < max(safe, from) || n > last {
				t.Fatalf("seed %d: %d transactions, %d of them safe, left %d", seed, last, safe, n)
			}
			for _, c := range unsure {
				wantUnavailable(t, "Wait after the cut", c.Wait(), nil)
			}
			kept, lost, from = kept+int(n-max(safe, from)), lost+int(last-n), n
		}
	}
	if kept < 100 || lost < 100 {
		t.Errorf("too few cuts in between: %d transactions were kept by luck, %d were lost", kept, lost)
	}
}

func TestWaitMakesEverythingBeforeItSafe(t *testing.T) {
	s := mem.Open(mem.Options{})
	first, err := count(t, s, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = count(t, s, 2, false); err != nil {
		t.Fatal(err)
	}
	third, err := count(t, s, 3, true)
	if err != nil {
		t.Fatal(err)
	}
	if err = third.Wait(); err != nil {
		t.Fatal(err)
	}
	s.PowerCut(rand.New(rand.NewPCG(1, 1)))
	if err = errors.Join(first.Wait(), third.Wait()); err != nil {
		t.Errorf("what is safe stays safe: %v", err)
	}
	reopen(t, s)
	if n := counted(t, s); n != 3 {
		t.Errorf("%d of 3 transactions are left", n)
	}
}

func TestSyncAndCloseMakeEverythingSafe(t *testing.T) {
	for name, end := range map[string]func(s *mem.Store) error{"Sync": (*mem.Store).Sync, "Close": (*mem.Store).Close} {
		s := mem.Open(mem.Options{})
		c, err := count(t, s, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(end(s), c.Wait()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		reopen(t, s)
		if n := counted(t, s); n != 1 {
			t.Errorf("%s: %d of 1 transactions are left", name, n)
		}
	}
}

func TestReopenLosesWhatIsNotDurable(t *testing.T) {
	s := mem.Open(mem.Options{})
	for range 2 { // the second time with the state of the first Reopen
		c, err := count(t, s, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		reopen(t, s)
		wantUnavailable(t, "Wait", c.Wait(), nil)
		if n := counted(t, s); n != 0 {
			t.Errorf("%d transactions are left, nobody waited for one", n)
		}
	}
}

func TestFailNextCommitFailsAtUpdateOrAtWaitAndItsOutcomeIsUnknown(t *testing.T) {
	full := errors.New("disk full")
	seen := map[string]int{}
	for seed := range uint64(60) {
		s := mem.Open(mem.Options{Rand: rand.New(rand.NewPCG(seed, 0))})
		c, err := count(t, s, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		if err = c.Wait(); err != nil {
			t.Fatal(err)
		}
		s.FailNextCommit(full)
		how := "Update"
		if c, err = count(t, s, 2, true); err == nil {
			how = "Wait"
			if _, err = count(t, s, 3, false); err != nil {
				t.Errorf("a transaction before the Wait that fails: %v", err)
			}
			err = c.Wait()
		}
		wantUnavailable(t, how, err, full)
		wantDown(t, s, full)
		reopen(t, s)
		n := counted(t, s)
		seen[fmt.Sprintf("%s fails, %d are left", how, n)]++
		if c, err = count(t, s, n+1, true); err != nil || c.Wait() != nil {
			t.Errorf("after Reopen: %v", err)
		}
	}
	for _, want := range []string{
		"Update fails, 1 are left", "Update fails, 2 are left",
		"Wait fails, 1 are left", "Wait fails, 2 are left", "Wait fails, 3 are left",
	} {
		if seen[want] == 0 {
			t.Errorf("never happened: %s (%v)", want, seen)
		}
	}
	if len(seen) != 5 {
		t.Errorf("something else happened: %v", seen)
	}
}

func TestAnAbortedTransactionDoesNotUseUpAnInjectedFailure(t *testing.T) {
	s, boom := mem.Open(mem.Options{}), errors.New("boom")
	s.FailNextCommit(errors.New("disk full"))
	if _, err := s.Update(t.Context(), func(store.Tx) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	c, err := count(t, s, 1, true)
	if err == nil {
		err = c.Wait()
	}
	wantUnavailable(t, "the next one", err, nil)
}
