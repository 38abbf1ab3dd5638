package outage

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func retry(t *testing.T, text string) job.Retry {
	t.Helper()
	r, err := job.ParseRetry([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustRun(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Done+r.Dead != r.Jobs || r.Attempts != r.Done+r.Wasted || r.Wasted != r.WastedOutage+r.WastedOverload {
		t.Fatalf("the counts do not add up: %+v", r)
	}
	sum := Slot{}
	for _, s := range r.Slots {
		sum.Attempts += s.Attempts
		sum.Retries += s.Retries
		if s.Open < 0 || s.Peak > s.Attempts {
			t.Fatalf("slot %+v", s)
		}
	}
	if sum.Attempts != r.Attempts || sum.Retries != r.Attempts-r.Jobs || r.Slots[len(r.Slots)-1].Open != 0 || len(r.Slots) > slotsMax {
		t.Fatalf("%d slots hold %+v of %+v", len(r.Slots), sum, r)
	}
	return r
}

func TestOneJobCanBeFollowedByHand(t *testing.T) {
	// Attempts at 0, 10, 20, 30 s; the outage ends at 25 s.
	r := mustRun(t, Options{
		Retry: retry(t, `{"curve":{"kind":"constant","delay":"10s"}}`), Jobs: 1, To: 25 * job.Second, Capacity: 1,
	})
	after := 5 * job.Second
	want := Report{
		Jobs: 1, Done: 1, Attempts: 4, Wasted: 3, WastedOutage: 3, PeakRetries: 1, PeakAt: 10 * job.Second, PeakAfter: 1,
		Recovery: &after, WaitMedian: 30 * job.Second, WaitP99: 30 * job.Second, WaitMax: 30 * job.Second, End: 30 * job.Second,
	}
	got := *r
	got.Slots, got.options = nil, Options{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if len(r.Slots) != 31 || r.Slots[20].Retries != 1 || r.Slots[20].Open != 1 || r.Slots[30].Open != 0 {
		t.Errorf("%+v", r.Slots)
	}
}

func TestLimitAndMaxAgeAreTheServersOwn(t *testing.T) {
	o := Options{Jobs: 1, To: job.Hour, Capacity: 1}
	for policy, attempts := range map[string]int{
		`{"limit":3,"curve":{"kind":"constant","delay":"1s"}}`: 4, // the seed: retry, retry, retry, dead at the fourth failure
		`{"limit":"none"}`: 1,
		`{"max_age":"3500ms","curve":{"kind":"constant","delay":"1s"}}`: 4, // at 0, 1, 2, 3 s; 4 s would be too old
	} {
		o.Retry = retry(t, policy)
		if r := mustRun(t, o); r.Dead != 1 || r.Attempts != attempts {
			t.Errorf("%s: %d dead, %d attempts, want %d", policy, r.Dead, r.Attempts, attempts)
		}
	}
}

func TestTheTargetTakesItsCapacityAndNoMore(t *testing.T) {
	// Ten at once, four a second, tried again each second: 4, 4, 2.
	r := mustRun(t, Options{Retry: retry(t, `{"curve":{"kind":"constant","delay":"1s"}}`), Jobs: 10, Capacity: 4})
	if r.WastedOverload != 6+2 || r.WaitMax != 2*job.Second || r.PeakRetries != 6 || r.Recovery != nil {
		t.Errorf("%+v", r)
	}
}

func TestWithoutOutageAndBelowCapacityNothingIsRetried(t *testing.T) {
	r := mustRun(t, Options{Jobs: 1000, Arrival: 50, Capacity: 1000, Seed: 7})
	if r.Wasted != 0 || r.WaitMax != 0 || r.Recovery != nil || r.Attempts != 1000 {
		t.Errorf("%+v", r)
	}
	if seconds := float64(r.End) / 1000; math.Abs(seconds-20) > 3 {
		t.Errorf("1,000 jobs at 50/s took %.1f s", seconds)
	}
}

func TestTheSameSeedIsTheSameRunAndAnotherIsNot(t *testing.T) {
	o := Default()
	o.Jobs = 2000
	first := mustRun(t, o)
	if !reflect.DeepEqual(first, mustRun(t, o)) {
		t.Error("the same seed gave another run")
	}
	o.Seed++
	if reflect.DeepEqual(first.Slots, mustRun(t, o).Slots) {
		t.Error("another seed gave the same run")
	}
}

func TestJitterSpreadsAHerd(t *testing.T) {
	o := Options{Jobs: 2000, To: job.Minute, Capacity: 100}
	o.Retry = retry(t, `{"curve":{"kind":"exponential","jitter":"none"}}`)
	herd := mustRun(t, o)
	o.Retry = retry(t, `{"curve":{"kind":"exponential","jitter":"full"}}`)
	spread := mustRun(t, o)
	if herd.PeakAfter != 2000 || spread.PeakAfter > 200 {
		t.Errorf("the target saw %d/s without jitter, %d/s with", herd.PeakAfter, spread.PeakAfter)
	}
	if *herd.Recovery < job.Hour || *spread.Recovery > 10*job.Minute || herd.Wasted < spread.Wasted {
		t.Errorf("recovered after %s with %d wasted without jitter, after %s with %d with it",
			*herd.Recovery, herd.Wasted, *spread.Recovery, spread.Wasted)
	}
}

func TestAPolicyThatWouldNotEndIsStopped(t *testing.T) {
	o := Options{Jobs: 1, To: job.Day, Capacity: 1, Retry: retry(t, `{"limit":"unlimited","curve":{"kind":"immediate"}}`)}
	if _, err := run(o, 1000); job.KindOf(err) != job.OverLimit || !strings.Contains(err.Error(), "1 of 1 jobs are still open") {
		t.Error(err)
	}
}

func TestEverythingWrongIsNamedAtOnce(t *testing.T) {
	_, err := Run(Options{Arrival: -1, From: 2, To: 1})
	var each job.Problems
	if !errors.As(err, &each) || len(each) != 4 {
		t.Errorf("%v", err)
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	for _, arrival := range []float64{math.NaN(), math.Inf(1), 1e-9} {
		o := Default()
		o.Arrival = arrival
		if o.Validate() == nil {
			t.Errorf("arrival %v passed", arrival)
		}
	}
}

func TestOutagesAreReadAsRanges(t *testing.T) {
	if from, to, err := ParseOutage("90s..PT6M"); err != nil || from != 90*job.Second || to != 6*job.Minute {
		t.Error(from, to, err)
	}
	for _, s := range []string{"", "5m", "5m-6m", "..", "x..1m", "1m..x"} {
		if _, _, err := ParseOutage(s); job.KindOf(err) != job.Invalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestThePictureAndTheJSONShowTheRun(t *testing.T) {
	r := mustRun(t, Default())
	var svg bytes.Buffer
	if err := r.WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">outage<", ">open jobs<", ">attempts<", ">capacity of the target<", r.Scene()} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
	b, err := json.Marshal(r)
	for _, want := range []string{`"wasted_attempts":`, `"recovery_ms":`, `"peak_retries_per_second":`, `"dead":`, `"slots":[{"at_ms":0,`} {
		if err != nil || !bytes.Contains(b, []byte(want)) {
			t.Errorf("%v: the JSON lacks %s", err, want)
		}
	}
}

func BenchmarkAHundredThousandJobs(b *testing.B) {
	for b.Loop() {
		r, err := Run(Options{Jobs: 100_000, Arrival: 200, From: job.Minute, To: 6 * job.Minute, Capacity: 400})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Attempts), "attempts")
	}
}

func TestRulesAreNotLookedAt(t *testing.T) {
	o := Default()
	o.Jobs = 500
	plain, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Retry.Rules = &job.Rules{{When: job.When{Message: "refused"}, Do: job.DoDead}, {Do: job.DoHold, Delay: job.Hour}}
	ruled, err := Run(o)
	if err != nil || ruled.Attempts != plain.Attempts || ruled.Dead != plain.Dead {
		t.Errorf("%+v, %v, want %+v", ruled, err, plain)
	}
}
