package embedded

import (
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// A near map answers as a Go map does, whether its buckets have room or not.
func TestNearIsAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	near, plain := newNear[int](64), map[job.ID]int{}
	ids := job.NewIDs(job.ID{}, rnd.Uint64)
	var known []job.ID
	spilled := false
	for i := range 20_000 {
		if len(known) == 0 || rnd.IntN(3) > 0 {
			known = append(known, ids.Next(job.Millis(i/50)))
		}
		id := known[rnd.IntN(len(known))]
		switch dice := rnd.IntN(400); {
		case dice > 100:
			near.set(id, i)
			plain[id] = i
		case dice > 0:
			near.drop(id)
			delete(plain, id)
		default: // as those that went out together
			for _, id := range known[:len(known)/2] {
				near.drop(id)
				delete(plain, id)
			}
			known = known[len(known)/2:]
		}
		spilled = spilled || len(near.spill) > 0
		got, ok := near.get(id)
		if want, there := plain[id]; got != want || ok != there {
			t.Fatalf("step %d: id %s is %d, %v; in a map it is %d, %v", i, id, got, ok, want, there)
		}
	}
	for id, want := range plain {
		if got, ok := near.get(id); got != want || !ok {
			t.Fatalf("id %s is %d, %v; in a map it is %d", id, got, ok, want)
		}
	}
	if !spilled {
		t.Fatal("no bucket was ever full: the test does not test what it should")
	}
}

// Before the first value there is nothing, and nothing to drop.
func TestNearStartsEmpty(t *testing.T) {
	near := newNear[int](64)
	near.drop(job.ID{1})
	if v, ok := near.get(job.ID{1}); ok || v != 0 {
		t.Fatalf("an empty map has %d, %v", v, ok)
	}
}
