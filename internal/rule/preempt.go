package rule

import (
	"cmp"
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// What pre-emption spares (reference section 6).
const (
	PreemptProtected = 30 * job.Second // a run is left alone at its beginning,
	preemptPast      = 0.8             // past this part of the time it is expected to take,
	PreemptMost      = 5               // and when its task was pre-empted so often
	PreemptGrace     = 10 * job.Second // from the word to the engine to the end of the run
)

// Preemptible is a copy that runs, as pre-emption looks at it.
type Preemptible struct {
	Share     *Share     // its session
	Since     job.Millis // on the steady clock
	Expected  job.Millis // how long such runs take, History.Quantile(0.5); 0 = not known
	Preempted uint32     // how often its task was pre-empted
}

// eligible is when the run may be pre-empted; ok is false if it may not be any
// more.
func (p *Preemptible) eligible(steady job.Millis) (at job.Millis, ok bool) {
	at = max(steady, p.Since.Add(PreemptProtected))
	past := p.Expected > 0 && float64(at-p.Since) > preemptPast*float64(p.Expected)
	return at, p.Preempted < PreemptMost && !p.Share.Urgent && !past
}

// Victims chooses up to need runs that shall end so that urgent sessions get
// their share: of sessions above their share, and no more than they are above
// it, the lowest weight first, the newest run first (reference section 6). It
// returns their places in the list, and when another would be found that is
// protected yet, 0 if none is. What is chosen is evicted: uncharged, its counter
// of pre-emptions one more. Rota.Short(true), less what is idle or about to end,
// is the need; serves says whether an urgent task that has no slot yet may run in
// the place of one, and takes note that it has that place.
func Victims(list []Preemptible, need int, steady job.Millis, serves func(i int) bool) (victims []int, again job.Millis) {
	if need <= 0 {
		return nil, 0
	}
	order := make([]int, 0, len(list))
	for i := range list {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &list[a], &list[b]
		return cmp.Or(cmp.Compare(x.Share.Weight, y.Share.Weight), cmp.Compare(y.Since, x.Since), cmp.Compare(a, b))
	})
	taken := map[*Share]int{}
	for _, i := range order {
		p := &list[i]
		if p.Share.Running-taken[p.Share] <= p.Share.Target {
			continue
		}
		switch at, ok := p.eligible(steady); {
		case !ok:
		case at > steady:
			again = sooner(again, at)
		case len(victims) < need && serves(i):
			victims = append(victims, i)
			taken[p.Share]++
		}
	}
	if len(victims) == need {
		again = 0
	}
	return victims, again
}

// Moves is how many of a surplus of engines one step of balancing moves: a
// fraction of it, rounded up, at most so many; 0 = no limit. With a fraction of
// a half 8 become 4, 2, 1 and 1, so nothing swings (reference section 3).
func Moves(surplus int, fraction float64, most int) int {
	if surplus <= 0 || !(fraction > 0) {
		return 0
	}
	n := int(math.Ceil(float64(surplus)*min(fraction, 1) - 1e-9))
	if most > 0 {
		n = min(n, most)
	}
	return min(n, surplus)
}

// Balance says how many slots each session above its share gives back in one
// step, so that those below theirs get them: gives is called for each that
// gives, the furthest above its share first. Of what is lacking and there to
// be had the step moves what Moves says. The runs that end are evicted; Victims
// chooses them.
func (r *Rota) Balance(fraction float64, most int, gives func(t *Share, n int)) {
	surplus := 0
	var above []*Share
	for _, t := range r.Targets() {
		if n := t.Running - t.Target; n > 0 && !t.Urgent && t.Weight > 0 { // who is suspended finishes what runs
			surplus += n
			above = append(above, t)
		}
	}
	n := Moves(min(surplus, r.Short(false)), fraction, most)
	slices.SortStableFunc(above, func(a, b *Share) int { return cmp.Compare(b.Running-b.Target, a.Running-a.Target) })
	for _, t := range above {
		part := min(n, t.Running-t.Target)
		if n -= part; part > 0 {
			gives(t, part)
		}
	}
}
