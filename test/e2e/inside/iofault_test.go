package inside

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
)

var (
	rounds = flag.Int("rounds", 2, "rounds of I/O errors for each kind of operation (nightly: 30)")
	seed   = flag.Uint64("seed", 0, "seed of everything random; 0 = a new one")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	_ = flag.Set("test.parallel", "8") // they mostly wait for the server to try again
	m.Run()
}

// sieves say which operations fail, and how many at most.
var sieves = []struct {
	name string
	make func(kind string, rng *rand.Rand) step
}{
	{"one", func(kind string, rng *rand.Rand) step {
		k := 1 + rng.IntN(6)
		return step{kind, 1, func(n int) bool { return n == k }}
	}},
	{"every other", func(kind string, _ *rand.Rand) step {
		return step{kind, 3, func(n int) bool { return n%2 == 0 }}
	}},
	{"some at random", func(kind string, rng *rand.Rand) step {
		return step{kind, 1 + rng.IntN(3), func(int) bool { return rng.IntN(4) == 0 }}
	}},
}

// TestNothingAcknowledgedIsLostByAFailingDisk lets operations of the file
// system fail under load, while the server runs and while it opens its store
// again. It answers 503 and heals by itself; what it acknowledged is there,
// after the errors and after a power cut that follows them (I1, I4, I5).
func TestNothingAcknowledgedIsLostByAFailingDisk(t *testing.T) {
	for k, kind := range []string{opWrite, opTorn, opSync, opCreate, opRemove, opRead, opOpen, opList} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(*seed, uint64(k)))
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the dice were those of -seed %d", *seed)
				}
			})
			disk := vfs.NewCrashableMem()
			l, hit := newLedger(), 0
			for round := range *rounds {
				sieve := sieves[(k+round)%len(sieves)]
				faults := newPlan()
				s := start(t, options{fs: &faultFS{disk, faults}})
				hit += failUnderLoad(t, s, l, faults, sieve.make(kind, rng), rng)
				l.audit(s)
				s.stop()
				disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rand.New(rand.NewPCG(rng.Uint64(), 5))})
				s = start(t, options{fs: disk})
				l.audit(s)
				s.stop()
				if t.Failed() {
					t.Fatalf("in round %d, %s", round, sieve.name)
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Logf("%d operations failed, %d answers; refusals: %v", hit, l.answers.n, l.refusals)
			if hit == 0 {
				t.Error("no operation failed")
			}
		})
	}
}

// failUnderLoad loads a server, lets operations fail, and waits until it works
// again. It returns how many failed.
func failUnderLoad(t *testing.T, s *stack, l *ledger, faults *plan, errors step, rng *rand.Rand) int {
	t.Helper()
	some := l.answers.after(20)
	leave := l.work(s, rng)
	defer leave()
	wait(t, "the load begins", some)
	switch errors.kind {
	case opWrite, opTorn, opSync:
		faults.arm(errors)
	default: // of what a server does when it opens its store: a failed sync makes it
		faults.arm(step{opSync, 1, func(int) bool { return true }}, errors)
	}
	wait(t, "the errors begin", faults.begun)
	select { // what is on its way without a commit is less than 50 answers
	case <-faults.over:
	case <-l.answers.after(50):
	case <-time.After(patience):
		t.Fatal("the load came to a halt while operations fail")
	}
	hit := faults.disarm(errors.kind)
	s.ready()
	wait(t, "the load goes on", l.answers.after(50))
	return hit
}

func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
	}
}

// TestAnErrorAtTheStartIsToldAndHarmsNothing lets, one start after the other,
// each single operation of a start fail. The server starts all the same, or
// says what failed and does not call it damage; the next start has everything.
func TestAnErrorAtTheStartIsToldAndHarmsNothing(t *testing.T) {
	for _, kind := range []string{opWrite, opTorn, opSync, opCreate, opRemove, opRead, opOpen, opList} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewMem()
			l := newLedger()
			s := start(t, options{fs: disk})
			leave := l.work(s, rand.New(rand.NewPCG(*seed, 7)))
			wait(t, "the load", l.answers.after(30))
			leave()
			s.stop()
			refused, started := 0, 0
			for at := 1; ; at++ {
				faults := newPlan()
				faults.arm(step{kind, 1, func(n int) bool { return n == at }})
				s, err := open(t, options{fs: &faultFS{disk, faults}})
				hit := faults.disarm(kind)
				switch {
				case err != nil:
					refused++
					if hit == 0 || job.KindOf(err) == job.Corrupt || err.Error() == "" {
						t.Errorf("operation %d failed, and the server says: %v", at, err)
					}
				default:
					started++
					s.ready()
					s.stop()
				}
				s = start(t, options{fs: disk})
				l.audit(s)
				s.stop()
				if hit == 0 {
					break // a start has no more of them
				}
				if t.Failed() || at == 500 {
					t.Fatalf("at operation %d", at)
				}
			}
			t.Logf("%d starts were refused, %d went well all the same", refused, started)
		})
	}
}
