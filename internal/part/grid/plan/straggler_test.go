package plan

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// using is the default redundancy with one strategy.
func using(s job.RedundancyStrategy, edit func(*job.Redundancy)) *job.Redundancy {
	r := job.DefaultRedundancy()
	r.Strategies = job.RedundancyOf(s)
	if edit != nil {
		edit(&r)
	}
	return &r
}

// firesAt sweeps the age of a run in steps of a millisecond.
func firesAt(r *job.Redundancy, own, kind *Durations, w Work, until job.Millis) job.Millis {
	for age := job.Millis(0); age <= until; age++ {
		if limit, _, ok := Threshold(r, own, kind, w); ok && age > limit {
			return age
		}
	}
	return 0
}

func TestA12StrategiesFireStrictlyAboveTheirThresholds(t *testing.T) {
	v := loadGrid(t).Redundancy
	own, nine := ran(v.Done...), Work{Total: len(v.Done) + v.Running, Done: len(v.Done)}
	names := map[string]*job.Redundancy{
		"mean k=3":                using(job.RedundantMean, nil),
		"mean k=2":                using(job.RedundantMean, func(r *job.Redundancy) { r.MeanFactor = 2 }),
		"stddev k=3 (population)": using(job.RedundantStddev, nil),
		"median q=0.75 m=2":       using(job.RedundantMedian, nil),
		"median q=0.75 m=1.5":     using(job.RedundantMedian, func(r *job.Redundancy) { r.MedianFactor = 1.5 }),
		"median q=0.9 m=3":        using(job.RedundantMedian, func(r *job.Redundancy) { r.MedianFactor, r.MedianDone = 3, 0.9 }),
	}
	if len(v.Fires) != len(names) {
		t.Fatalf("%d vectors, %d are known", len(v.Fires), len(names))
	}
	for name, above := range v.Fires {
		if names[name] == nil {
			t.Fatalf("%q is not known", name)
		}
		want := job.Millis(math.Floor(above*1000)) + 1
		if got := firesAt(names[name], own, nil, nine, 40_000); got != want {
			t.Errorf("%s fires at %d ms, want %d", name, got, want)
		}
	}
	if at := StragglesAt(1000, 20_000); at != 21_001 {
		t.Errorf("a run that began at 1000 is a straggler at %d", at)
	}
	tail := using(job.RedundantTail, nil)
	for w, want := range map[Work]bool{
		nine: true, {Total: 10, Done: 8}: false, {Total: 10, Done: 9, Waiting: 1}: false, {Total: 4, Done: 4}: false,
	} {
		if limit, by, ok := Threshold(tail, own, nil, w); ok != want || ok && (limit != 0 || by != job.RedundantTail) {
			t.Errorf("tail at %+v: %t above %d", w, ok, limit)
		}
	}
	short := ran(0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01)
	if got := firesAt(using(job.RedundantMedian, nil), short, nil, nine, 2000); got != 1001 {
		t.Errorf("median of short tasks fires at %d ms, want min_age", got)
	}
	four := ran(1, 1, 1, 1)
	for s := range job.RedundantTimeLeft {
		if _, _, ok := Threshold(using(s, nil), four, nil, Work{Total: 4, Done: 4}); ok {
			t.Errorf("%s fires by fewer than min_samples", s)
		}
	}
}

func TestA13SparksParametersNeverFireWithEightOfTenDone(t *testing.T) {
	r := using(job.RedundantMedian, func(r *job.Redundancy) { r.MedianFactor, r.MedianDone = 3, 0.9 })
	if age, by, ok := Threshold(r, ran(8, 9, 9, 10, 10, 10, 11, 11), nil, Work{Total: 10, Done: 8}); ok { // at no age
		t.Errorf("%s fires above %d", by, age)
	}
	if age, _, ok := Threshold(r, ran(8, 9, 9, 10, 10, 10, 11, 11, 12), nil, Work{Total: 10, Done: 9}); !ok || age != 30_000 {
		t.Errorf("with nine of ten done: %t, above %d", ok, age)
	}
}

