package plan

import (
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Stragglers (grid.md 7; reference section 4). A task is copied when it runs
// longer than those that are done let expect. How an engine uses this:
//
//   - It keeps the Durations of a session, and of its task type for hedge, and
//     the Spend of the session.
//   - After each batch in which tasks of the session ended or came it asks
//     Threshold once: the age above which a run is a straggler. The first run
//     that may be a straggler is the earliest that can have a copy yet, or had
//     as many as it may, which is counted when it is one (NoCopy says which
//     cannot), so it sleeps until StragglesAt of that one, and looks at no
//     other. When Threshold changes, it sleeps until another time.
//   - Then it asks Spend.Bar. If nothing bars, it offers the copy (Offer) and
//     counts reschedules as a timeout with on_timeout reschedule does; otherwise
//     it counts what barred, and asks again when that can have changed: a slot
//     is free, a copy ended, a run was useful.
//   - time_left has no threshold for all: it asks EndsLast when progress was
//     told, and at the times of LeftAt.
//   - clone decides when tasks are submitted: Clones.

// Work is how far a session is.
type Work struct {
	Total   int // tasks submitted so far
	Done    int // with a result
	Waiting int // that wait for their first run
}

// Threshold is the age, in whole milliseconds, above which a run of the session
// is a straggler, and the strategy that says so at the lowest age. Not ok: no
// age makes a straggler now. own is how long the runs of the session took, kind
// those of its task type in all sessions; kind may be nil without hedge.
func Threshold(r *job.Redundancy, own, kind *Durations, w Work) (age job.Millis, by job.RedundancyStrategy, ok bool) {
	says := func(s job.RedundancyStrategy, limit float64) {
		if at := rule.Whole(limit); !ok || at < age {
			age, by, ok = at, s, true
		}
	}
	in := r.Strategies
	if in.Has(job.RedundantTail) && w.Waiting == 0 && w.Done >= r.MinSamples && part(w.Done, w.Total, r.TailDone) {
		says(job.RedundantTail, 0)
	}
	if own.Len() >= r.MinSamples {
		if in.Has(job.RedundantMean) || in.Has(job.RedundantStddev) {
			mean, deviation := own.Mean()
			if in.Has(job.RedundantMean) {
				says(job.RedundantMean, r.MeanFactor*mean)
			}
			if in.Has(job.RedundantStddev) {
				says(job.RedundantStddev, mean+r.Deviations*deviation)
			}
		}
		if in.Has(job.RedundantMedian) && w.Done >= max(int(r.MedianDone*float64(w.Total)+1e-9), 1) {
			says(job.RedundantMedian, max(r.MedianFactor*own.Median(), float64(r.MedianAge)))
		}
	}
	if in.Has(job.RedundantHedge) && kind != nil && kind.Len() >= r.HedgeSamples {
		says(job.RedundantHedge, float64(kind.Decayed(r.HedgeQuantile, r.HedgeHalfLife)))
	}
	return age, by, ok
}

// part reports whether at least a share of all is done.
func part(done, all int, share float64) bool { return float64(done)+1e-9 >= share*float64(all) }

// StragglesAt is the first moment at which a run that began at since is older
// than the threshold.
func StragglesAt(since, age job.Millis) job.Millis { return since.Add(age.Add(1)) }

// Headway is how far a run has come.
type Headway struct {
	Age      job.Millis
	Fraction float64 // of its work that is done, as its engine tells; 0 = it does not
}

// EndsLast is the run of a session that the strategy time_left copies: of the
// slowest quarter of those that tell their progress the one with the most time
// left, if that is more than LeftFactor times what a new run takes. expected is
// the mean of the runs that are done. -1 = none.
func EndsLast(r *job.Redundancy, list []Headway, expected float64, samples int) int {
	if !r.Strategies.Has(job.RedundantTimeLeft) || samples < r.MinSamples {
		return -1
	}
	rates := make([]float64, 0, len(list))
	for _, p := range list {
		if p.tells() {
			rates = append(rates, p.rate())
		}
	}
	if len(rates) == 0 {
		return -1
	}
	slices.Sort(rates)
	slow := rates[(len(rates)+3)/4-1]
	last := -1
	for i, p := range list {
		if p.tells() && p.rate() <= slow && p.left() > r.LeftFactor*expected && (last < 0 || p.left() > list[last].left()) {
			last = i
		}
	}
	return last
}

func (p Headway) tells() bool   { return p.Fraction > 0 && p.Fraction < 1 && p.Age > 0 }
func (p Headway) rate() float64 { return p.Fraction / float64(p.Age) }
func (p Headway) left() float64 { return (1 - p.Fraction) / p.rate() }

// LeftAt is the moment from which a run has more than LeftFactor times what a
// new one takes left, if it tells of no further progress: then EndsLast may
// choose it. 0 = never.
func LeftAt(r *job.Redundancy, since job.Millis, fraction, expected float64) job.Millis {
	if !(fraction > 0 && fraction < 1) {
		return 0
	}
	return StragglesAt(since, rule.Whole(r.LeftFactor*expected*fraction/(1-fraction)))
}

// Clones is how many runs each task of a session gets from the start, at least
// 1, by the formula of Dolly: so many that one of n tasks is a straggler with a
// chance of CloneRisk only. straggle is the chance of one run, Durations.Slow of
// the type; where that is not known, 0, there are no clones. Sessions with more
// than CloneTasks tasks have none. left is what copies may spend (Spend.Left),
// and expected how long a run takes: there are no more clones than that pays for.
func Clones(r *job.Redundancy, n int, straggle float64, expected, left job.Millis) int {
	if !r.Strategies.Has(job.RedundantClone) || n < 1 || n > r.CloneTasks || !(straggle > 0) {
		return 1
	}
	c := r.CloneCopies
	if straggle < 1 {
		c = int(min(math.Ceil(math.Log(1-math.Pow(1-r.CloneRisk, 1/float64(n)))/math.Log(straggle)), float64(c)))
	}
	paid := max(left, 0) / rule.Times(max(expected, 1), int64(n))
	return max(1, int(min(job.Millis(c), paid+1)))
}
