package plan

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// What pre-emption spares (reference section 6).
const (
	PreemptProtected = 30 * job.Second // a run is left alone at its beginning,
	preemptPast      = 0.8             // past this part of the time it is expected to take,
	PreemptMost      = 5               // and when its task was pre-empted so often
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
// of pre-emptions one more. Rota.Short, less what is idle or about to end,
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
			again = rule.Sooner(again, at)
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
