package mem_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/storetest"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

func TestExercise(t *testing.T) {
	for _, o := range []mem.Options{{}, {Twice: true}} {
		t.Run(fmt.Sprintf("twice %t", o.Twice), func(t *testing.T) {
			storetest.Exercise(t, func(t *testing.T) store.Store { return mem.Open(o) })
		})
	}
}

func TestCompare(t *testing.T) {
	for _, seed := range storetest.Seeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			storetest.Compare(t, seed, mem.Open(mem.Options{}), mem.Open(mem.Options{Twice: true}))
		})
	}
}

func TestTimeStandsStillWhileTheClockGoesBack(t *testing.T) {
	clock := []job.Millis{5, 9, 2, 8, 10}
	s := mem.Open(mem.Options{Now: func() (now job.Millis) {
		now, clock = clock[0], clock[1:]
		return now
	}})
	for _, want := range []job.Millis{5, 9, 9, 9, 10} {
		_ = s.View(t.Context(), func(r store.Reader) error {
			if r.Now() != want {
				t.Errorf("got %d, want %d", r.Now(), want)
			}
			return nil
		})
	}
}

func TestTwiceRunsATransactionInVainFirst(t *testing.T) {
	s, runs := mem.Open(mem.Options{Twice: true}), 0
	_, err := s.Update(t.Context(), func(tx store.Tx) error {
		runs++
		row, err := tx.Row(job.Reserves, "n")
		if row != nil {
			t.Error("the first run left something behind")
		}
		return errors.Join(err, tx.Set(&job.Reserve{Name: "n"}))
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func TestAJobChangedBehindTheStoresBackIsRefused(t *testing.T) {
	s, id := mem.Open(mem.Options{}), job.ID{1}
	given := &job.Job{ID: id, State: job.Ready}
	_, err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Write(nil, given) })
	if err != nil {
		t.Fatal(err)
	}
	given.Priority = 7
	_, err = s.Update(t.Context(), func(tx store.Tx) error {
		read, err := tx.Get(id)
		if err != nil || read.Priority != 0 {
			t.Errorf("the store kept what it was given: %+v, %v", read, err)
		}
		read.Priority = 8
		return tx.Write(read, nil)
	})
	if job.KindOf(err) != job.Internal || err == nil {
		t.Errorf("got %v, want an error of kind Internal", err)
	}
}

func TestCheckSeesWhatTheContractDoesNotShow(t *testing.T) {
	s := mem.Open(mem.Options{})
	row := &job.Reserve{Name: "n"}
	_, err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Set(row) })
	if err != nil || s.Check() != nil {
		t.Fatalf("%v, %v", err, s.Check())
	}
	row.Name = "m"
	if s.Check() == nil {
		t.Error("a row that was changed after it was set is not seen")
	}
}

func TestFreeIsWhatTheOptionsSay(t *testing.T) {
	s := mem.Open(mem.Options{Free: func() (int64, int64) { return 1, 2 }})
	if free, total, err := s.Free(); free != 1 || total != 2 || err != nil {
		t.Errorf("got %d, %d, %v", free, total, err)
	}
	if free, _, err := mem.Open(mem.Options{}).Free(); free == 0 || err != nil {
		t.Errorf("by default: got %d, %v", free, err)
	}
}
