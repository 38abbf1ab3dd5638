package outage

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// FuzzRun simulates any policy in any outage. Every job is done or dead in the
// end, all attempts are accounted for, also in the parts that are shown, and
// the picture is XML; a policy that would not end is refused.
func FuzzRun(f *testing.F) {
	f.Add(`{"limit":3,"curve":{"kind":"constant","delay":"1s"}}`, "1s..5s", 20, 10.0, 3, uint64(1))
	f.Add(`{"curve":{"kind":"immediate"},"limit":"unlimited"}`, "0..1ms", 5, 0.0, 1, uint64(2))
	f.Add(`{"curve":{"kind":"uniform"},"max_age":"1h"}`, "1m..6m", 40, 50.0, 100, uint64(3))
	f.Add(`{"curve":{"kind":"list","delays":[0,"1ms","142808y"]}}`, "0..142808y", 2, 0.001, 1, uint64(4))
	f.Add(`{"limit":"none","place":"back"}`, "5s..5s", 3, 1e6, 2, uint64(5))
	f.Add(`{"curve":{"kind":"exponential","unit":"1s","factor":1e300,"cap":"285616y","jitter":"decorrelated"}}`, "1h..PT2H", 4, 1.0, 1, uint64(6))
	const attemptsMax = 5000
	f.Fuzz(func(t *testing.T, policy, outage string, jobs int, arrival float64, capacity int, seed uint64) {
		retry, err := job.ParseRetry([]byte(policy))
		if err != nil {
			return
		}
		from, to, err := ParseOutage(outage)
		if err != nil {
			if job.KindOf(err) != job.Invalid {
				t.Errorf("%q is refused with %v", outage, err)
			}
			return
		}
		o := Options{Retry: retry, Jobs: jobs, Arrival: arrival, From: from, To: to, Capacity: capacity, Seed: seed}
		if jobs > 200 {
			o.Jobs = 200
		}
		r, err := run(o, attemptsMax)
		if err != nil {
			if k := job.KindOf(err); k != job.Invalid && k != job.OverLimit || k == job.Invalid != (o.Validate() != nil) {
				t.Errorf("%+v is refused with %v", o, err)
			}
			return
		}
		if r.Done+r.Dead != o.Jobs || r.Attempts != r.Done+r.Wasted || r.Wasted != r.WastedOutage+r.WastedOverload || r.WastedOutage > 0 && from == to {
			t.Errorf("%+v: %+v", o, r)
		}
		shows(t, r)
	})
}

func shows(t *testing.T, r *Report) {
	t.Helper()
	attempts, retries := 0, 0
	for i, slot := range r.Slots {
		if i > 0 && slot.At <= r.Slots[i-1].At {
			t.Fatalf("part %d begins at %d", i, slot.At)
		}
		attempts, retries = attempts+slot.Attempts, retries+slot.Retries
	}
	if attempts != r.Attempts || retries > attempts || len(r.Slots) > slotsMax || len(r.Slots) == 0 || r.Slots[len(r.Slots)-1].Open != 0 {
		t.Errorf("%d parts with %d attempts of %d, %d retries: %+v", len(r.Slots), attempts, r.Attempts, retries, r)
	}
	if _, err := json.Marshal(r); err != nil || r.Scene() == "" || r.Policy() == "" {
		t.Errorf("%v, %q, %q", err, r.Scene(), r.Policy())
	}
	var picture bytes.Buffer
	if err := r.WriteSVG(&picture); err != nil {
		t.Fatal(err)
	}
	if text := picture.String(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("a coordinate is no number")
	}
	for d := xml.NewDecoder(&picture); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}
