package embedded

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// TestAPositionIsFoundInManyParts compares it with one list of everything, for parts
// of all sizes: many small ones, few large ones, and one behind the other.
func TestAPositionIsFoundInManyParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct{ parts, each int }{{1, 5000}, {3, 4000}, {40, 300}, {2000, 3}, {5, 0}} {
		for _, apart := range []bool{false, true} {
			var p parts[timer]
			var all []timer
			for i := range c.parts {
				s := new(sorted[timer])
				for range c.each {
					item := timer{at: job.Millis(rng.IntN(1_000_000)), id: job.ID{byte(rng.Uint32()), byte(rng.Uint32()), byte(i), byte(i >> 8)}}
					if apart {
						item.at += job.Millis(i) * 1_000_000
					}
					s.insert(item)
					all = append(all, item)
				}
				p = append(p, s)
			}
			slices.SortFunc(all, func(a, b timer) int {
				if a.Before(b) {
					return -1
				}
				return 1
			})
			for _, k := range []int{0, 1, 999, 1000, 1001, len(all) / 2, len(all) - 1, len(all)} {
				w := p.at(max(k, 0))
				switch inside := k >= 0 && k < len(all); {
				case inside != (w.Len() > 0):
					t.Fatalf("%+v: position %d is inside: %v, and %d parts follow", c, k, inside, w.Len())
				case inside && w.list[0].item != all[k]:
					t.Fatalf("%+v: at %d is %v, not %v", c, k, w.list[0].item, all[k])
				case inside:
					if n, found := p.rank(all[k]); n != k || !found {
						t.Fatalf("%+v: rank %d, %v of the item at %d", c, n, found, k)
					}
				}
			}
		}
	}
}
