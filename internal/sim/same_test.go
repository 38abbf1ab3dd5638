package sim_test

import "testing"

// The race detector lets goroutines that are ready at the same moment go in
// another order each time; a history must not notice (see disk.pause).
func TestTheSameSeedIsTheSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= 25; seed++ {
		plan := planOf(seed)
		a, b := play(t, seed, plan, noFault, newCoverage()), play(t, seed, plan, noFault, newCoverage())
		if a.hash == b.hash {
			continue
		}
		for i := range min(len(a.lines), len(b.lines)) {
			if a.lines[i] != b.lines[i] {
				t.Fatalf("seed %d, line %d:\n%s\n%s", seed, i, a.lines[i], b.lines[i])
			}
		}
		t.Fatalf("seed %d: %d lines, then %d", seed, len(a.lines), len(b.lines))
	}
}
