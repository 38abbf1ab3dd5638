package sim_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/store/storetest"
)

var (
	seedsFlag = flag.Uint64("seeds", 100, "how many histories TestSimulation plays")
	firstFlag = flag.Uint64("first", 1, "the seed of the first one")
	timeFlag  = flag.Duration("time", 0, "no further history begins after this time, once seedsLeast were played; 0: no end")
)

// seedsLeast is how many histories a run plays however slow the machine is.
const seedsLeast = 500

// seedsFull is the size of a run that must have seen everything.
const seedsFull = 6_000

const workers = 2

// TestSimulation plays one history for every seed, or as many as its time
// allows; with -seed it replays one and prints it.
func TestSimulation(t *testing.T) {
	for _, seed := range storetest.Seeds(0) {
		replay(t, seed)
		return
	}
	var next, played, steps atomic.Uint64
	next.Store(*firstFlag - 1)
	last := *firstFlag - 1 + *seedsFlag
	var mu sync.Mutex // guards total
	total := newCoverage()
	began := time.Now()
	more := func() bool {
		return *timeFlag == 0 || played.Load() < min(seedsLeast, *seedsFlag) || time.Since(began) < *timeFlag
	}
	t.Run("seeds", func(t *testing.T) {
		for i := range workers {
			t.Run(fmt.Sprint("worker ", i+1), func(t *testing.T) {
				t.Parallel()
				own := newCoverage()
				for seed := next.Add(1); seed <= last && !t.Failed() && more(); seed = next.Add(1) {
					played.Add(1)
					plan := planOf(seed)
					steps.Add(uint64(len(plan)))
					if r := play(t, seed, plan, noFault, own); r.wrong != nil {
						next.Store(last) // the other workers need not go on
						t.Error(report(t, seed, plan, noFault, r))
					}
				}
				mu.Lock()
				defer mu.Unlock()
				total.add(own)
			})
		}
	})
	if t.Failed() {
		return
	}
	t.Logf("%d histories, %d steps\n\n%s", played.Load(), steps.Load(), total)
	if missed := total.missed(); len(missed) > 0 && played.Load() >= seedsFull {
		t.Errorf("never reached: %s", strings.Join(missed, ", "))
	}
}

// report shrinks a history that failed and tells of it.
func report(t *testing.T, seed uint64, plan []step, f fault, r result) string {
	t.Helper()
	least, last := shrink(t, seed, plan, f, r)
	return story(seed, plan, least, last)
}

// story is the report of a history that was shrunk to the least of its steps.
func story(seed uint64, plan, least []step, last result) string {
	return fmt.Sprintf("seed %d broke %s\n\nshrunk from %d steps to %d:\n%s\n\nreplay with: make sim SEED=%d",
		seed, last.wrong, len(plan), len(least), strings.Join(last.lines, "\n"), seed)
}

func replay(t *testing.T, seed uint64) {
	plan := planOf(seed)
	r := play(t, seed, plan, noFault, newCoverage())
	t.Logf("seed %d, %d steps, trace %016x\n%s", seed, len(plan), r.hash, strings.Join(r.lines, "\n"))
	if r.wrong != nil {
		t.Error(report(t, seed, plan, noFault, r))
	}
}

// Each fault must be found, be told with its law, and be shrunk to a few steps
// that break the same law again.
func TestAFaultIsFoundShrunkAndTold(t *testing.T) {
	for f, want := range map[fault]struct {
		law   string
		steps int    // at most
		first uint64 // seed of the search
	}{
		earlyAnswer:   {"I5", 4, 1},
		chargedTwice:  {"I4", 6, 1},
		forgottenRow:  {"I1", 6, 6},
		rottenPayload: {"I8", 4, 1},
	} {
		t.Run(f.String(), func(t *testing.T) {
			for seed := want.first; seed < want.first+300; seed++ {
				plan := planOf(seed)
				r := play(t, seed, plan, f, newCoverage())
				if r.wrong == nil || !strings.Contains(r.wrong.law, want.law) {
					continue // not reached in this history, or another law was broken first
				}
				least, last := shrink(t, seed, plan, f, r)
				told := story(seed, plan, least, last)
				again := play(t, seed, least, f, newCoverage())
				switch {
				case len(least) > want.steps || len(least) == 0:
					t.Errorf("shrunk to %d steps:\n%s", len(least), told)
				case last.wrong == nil || again.wrong == nil || again.hash != last.hash || again.wrong.law != r.wrong.law:
					t.Errorf("the shrunk history says %v, then %v", last.wrong, again.wrong)
				case !strings.Contains(told, last.wrong.String()) || !strings.Contains(told, fmt.Sprint("make sim SEED=", seed)):
					t.Errorf("the report leaves out what is wrong or how to replay it:\n%s", told)
				}
				t.Logf("found by seed %d\n%s", seed, told)
				return
			}
			t.Errorf("300 histories did not find it")
		})
	}
}
