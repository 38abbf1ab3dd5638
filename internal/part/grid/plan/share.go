package plan

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/rule"
)

// Claim is what a session asks of the grid when its slots are shared out.
type Claim struct {
	Weight int  // 0 to 9; 0 = suspended: it gets nothing
	Max    int  // max_engines; 0 = no limit
	Demand int  // copies of tasks that run, or want a slot
	Urgent bool // has its share before all that are not urgent
}

// most is what a session can use.
func (c *Claim) most() int {
	switch {
	case c.Weight <= 0:
		return 0
	case c.Max > 0:
		return max(0, min(c.Demand, c.Max))
	}
	return max(0, c.Demand)
}

// filler shares slots out among sessions, and keeps its memory for the next time.
type filler struct {
	target []int
	bound  []int // from so much on, more demand changes nothing
	order  []int
}

// fill says how many of a number of slots each session should have: in
// proportion to the weights, nobody more than it can use, and what one cannot
// use goes to the others (water-filling; reference section 6). Parts of a slot
// go to the largest remainders; among equal ones to the larger weight, then to
// the older session: claims are in the order of age, oldest first. least is
// what every session gets that has work, if there are as many slots: 0 or 1.
//
// The sum is the number of slots, or all demands if those are less.
func (f *filler) fill(slots, least int, claims []Claim) {
	f.target = append(f.target[:0], make([]int, len(claims))...)
	f.bound = append(f.bound[:0], make([]int, len(claims))...)
	left := f.class(slots, least, claims, true)
	f.class(left, least, claims, false)
}

// class shares out among the sessions that are urgent, or among the others,
// and returns what they leave.
func (f *filler) class(slots, least int, claims []Claim, urgent bool) int {
	f.order = f.order[:0]
	weights := 0
	for i := range claims {
		if claims[i].Urgent == urgent && claims[i].Weight > 0 {
			f.bound[i] = rule.NoLimit // until somebody stands between
			if claims[i].most() > 0 {
				f.order = append(f.order, i)
				weights += claims[i].Weight
			}
		}
	}
	// Who can use least for its weight is full first.
	slices.SortFunc(f.order, func(a, b int) int {
		x, y := &claims[a], &claims[b]
		return cmp.Or(cmp.Compare(x.most()*y.Weight, y.most()*x.Weight), cmp.Compare(a, b))
	})
	open := f.order
	for len(open) > 0 {
		c := &claims[open[0]]
		if slots*c.Weight < c.most()*weights {
			break
		}
		f.target[open[0]] = c.most()
		slots -= c.most()
		weights -= c.Weight
		open = open[1:]
	}
	if len(open) == 0 {
		return slots
	}
	f.round(slots, weights, claims, open)
	if least > 0 {
		f.raise(f.order, claims)
	}
	for i := range claims {
		if claims[i].Urgent == urgent && claims[i].Weight > 0 {
			f.bound[i] = (slots*claims[i].Weight + weights - 1) / weights
		}
	}
	return 0
}

// round gives whole slots by weight, and what is left by the largest remainder.
func (f *filler) round(slots, weights int, claims []Claim, open []int) {
	spare := slots
	for _, i := range open {
		f.target[i] = slots * claims[i].Weight / weights
		spare -= f.target[i]
	}
	slices.SortFunc(open, func(a, b int) int {
		x, y := claims[a].Weight, claims[b].Weight
		return cmp.Or(cmp.Compare(slots*y%weights, slots*x%weights), cmp.Compare(y, x), cmp.Compare(a, b))
	})
	for _, i := range open[:spare] {
		f.target[i]++
	}
}

// raise gives one slot to each who has none, if there is one for each. Who has
// most gives.
func (f *filler) raise(active []int, claims []Claim) {
	total, none := 0, 0
	for _, i := range active {
		total += f.target[i]
		none += oneIf(f.target[i] == 0)
	}
	if none == 0 || total < len(active) {
		return
	}
	slices.SortFunc(active, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.target[b], f.target[a]), cmp.Compare(claims[a].Weight, claims[b].Weight), cmp.Compare(b, a))
	})
	for _, i := range active[len(active)-none:] {
		f.target[i] = 1
	}
	for level := f.target[active[0]]; none > 0; level-- {
		for at := 0; none > 0 && f.target[active[at]] == level; at++ {
			f.target[active[at]]--
			none--
		}
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
