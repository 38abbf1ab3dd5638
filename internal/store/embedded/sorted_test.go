package embedded

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type number int

func (n number) Before(m number) bool { return n < m }

// What a list in chunks answers is what a plain sorted slice does, however items
// came: at random, up, down, and in runs that lie across each other.
func TestASortedListIsASortedSlice(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	up, down := 0, 1<<20
	draws := map[string]func() number{
		"at random": func() number { return number(dice.IntN(4096)) },
		"up":        func() number { up++; return number(up) },
		"down":      func() number { down--; return number(down) },
		"sixteen runs side by side": func() number {
			up++
			return number(dice.IntN(16)<<20 + up)
		},
		"down between two": func() number { down--; return number(1<<21*(down%2) + down) },
	}
	for name, draw := range draws {
		t.Run(name, func(t *testing.T) {
			var list sorted[number]
			var plain []number
			for step := range 20_000 {
				growing := step%8000 < 6000
				item := draw()
				if !growing && len(plain) > 0 && dice.IntN(3) > 0 {
					item = plain[dice.IntN(len(plain))]
				}
				at, there := slices.BinarySearch(plain, item)
				if growing || dice.IntN(4) == 0 {
					list.insert(item)
					if !there {
						plain = slices.Insert(plain, at, item)
					}
				} else {
					if got := list.remove(item); got != there {
						t.Fatalf("step %d: removing %d says %v", step, item, got)
					}
					if there {
						plain = slices.Delete(plain, at, at+1)
					}
				}
				if step%97 == 0 || len(plain) < 3 {
					checkSorted(t, &list, plain, draw())
				}
			}
		})
	}
}

func checkSorted(t *testing.T, list *sorted[number], plain []number, probe number) {
	t.Helper()
	if list.len() != len(plain) {
		t.Fatalf("%d items instead of %d", list.len(), len(plain))
	}
	var got []number
	for cur := list.start(); ; cur.next() {
		item, ok := cur.item()
		if !ok {
			break
		}
		got = append(got, item)
	}
	if !slices.Equal(got, plain) {
		t.Fatalf("items %v instead of %v", got, plain)
	}
	at, there := slices.BinarySearch(plain, probe)
	if found := list.at(probe); (found != nil) != there {
		t.Fatalf("%d is there: %v", probe, found != nil)
	}
	if rank := list.rank(probe); rank != at {
		t.Fatalf("%d items before %d instead of %d", rank, probe, at)
	}
	from := list.from(probe)
	if item, ok := from.item(); ok != (at < len(plain)) || ok && item != plain[at] {
		t.Fatalf("from %d stands at %d, %v", probe, item, ok)
	}
	for c, low := range list.lows {
		left, right := list.chunks[c], list.chunks[c+1]
		if cmp.Compare(left[len(left)-1], low) >= 0 || cmp.Compare(right[0], low) < 0 {
			t.Fatalf("chunk %d begins at %d, the one before ends at %d, the bound is %d", c+1, right[0], left[len(left)-1], low)
		}
	}
	if n := len(list.chunks); n > 0 && len(list.lows) != n-1 || n > 8+len(plain)/16 {
		t.Fatalf("%d bounds, %d chunks for %d items", len(list.lows), n, len(plain))
	}
}
