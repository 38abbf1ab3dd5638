package job

import (
	"slices"
	"testing"
)

func TestStrategiesAreReadByName(t *testing.T) {
	set, err := ParseRedundancy([]string{"hedge", "tail", "hedge"})
	if err != nil || set != RedundancyOf(RedundantTail, RedundantHedge) || !slices.Equal(set.Names(), []string{"tail", "hedge"}) {
		t.Errorf("%v, %v", set.Names(), err)
	}
	if set, err = ParseRedundancy(nil); err != nil || set != RedundancyOf(RedundantMedian) {
		t.Errorf("the default is %v, %v", set.Names(), err)
	}
	all, err := ParseRedundancy(redundancyNames[:])
	if err != nil || len(all.Names()) != 7 || all.Has(RedundancyStrategies) {
		t.Errorf("%v, %v", all.Names(), err)
	}
	for _, bad := range []string{"", "Median", "quorum"} {
		if _, err := ParseRedundancy([]string{bad}); fieldOf(err) != "strategies" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestRedundancyNamesWhatIsWrongWithIt(t *testing.T) {
	for field, edit := range map[string]func(*Redundancy){
		"":                   func(*Redundancy) {},
		"strategies":         func(r *Redundancy) { r.Strategies = 0 },
		"tail_done":          func(r *Redundancy) { r.TailDone = 1.1 },
		"mean_factor":        func(r *Redundancy) { r.MeanFactor = 0.9 },
		"deviations":         func(r *Redundancy) { r.Deviations = -1 },
		"median_done":        func(r *Redundancy) { r.MedianDone = -0.1 },
		"median_factor":      func(r *Redundancy) { r.MedianFactor = 1001 },
		"median_age_ms":      func(r *Redundancy) { r.MedianAge = -1 },
		"left_factor":        func(r *Redundancy) { r.LeftFactor = 0 },
		"hedge_quantile":     func(r *Redundancy) { r.HedgeQuantile = 2 },
		"hedge_samples":      func(r *Redundancy) { r.HedgeSamples = RedundancySamples + 1 },
		"hedge_half_life_ms": func(r *Redundancy) { r.HedgeHalfLife = 0 },
		"clone_tasks":        func(r *Redundancy) { r.CloneTasks = -1 },
		"clone_risk":         func(r *Redundancy) { r.CloneRisk = 0 },
		"clone_copies":       func(r *Redundancy) { r.CloneCopies = 0 },
		"min_samples":        func(r *Redundancy) { r.MinSamples = 0 },
		"running_share":      func(r *Redundancy) { r.RunningShare = 2 },
		"seconds_share":      func(r *Redundancy) { r.SecondsShare = -1 },
		"seconds_burst_ms":   func(r *Redundancy) { r.SecondsBurst = -1 },
	} {
		r := DefaultRedundancy()
		edit(&r)
		refuses(t, "redundancy", field, r.Check("redundancy"))
	}
}