func TestA14TheMedianIsNotMasked(t *testing.T) {
	own, w := ran(10, 10, 10, 10, 60, 10, 10, 60, 10, 10), Work{Total: 12, Done: 10}
	if mean, dev := own.Mean(); mean != 20_000 || dev != 20_000 {
		t.Fatalf("mean %v, deviation %v", mean, dev)
	}
	if got := firesAt(using(job.RedundantStddev, nil), own, nil, w, 100_000); got != 80_001 {
		t.Errorf("stddev fires at %d", got)
	}
	three := using(job.RedundantMedian, func(r *job.Redundancy) { r.MedianFactor = 3 })
	if got := firesAt(three, own, nil, w, 100_000); got != 30_001 {
		t.Errorf("median fires at %d", got)
	}
	three.Strategies |= job.RedundancyOf(job.RedundantStddev)
	if limit, by, _ := Threshold(three, own, nil, w); limit != 30_000 || by != job.RedundantMedian {
		t.Errorf("of two strategies %s fires first, above %d", by, limit)
	}
}

func TestHedgeLooksAtTheTypeInAllSessions(t *testing.T) {
	kind, r, none := &Durations{}, using(job.RedundantHedge, nil), &Durations{}
	for i := range 100 {
		if _, _, ok := Threshold(r, none, kind, Work{Total: 1}); ok {
			t.Fatalf("fires by %d runs", i)
		}
		kind.Add(job.Millis(i+1)*100, 0)
	}
	if got := firesAt(r, none, kind, Work{Total: 1}, 20_000); got != 9501 {
		t.Errorf("hedge fires at %d", got)
	}
	if _, _, ok := Threshold(r, none, nil, Work{Total: 1}); ok {
		t.Error("hedge fires without a history")
	}
}

func TestTimeLeftChoosesTheOneThatEndsLast(t *testing.T) { // reference section 4, LATE
	r := using(job.RedundantTimeLeft, nil)
	run := func(fraction float64, seconds job.Millis) Headway { return Headway{seconds * job.Second, fraction} }
	list := []Headway{run(.9, 90), run(.2, 60), run(.5, 100), run(.8, 40)}
	for expected, want := range map[float64]int{60_000: 1, 119_999: 1, 120_000: -1} {
		if got := EndsLast(r, list, expected, 5); got != want {
			t.Errorf("a new run takes %v: %d is chosen, want %d", expected, got, want)
		}
	}
	silent := append([]Headway{run(0, 5000), run(1, 5000)}, list...)
	if got := EndsLast(r, silent, 60_000, 5); got != 3 {
		t.Errorf("%d is chosen, want the one that tells of its progress", got)
	}
	if EndsLast(r, list, 60_000, 4) != -1 || EndsLast(using(job.RedundantMean, nil), list, 1, 5) != -1 || EndsLast(r, silent[:2], 1, 5) != -1 {
		t.Error("one is chosen without samples, without the strategy or without progress")
	}
	// B is chosen from the moment that LeftAt tells.
	at := LeftAt(r, 1000, .2, 60_000)
	for age, want := range map[job.Millis]int{at - 1000 - 1: -1, at - 1000: 0} {
		if got := EndsLast(r, []Headway{{age, .2}}, 60_000, 5); got != want {
			t.Errorf("at an age of %d: %d, want %d", age, got, want)
		}
	}
	if LeftAt(r, 1, 0, 1) != 0 || LeftAt(r, 1, 1, 1) != 0 {
		t.Error("who tells nothing, or is done, has a time")
	}
}

func TestClonesByTheFormulaOfDolly(t *testing.T) {
	r := using(job.RedundantClone, func(r *job.Redundancy) { r.CloneTasks = 50 })
	for _, c := range []struct {
		p    float64
		n    int
		want int
	}{{.05, 10, 2}, {.1, 50, 3}, {.01, 5, 1}, {.9, 5, 3}, {1, 5, 3}, {0, 5, 1}, {.05, 0, 1}, {.05, 51, 1}, {math.NaN(), 5, 1}} {
		if got := Clones(r, c.n, c.p, job.Second, job.Hour); got != c.want {
			t.Errorf("p %v, n %d: %d runs, want %d", c.p, c.n, got, c.want)
		}
	}
	if Clones(using(job.RedundantMedian, nil), 10, .05, 1, job.Hour) != 1 {
		t.Error("clones without the strategy")
	}
	for left, want := range map[job.Millis]int{-1: 1, 0: 1, 99_999: 1, 100_000: 2, 199_999: 2, 200_000: 3, job.Day: 3} {
		if got := Clones(r, 10, .5, 10*job.Second, left); got != want {
			t.Errorf("%d ms pay for %d runs of each task, want %d", left, got, want)
		}
	}
}

func TestStrategiesNeverFireBelowTheirThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := &Durations{}
		for i, s := range rapid.SliceOfN(rapid.Int64Range(0, 100_000), 0, 30).Draw(t, "runs") {
			own.Add(job.Millis(s), job.Millis(i))
		}
		r := job.DefaultRedundancy()
		r.Strategies = job.RedundancySet(rapid.IntRange(1, 1<<job.RedundancyStrategies-1).Draw(t, "strategies"))
		r.MinSamples = rapid.IntRange(1, 10).Draw(t, "min_samples")
		total := rapid.IntRange(own.Len(), 60).Draw(t, "total")
		w := Work{Total: total, Done: own.Len(), Waiting: rapid.IntRange(0, 2).Draw(t, "waiting")}
		age, by, ok := Threshold(&r, own, own, w)
		if !ok {
			return
		}
		mean, dev := own.Mean()
		limit := map[job.RedundancyStrategy]float64{
			job.RedundantMean: 3 * mean, job.RedundantStddev: mean + 3*dev, job.RedundantMedian: max(2*own.Median(), 1000),
		}[by]
		switch {
		case !r.Strategies.Has(by):
			t.Fatalf("%s is not in use", by)
		case float64(age) < math.Floor(limit) || own.Len() < r.MinSamples:
			t.Fatalf("%s fires above %d, its threshold is %v of %d runs", by, age, limit, own.Len())
		case by == job.RedundantTail && (w.Waiting > 0 || float64(w.Done) < 0.9*float64(total)-1e-9):
			t.Fatalf("tail fires at %+v", w)
		case by == job.RedundantMedian && w.Done < int(0.75*float64(total)):
			t.Fatalf("median fires at %+v", w)
		}
		more := r
		more.Strategies = 1<<job.RedundancyStrategies - 1
		if sooner, _, _ := Threshold(&more, own, own, w); sooner > age {
			t.Fatalf("with more strategies it fires later: above %d, not %d", sooner, age)
		}
	})
}

func TestA15CopiesStandBehindWhatWaitsUnlessTheyGoFirst(t *testing.T) {
	for place, behind := range map[job.Place]bool{job.PlaceBack: true, job.PlaceFront: false} {
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			seq, q := int64(0), job.NewQueue("s")
			view := func(j *job.Job) rule.View {
				return rule.View{Now: 1000, Steady: 1000, Job: j, Queue: q, Server: new(rule.DefaultServer()), Seq: func() int64 { seq++; return seq }}
			}
			step := func(j *job.Job, c rule.Command) *job.Job {
				t.Helper()
				e, err := rule.Step(view(j), c)
				if err != nil {
					t.Fatal(err)
				}
				return e.Job
			}
			put := func(id byte) *job.Job { return step(nil, rule.Command{Verb: rule.Put, New: &job.Job{ID: job.ID{id}}}) }
			slow := step(put(1), rule.Command{Verb: rule.Take, Lease: &job.Lease{Token: job.Token{1}, Holder: "a"}})
			var fresh []*job.Job
			for i := range byte(5) {
				fresh = append(fresh, put(2+i))
			}
			slow = step(slow, rule.Command{Verb: rule.Offer, Place: place})
			e := rule.EntriesOf(slow)
			if !e.Wants || slow.Reschedules != 1 {
				t.Fatalf("no copy is wanted: %+v", slow)
			}
			for _, f := range fresh {
				if rule.EntriesOf(f).Pos.Before(e.Pos) != behind {
					t.Errorf("a task that waits goes before the copy: %t, want %t", !behind, behind)
				}
			}
		})
	}
	// With the default a copy is not even wanted before those five have a slot.
	var s Spend
	r := job.DefaultRedundancy()
	if bar := s.Bar(&r, 0, 1000, 0, 4, 4-5, false); bar != BarBusy {
		t.Errorf("barred by %q", bar)
	}
	if bar := s.Bar(&r, 0, 1000, 0, 4, 4-5, true); bar != RedundancyFree {
		t.Errorf("copies go first, and it is barred by %q", bar)
	}
}
