package rule

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestTheLatestEnginesOfATagAreKnown(t *testing.T) {
	var list []string
	for _, e := range []string{"a", "b", "a", "c", "d", "e", "e"} {
		list = AffinityRan(list, e)
	}
	if !slices.Equal(list, []string{"e", "d", "c", "a"}) {
		t.Error(list)
	}
	keep := AffinityFor(list, func(e string) bool { return e != "d" })
	if !slices.Equal(keep, []string{"a", "c", "e"}) || !slices.Equal(list, []string{"e", "d", "c", "a"}) {
		t.Error(keep, list)
	}
	if keep := AffinityFor(list, func(string) bool { return false }); len(keep) != 0 {
		t.Error(keep)
	}
}

func TestATaskIsKeptForSomeEnginesBeforeItsFirstRunOnly(t *testing.T) {
	j := &job.Job{State: job.Ready, Extras: &job.Extras{Affinity: &job.Affinity{Tag: "t", For: []string{"e/1", "e/2"}}}}
	may := func(holder string) bool { return Fits(EntriesOf(j).Class, nil, Seeker{Holder: holder, Engine: true}) }
	for holder, want := range map[string]bool{"e/1": true, "e/2": true, "e/3": false, "": false} {
		if may(holder) != want {
			t.Errorf("%q may take it: %t", holder, !want)
		}
	}
	j.Deliveries = 1
	if !may("e/3") {
		t.Error("it came back, and is kept")
	}
	j.Deliveries, j.State, j.CopiesWanted = 0, job.Leased, 2
	if !may("e/3") {
		t.Error("a copy is kept")
	}
	j.Extras.Affinity.For, j.State = nil, job.Ready
	if !may("e/3") {
		t.Error("it is kept for nobody")
	}
}
