package sim_test

import (
	"math/rand/v2"
	"testing"
)

// step is one step of a plan: what kind, and the dice that choose the rest
// among what is there when it happens. So a plan with steps left out is a plan.
type step struct {
	kind int
	dice uint64
}

const stepsMin, stepsMax = 60, 100

// planOf draws the plan of a seed.
func planOf(seed uint64) []step {
	rng := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	plan := make([]step, stepsMin+rng.IntN(stepsMax-stepsMin+1))
	for i := range plan {
		at := rng.IntN(total)
		for kind, k := range kinds {
			if at -= k.weight; at < 0 {
				plan[i] = step{kind, rng.Uint64()}
				break
			}
		}
	}
	return plan
}

// shrink leaves out steps for as long as the same law is broken.
func shrink(t *testing.T, seed uint64, plan []step, f fault, first result) ([]step, result) {
	t.Helper()
	const triesMax = 2000
	tries := 0
	for size := (len(plan) + 1) / 2; size > 0; {
		less := false
		for at := 0; at < len(plan) && tries < triesMax; tries++ {
			shorter := append(append([]step(nil), plan[:at]...), plan[min(at+size, len(plan)):]...)
			r := play(t, seed, shorter, f, newCoverage())
			if r.wrong == nil || r.wrong.law != first.wrong.law {
				at += size
				continue
			}
			plan, first, less = shorter, r, true
		}
		if size == 1 && !less || tries >= triesMax {
			break
		}
		if !less || size > len(plan) {
			size = max(1, size/2)
		}
	}
	return plan, first
}
