package result

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTheMedianIsTheMiddle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		samples []float64
		median  float64
	}{
		{[]float64{5}, 5}, {[]float64{9, 1}, 5}, {[]float64{3, 100, 1}, 3}, {[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := spreadOf(c.samples); got.Median != c.median || got.Runs != len(c.samples) {
			t.Errorf("%v: %+v, expected median %v", c.samples, got, c.median)
		}
	}
	if s := spreadOf([]float64{3, 100, 1}); s.Min != 1 || s.Max != 100 {
		t.Errorf("%+v", s)
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 7: "7", 0.6: "0.600", 1.234: "1.23", 12.34: "12.3", 99.96: "100", 999.6: "1,000", 1234567: "1,234,567", -45678: "-45,678",
	} {
		if got := Number(v); got != want {
			t.Errorf("%v: %q, expected %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{512: "512 B", 1536: "1.50 KiB", 5 << 20: "5 MiB"} {
		if got := bytesText(v); got != want {
			t.Errorf("%v: %q, expected %q", v, got, want)
		}
	}
}

// sample has two classes; in D3 a peer is faster, in D1 an even faster one of
// another class must not be compared with it.
func sample() *File {
	f := &File{
		Started:  time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Settings: Settings{Runs: 3, Seconds: 2, Backlog: 100, Storm: 10, Rate: 200, Connections: 64, Payload: 128, Phases: []string{"singles", "bulk", "storm"}},
		Systems: []System{
			{Name: "Reprise always", Class: "D3", ClassAbout: "synced", Bulk: "API", Retry: "yes", Versions: "1"},
			{Name: "Slow", Class: "D3", ClassAbout: "synced", Versions: "2"},
			{Name: "Fast", Class: "D3", ClassAbout: "synced", Bulk: "pipelined", Retry: "yes", Versions: "3"},
			{Name: "Careless", Class: "D1", ClassAbout: "buffered", Bulk: "API", Retry: "yes", Versions: "4"},
			{Name: "Absent", Class: "D0", Missing: "no package\nof that name"},
		},
	}
	rates := map[string][]float64{
		"Reprise always": {1000, 1300, 1100}, "Slow": {400, 500, 450}, "Fast": {2200, 1200, 2500}, "Careless": {90_000, 91_000, 95_000},
	}
	for _, s := range f.Systems {
		for i, rate := range rates[s.Name] {
			f.Runs = append(f.Runs, Run{System: s.Name, Number: i + 1, Figures: []Figure{
				{Phase: "singles", Name: "single enqueues", Unit: "jobs/s", Value: rate, Cost: &Cost{ServerCPU: float64(i), WrittenBytes: 2048, OtherShare: 0.25}},
				{Phase: "singles", Name: "answer p50", Unit: "ms", Value: 1000 / rate},
				{Phase: "storm", Name: "shortest wait", Unit: "s", Value: 5000 / rate},
			}})
		}
	}
	return f
}

func TestComparisonsStayInsideAClass(t *testing.T) {
	t.Parallel()
	f := sample()
	c := f.Compare("singles", "single enqueues", "D3")
	var names []string
	for _, row := range c.Rows {
		names = append(names, row.System.Name)
	}
	if !reflect.DeepEqual(names, []string{"Fast", "Reprise always", "Slow"}) {
		t.Errorf("rows %v", names)
	}
	if leads := c.Ahead(); !reflect.DeepEqual(leads, []Lead{{Name: "Fast", Factor: 2, Overlap: true}}) {
		t.Errorf("leads %+v", leads)
	}
	if cost := c.Rows[0].Cost; cost.ServerCPU != 1 || cost.WrittenBytes != 2048 {
		t.Errorf("cost %+v", cost)
	}
	if leads := f.Compare("singles", "single enqueues", "D1").Ahead(); leads != nil {
		t.Errorf("nothing of ours is in D1, yet %+v is ahead", leads)
	}
}

func TestOfTimesTheShorterIsAhead(t *testing.T) {
	t.Parallel()
	c := sample().Compare("singles", "answer p50", "D3")
	if c.Rows[0].System.Name != "Fast" || c.Rows[2].System.Name != "Slow" {
		t.Errorf("rows %+v", c.Rows)
	}
	if leads := c.Ahead(); len(leads) != 1 || math.Abs(leads[0].Factor-2) > 1e-9 {
		t.Errorf("leads %+v", leads)
	}
	if leads := sample().Compare("storm", "shortest wait", "D3").Ahead(); leads != nil {
		t.Errorf("a figure that only explains has leads: %+v", leads)
	}
}

func TestTheDocumentNamesPeersThatAreAheadAndWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := sample()
	f.Runs[0].Failures = []Failure{{Phase: "drain", Error: "it took\ntoo long"}}
	f.Runs[0].Checks = []Check{{Phase: "storm", Delivered: 10, Duplicates: 3}}
	var text strings.Builder
	if err := f.WriteDocument(&text, "peers.json", func(p string) string { return "about " + p }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Measured on 4 March 2026",
		"| D3 | singles | single enqueues | Fast 2× (ranges overlap) |",
		"Ahead of Reprise here: Fast 2× (ranges overlap).",
		"| **Reprise always** | 1,100 | 1,000..1,300 (3) | 1 s | 2 KiB | 0 s |",
		"| Careless | 91,000 |",
		"D3, Slow: its client has no bulk API.",
		"D3, Slow: no retry with a delay.",
		"- Absent could not be installed: no package of that name",
		"- Reprise always, run 1, drain failed: it took too long",
		"3 of 10 jobs were delivered more than once",
		"About singles.",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the document lacks %q", want)
		}
	}
	if strings.Contains(text.String(), "Careless 8") || strings.Contains(text.String(), "nowhere") {
		t.Error("a system is said to be ahead of one in another class, or nobody of anybody")
	}
}

func TestASavedFileIsContinuedOnlyUnderTheSameConditions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "below", "r.json")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("error %v", err)
	}
	f := sample()
	if got, err := Continue(path, f); err != nil || got != f {
		t.Fatalf("without a file: %v", err)
	}
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Continue(path, sample())
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Fatalf("%v, %+v", err, got)
	}
	if !got.Has("Fast", 3) || got.Has("Fast", 4) || got.Has("Absent", 1) {
		t.Error("the runs that are there are not known")
	}
	other := sample()
	other.Settings.Seconds = 1
	if _, err := Continue(path, other); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("error %v", err)
	}
	other = sample()
	other.Machine.CPU = "another"
	if _, err := Continue(path, other); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("error %v", err)
	}
}

func TestASystemIsKnownOnce(t *testing.T) {
	t.Parallel()
	f := sample()
	f.SetSystem(System{Name: "Slow", Class: "D3", Versions: "9"})
	f.SetSystem(System{Name: "New", Class: "D3"})
	if len(f.Systems) != 6 || f.Systems[1].Versions != "9" || f.Systems[5].Name != "New" {
		t.Errorf("%+v", f.Systems)
	}
}
