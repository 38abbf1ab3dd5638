package policy

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// read reads a policy written as a query would be: curve=list delays=1s,2s.
func read(t *testing.T, line string) job.Retry {
	t.Helper()
	r, _, err := Read(pairs(line), "")
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return r
}

func pairs(line string) map[string][]string {
	values := map[string][]string{}
	for _, pair := range strings.Fields(line) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = append(values[name], value)
	}
	return values
}

// bounds are the seconds of the first rows, least and most.
func bounds(p Preview) (list [][2]job.Millis) {
	for _, row := range p.Rows {
		list = append(list, [2]job.Millis{row.Min / job.Second, row.Max / job.Second})
	}
	return list
}

func TestEveryNumberOfTheSeedsComesOut(t *testing.T) {
	t.Run("Zizq defaults: 25 retries, roughly three weeks", func(t *testing.T) {
		p := Of(job.Retry{}, 0)
		last := p.Rows[24]
		if *p.Limit != 25 || len(p.Rows) != 25 || last.TotalMin != 1_763_395_000 || last.TotalMax != 1_772_395_000 {
			t.Errorf("%+v", last)
		}
		if weeks := float64(last.TotalMin) / float64(7*job.Day); weeks < 2.5 || weeks > 3.5 {
			t.Errorf("%f weeks", weeks)
		}
	})
	for _, tt := range []struct {
		name, params string
		rows         int
		want         [][2]job.Millis
	}{
		{"Zizq: t = B + a^E + a * rand(0 to J)", "base=15s exponent=4 jitter=30s limit=4", 0, [][2]job.Millis{{15, 15}, {16, 46}, {31, 91}, {96, 186}}},
		{"Fluent Bit: base 3, cap 30", "curve=uniform base=3s cap=30s limit=4", 0, [][2]job.Millis{{3, 6}, {3, 12}, {3, 24}, {3, 30}}},
		{"Fluent Bit's defaults: base 5, cap 2000", "curve=uniform limit=unlimited", 10, [][2]job.Millis{
			{5, 10}, {5, 20}, {5, 40}, {5, 80}, {5, 160}, {5, 320}, {5, 640}, {5, 1280}, {5, 2000}, {5, 2000},
		}},
		{
			"correlate: 2^0, 2^1, 2^2, 2^3 minutes, at most 10", "curve=exponential unit=1m factor=2 cap=10m jitter=none limit=5", 0,
			[][2]job.Millis{{60, 60}, {120, 120}, {240, 240}, {480, 480}, {600, 600}},
		},
		{"Ziggurat: linear backoff, three times", "curve=constant delay=5s limit=3", 0, [][2]job.Millis{{5, 5}, {5, 5}, {5, 5}}},
		{"GridServer: at the front, at once", "curve=immediate limit=2", 0, [][2]job.Millis{{0, 0}, {0, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := bounds(Of(read(t, tt.params), tt.rows))
			if !equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestRowsHoldTheVectorsOfTheSpecification(t *testing.T) {
	b, err := os.ReadFile("../rule/testdata/backoff.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Waits []struct {
			Policy json.RawMessage
			Retry  int
			Min    job.Millis `json:"min_ms"`
			Max    job.Millis `json:"max_ms"`
		}
	}
	if err := json.Unmarshal(b, &v); err != nil || len(v.Waits) < 20 {
		t.Fatalf("%v, %d vectors", err, len(v.Waits))
	}
	for _, w := range v.Waits {
		if w.Retry > RowsMax { // no preview shows it; package rule's test does
			continue
		}
		r, _, err := Read(map[string][]string{"policy": {`{"limit":"unlimited","curve":` + string(w.Policy) + `}`}}, "")
		if err != nil {
			t.Fatal(err)
		}
		row := Of(r, w.Retry).Rows[w.Retry-1]
		if row.Retry != w.Retry || row.Min != w.Min || row.Max != w.Max {
			t.Errorf("%s: %+v, want %d..%d", w.Policy, row, w.Min, w.Max)
		}
	}
}

func TestTheJSONIsThatOfTheSpecification(t *testing.T) {
	for _, tt := range []struct{ params, want string }{
		{"limit=1", `{"limit":1,"rows":[{"retry":1,"min_ms":15000,"mean_ms":15000,"max_ms":15000,"total_min_ms":15000,"total_max_ms":15000}]}`},
		{"limit=none", `{"limit":0,"rows":[]}`},
		{"curve=immediate limit=unlimited rows=1", `{"limit":null,"rows":[{"retry":1,"min_ms":0,"mean_ms":0,"max_ms":0,"total_min_ms":0,"total_max_ms":0}]}`},
	} {
		r, rows, err := Read(pairs(tt.params), "")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(Of(r, rows)); err != nil || string(b) != tt.want {
			t.Errorf("%s: %s %v, want %s", tt.params, b, err, tt.want)
		}
	}
}

func TestHowManyRowsThereAre(t *testing.T) {
	for _, tt := range []struct {
		params string
		rows   int
		want   int
		says   string
	}{
		{"", 0, 25, "dead when its 25 retries have failed too: 20d9h49m55s to 20d12h19m55s"},
		{"", 3, 3, "first 3 retries of 25"},
		{"limit=3", 9, 3, "dead when its 3 retries"},
		{"limit=unlimited", 0, 25, "no limit"},
		{"limit=unlimited", 30, 30, "first 30 retries"},
		{"limit=unlimited", 9999, RowsMax, "no limit"},
		{"limit=4000000000", 0, RowsMax, "first 1000 retries of 4000000000"},
		{"limit=none", 0, 0, "first failure is final"},
		{"curve=constant delay=1m max-age=10m", 0, 10, "At most 10 retries"},
		{"curve=constant delay=1h max-age=10m", 0, 0, "first failure is final"},
		{"curve=constant delay=1m max-age=10m limit=10", 0, 10, "dead when its 10 retries have failed too: 10m after"},
		{"max-age=2m", 0, 3, "only the first 2 cannot pass max_age 2m"},
	} {
		p := Of(read(t, tt.params), tt.rows)
		if len(p.Rows) != tt.want || !strings.Contains(p.Ending(), tt.says) {
			t.Errorf("%s: %d rows, want %d: %s", tt.params, len(p.Rows), tt.want, p.Ending())
		}
	}
}

func TestEveryProblemIsNamedAtOnceByTheNameItWasGivenUnder(t *testing.T) {
	for _, tt := range []struct {
		values map[string][]string
		says   []string
	}{
		{
			map[string][]string{"base": {"-1s"}, "exponent": {"x"}, "limit": {"many"}, "max-age": {"0"}, "rows": {"0"}, "cup": {"1m"}},
			[]string{"--base: ", "--exponent: must be a finite number", "--limit: ", "--max-age: must be above 0", "--rows: must be a whole number from 1 to 1000", "--cup: is not known; use"},
		},
		{map[string][]string{"curve": {"zigzag"}}, []string{"--curve: ", "use one of polynomial, uniform"}},
		{map[string][]string{"curve": {"uniform"}, "base": {"1m"}, "cap": {"1s"}}, []string{"--cap: 1s is below base 1m"}},
		{map[string][]string{"curve": {"list"}, "delays": {"1s,2x"}}, []string{"--delays[1]: ", "unknown unit"}},
		{map[string][]string{"curve": {"linear"}}, []string{"--base: is missing", "--step: is missing"}},
		{map[string][]string{"unit": {"1s"}}, []string{"--unit: is no field of kind polynomial"}},
		{map[string][]string{"limit": {"1", "2"}}, []string{"--limit: is there twice"}},
		{
			map[string][]string{"policy": {`{"limit":-1,"curve":{"kind":"uniform","base":"x"}}`}, "limit": {"1"}},
			[]string{"--policy.limit: ", "--policy.curve.base: ", "--limit: is given beside policy"},
		},
		{map[string][]string{"policy": {`{`}}, []string{"--policy: is not JSON"}},
		{map[string][]string{"policy": {``}}, []string{"--policy: is not JSON"}},
		{map[string][]string{"exponent": {""}, "factor": {`{"a":1}`}}, []string{"--exponent: must be", "--factor: is no field"}},
	} {
		_, _, err := Read(tt.values, "--")
		var each job.Problems
		if job.KindOf(err) != job.Invalid || !errors.As(err, &each) {
			t.Fatalf("%v: %v", tt.values, err)
		}
		for _, want := range tt.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v lacks %q", tt.values, err, want)
			}
		}
		if len(each) < len(tt.says)-1 {
			t.Errorf("%v: only %d problems: %v", tt.values, len(each), err)
		}
	}
}

func TestAHostileQueryGetsAShortAnswer(t *testing.T) {
	values := map[string][]string{}
	for i := range 10_000 {
		values[strings.Repeat("x", i%300)+strconv.Itoa(i)] = []string{""}
	}
	if _, _, err := Read(values, ""); err == nil || len(err.Error()) > 20_000 {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

func TestWhatIsReadIsThePolicyOfTheSameShape(t *testing.T) {
	for params, want := range map[string]string{
		"": "limit: 25, curve: {kind: polynomial, base: 15s, exponent: 4, count: previous, jitter: 30s}",
		"limit=unlimited exponent=1.5 max-age=3d":                   "limit: unlimited, max_age: 3d, curve: {kind: polynomial, base: 15s, exponent: 1.5, count: previous, jitter: 30s}",
		"curve=list delays=5s,1m jitter=±10%":                       "limit: 25, curve: {kind: list, delays: [5s, 1m], jitter: ±10%}",
		"curve=exponential jitter=decorrelated offset=2 factor=1.5": "limit: 25, curve: {kind: exponential, cap: 1h, unit: 1s, factor: 1.5, offset: 2, jitter: decorrelated}",
		"curve=linear base=1500 step=PT6S":                          "limit: 25, curve: {kind: linear, base: 1.5s, step: 6s, jitter: none}",
	} {
		if got := Line(read(t, params)); got != want {
			t.Errorf("%s: %s, want %s", params, got, want)
		}
	}
}
