package embedded

import (
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// Holders with few and with many jobs have those that they were given and did not
// end, and who has none is forgotten.
func TestHoldingsAreSets(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	x, plain := newHoldings(), map[string]map[job.ID]bool{}
	for step := range 20_000 {
		name := string(rune('a' + dice.IntN(3)))
		id := job.ID{15: byte(dice.IntN(4 * holdingFew * (1 + dice.IntN(2))))}
		if plain[name] == nil {
			plain[name] = map[job.ID]bool{}
		}
		if emptying := step%2000 > 1500; dice.IntN(10) < 5 && !emptying {
			x.add(name, id)
			plain[name][id] = true
		} else {
			if emptying && len(plain[name]) > 0 {
				id = x.of[name].ids()[0]
			}
			x.drop(name, id)
			delete(plain[name], id)
		}
		if step%3 == 0 {
			x.sweep()
			if (x.of[name] != nil) != (len(plain[name]) > 0) {
				t.Fatalf("step %d: %s is known: %v, with %d jobs", step, name, x.of[name] != nil, len(plain[name]))
			}
		}
		ids := x.of[name].ids()
		if len(ids) != len(plain[name]) || x.of[name].len() != len(ids) || x.has(name, id) != plain[name][id] {
			t.Fatalf("step %d: %s has %v instead of %v", step, name, ids, plain[name])
		}
		for _, id := range ids {
			if !plain[name][id] {
				t.Fatalf("step %d: %s has %v", step, name, id)
			}
		}
	}
}
