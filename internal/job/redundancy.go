package job

import (
	"strings"

	"github.com/reprisehq/reprise/internal/spell"
)

// RedundancyStrategy is a rule by which a task that takes long gets a second
// copy on another engine (reference gridserver.md section 4).
type RedundancyStrategy uint8

// The strategies. Several may be in use: a task is copied when one of them says so.
const (
	RedundantTail     RedundancyStrategy = iota // nothing waits, and nearly all of the session is done
	RedundantMean                               // it runs a multiple of the mean
	RedundantStddev                             // it runs longer than the mean and some standard deviations
	RedundantMedian                             // it runs a multiple of the median; the default
	RedundantTimeLeft                           // by its progress it is the one that ends last
	RedundantHedge                              // it runs longer than nearly all tasks of its type ever did
	RedundantClone                              // small sessions: copies from the start
	RedundancyStrategies
)

var redundancyNames = [RedundancyStrategies]string{"tail", "mean", "stddev", "median", "time_left", "hedge", "clone"}

func (s RedundancyStrategy) String() string { return nameOf(redundancyNames[:], uint8(s)) }

// RedundancySet is a set of strategies.
type RedundancySet uint8

// RedundancyOf is the set of these strategies.
func RedundancyOf(list ...RedundancyStrategy) (set RedundancySet) {
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

// Has reports whether a strategy is in use.
func (set RedundancySet) Has(s RedundancyStrategy) bool { return set&(1<<s) != 0 }

// Names lists the strategies of the set in their order.
func (set RedundancySet) Names() (list []string) {
	for s, name := range redundancyNames {
		if set.Has(RedundancyStrategy(s)) {
			list = append(list, name)
		}
	}
	return list
}

// ParseRedundancy reads names of strategies; none is the default, median. The
// field of its errors is strategies.
func ParseRedundancy(names []string) (set RedundancySet, err error) {
	for _, name := range names {
		at, ok := indexOf(redundancyNames[:], name)
		if !ok {
			return 0, &Error{
				Kind: Invalid, Field: "strategies",
				Text: "there is no strategy " + name + "; choose from " + strings.Join(redundancyNames[:], ", ") + spell.Hint(name, redundancyNames[:]),
			}
		}
		set |= RedundancyOf(RedundancyStrategy(at))
	}
	if set == 0 {
		set = RedundancyOf(RedundantMedian)
	}
	return set, nil
}

// Redundancy is when tasks of a session are copied because they take long, and
// what that may cost (grid.md 7). A session without one copies none. How many
// copies a task may have, how often it may be copied and where to is the
// session's (max_copies, max_reschedules, other hosts), as for a timeout.
type Redundancy struct {
	Strategies RedundancySet

	TailDone      float64 // tail: share of the tasks that are done
	MeanFactor    float64 // mean: times the mean
	Deviations    float64 // stddev: population standard deviations above the mean
	MedianDone    float64 // median: share of the tasks that are done
	MedianFactor  float64 // median: times the median,
	MedianAge     Millis  // but never sooner
	LeftFactor    float64 // time_left: times what a new run takes
	HedgeQuantile float64 // hedge: of the runs of the type in all sessions
	HedgeSamples  int     // hedge: so many must be known
	HedgeHalfLife Millis  // hedge: a run of that age counts half
	CloneTasks    int     // clone: of sessions with at most so many tasks
	CloneRisk     float64 // clone: chance that remains that a session waits for a straggler
	CloneCopies   int     // clone: runs of a task at most
	MinSamples    int     // runs of the session that must be known
	RunningShare  float64 // copies that run at once, of all that runs; one always may
	SecondsShare  float64 // time spent on copies, of the time of useful runs,
	SecondsBurst  Millis  // and so much more
	AlsoBusy      bool    // copies also while first runs wait for a slot
}

// DefaultRedundancy is the strategy median with the guards of the specification.
func DefaultRedundancy() Redundancy {
	return Redundancy{
		Strategies: RedundancyOf(RedundantMedian),
		TailDone:   0.9, MeanFactor: 3, Deviations: 3, MedianDone: 0.75, MedianFactor: 2, MedianAge: Second, LeftFactor: 2,
		HedgeQuantile: 0.95, HedgeSamples: 100, HedgeHalfLife: Day, CloneTasks: 10, CloneRisk: 0.05, CloneCopies: 3,
		MinSamples: 5, RunningShare: 0.1, SecondsShare: 0.05, SecondsBurst: Minute,
	}
}

// RedundancySamples is how many runs are remembered, the latest; no setting can
// ask for more.
const RedundancySamples = 512

// Check names everything that is wrong with the settings, each by its name on
// the wire below the given one.
func (r *Redundancy) Check(name string) error {
	var c checks
	factor := func(field string, f, least float64) {
		if !(f >= least && f <= 1000) {
			c.refuse(name+"."+field, "must be a number from %v to 1000", least)
		}
	}
	if r.Strategies == 0 || r.Strategies >= 1<<RedundancyStrategies {
		c.refuse(name+".strategies", "must name at least one of %s", strings.Join(redundancyNames[:], ", "))
	}
	c.share(name+".tail_done", r.TailDone)
	factor("mean_factor", r.MeanFactor, 1)
	factor("deviations", r.Deviations, 0)
	c.share(name+".median_done", r.MedianDone)
	factor("median_factor", r.MedianFactor, 1)
	c.span(name+".median_age_ms", r.MedianAge, 0)
	factor("left_factor", r.LeftFactor, 1)
	c.share(name+".hedge_quantile", r.HedgeQuantile)
	c.whole(name+".hedge_samples", r.HedgeSamples, 1, RedundancySamples)
	c.span(name+".hedge_half_life_ms", r.HedgeHalfLife, Minute)
	c.whole(name+".clone_tasks", r.CloneTasks, 0, 10_000)
	if !(r.CloneRisk > 0 && r.CloneRisk < 1) {
		c.refuse(name+".clone_risk", "must be a number between 0 and 1")
	}
	c.whole(name+".clone_copies", r.CloneCopies, 1, 255)
	c.whole(name+".min_samples", r.MinSamples, 1, RedundancySamples)
	c.share(name+".running_share", r.RunningShare)
	c.share(name+".seconds_share", r.SecondsShare)
	c.span(name+".seconds_burst_ms", r.SecondsBurst, 0)
	return c.err()
}
