package job

import (
	"math"
	"strings"
	"testing"
)

func TestParseDurationReadsEveryFormOfTheSpec(t *testing.T) {
	for text, want := range map[string]Millis{
		"0": 0, "1500": 1500, "0s": 0, "4611686018427387904": MaxMillis, "4611686018427387.904s": MaxMillis,
		"250ms": 250, "15s": 15000, "1m30s": 90000, "12.5s": 12500, "1.5h": 5400000, ".5s": 500, "1.s": 1000,
		"7d": 7 * Day, "1d12h": 36 * Hour, "0.5d": 12 * Hour, "72h": 3 * Day, "1h1m1s1ms": 3661001,
		"0.0019s": 1, "0.9ms": 0, "1.0009s": 1000, "0.333333333333333333333s": 333,
		"PT6S": 6000, "pt6s": 6000, "P1D": Day, "P2W": 14 * Day, "P1DT2H": 26 * Hour, "PT1M30.5S": 90500,
		"PT0,25S": 250, "PT0S": 0, "P0D": 0, "PT1.5H": 90 * Minute, "PT90M": 90 * Minute,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseDurationRefusesWithTheReasonAndTheQuotedText(t *testing.T) {
	for text, why := range map[string]string{
		"":                         "it is empty",
		"-5s":                      "cannot be negative",
		"-1":                       "cannot be negative",
		"5x":                       `unknown unit "x"`,
		"5 s":                      `unknown unit " s"`,
		"5us":                      `unknown unit "us"`,
		"5S":                       `unknown unit "S"`,
		"1m 30s":                   `unknown unit "m "`,
		"5s\n":                     `unknown unit "s\n"`,
		"NaN":                      `a number is missing at "NaN"`,
		"inf":                      `a number is missing at "inf"`,
		"+5s":                      `a number is missing at "+5s"`,
		"s":                        `a number is missing at "s"`,
		".":                        "a number is missing",
		".s":                       "a number is missing",
		"1..5s":                    "the last number has no unit|unknown unit|whole",
		"1.5":                      "must be whole",
		"1m30":                     "the last number has no unit",
		"1e3":                      `unknown unit "e"`,
		"4611686018427387905":      "too long",
		"99999999999999999999":     "too long",
		"18446744073709551615":     "too long", // -1 of 64 bits
		"18446744073709551616":     "too long", // 0 of 64 bits
		"18446744073709551621":     "too long",
		"184467440737095516160":    "too long",
		"213503982335d":            "too long", // more than 64 bits of milliseconds
		"4611686018427387.905s":    "too long",
		"P53375995583DT23H":        "too long",
		"53375995584d":             "too long",
		"9223372036854775807d":     "too long",
		"4611686018427387904ms1ms": "too long",
		"P":                        "names no time",
		"PT":                       "names no time",
		"P1DT":                     "names no time",
		"P1Y":                      "no fixed length",
		"P1M":                      "no fixed length",
		"P1H":                      "unknown or out of order",
		"PT1D":                     "unknown or out of order",
		"PT1S1M":                   "unknown or out of order",
		"PT1M1M":                   "unknown or out of order",
		"PT1.5M3S":                 "only the last part",
		"P1":                       "no unit",
		"PTS":                      "a number is missing",
		"P-1D":                     "a number is missing",
		"PT1ST":                    "a number is missing",
	} {
		got, err := ParseDuration(text)
		if err == nil {
			t.Errorf("%q was read as %v", text, got)
			continue
		}
		found := false
		for _, part := range strings.Split(why, "|") {
			found = found || strings.Contains(err.Error(), part)
		}
		if !found || KindOf(err) != Invalid || !strings.Contains(err.Error(), durationHelp) {
			t.Errorf("%q: %v; want %q", text, err, why)
		}
	}
}

func TestTheRefusalOfAnUnknownUnitTellsWhatToUse(t *testing.T) {
	_, err := ParseDuration("5x")
	const want = `duration "5x": unknown unit "x"; use ms, s, m, h or d, ISO 8601 such as PT6S, or a bare number of milliseconds`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestALongTextDoesNotFillTheErrorMessage(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 1<<20), "5" + strings.Repeat("é", 1<<20)} {
		if _, err := ParseDuration(text); err == nil || len(err.Error()) > 500 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
}

func TestMillisPrintsWhatParseDurationReads(t *testing.T) {
	for m, want := range map[Millis]string{
		0: "0s", 1: "1ms", 250: "250ms", Second: "1s", 12500: "12.5s", 1001: "1.001s", 1010: "1.01s",
		90 * Second: "1m30s", 7 * Day: "7d", 36 * Hour: "1d12h", Hour: "1h", Minute + 5: "1m0.005s",
		-1500: "-1.5s", MaxMillis: "53375995583d15h36m27.904s", math.MinInt64: "-106751991167d7h12m55.808s",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d prints %q, want %q", int64(m), got, want)
		}
	}
}

func TestAddStopsAtNothingAndAtTheLongestTime(t *testing.T) {
	for _, v := range []struct{ a, b, want Millis }{
		{1, 2, 3},
		{5, -2, 3},
		{2, -5, 0},
		{-5, 7, 2},
		{MaxMillis, 1, MaxMillis},
		{1, MaxMillis, MaxMillis},
		{math.MaxInt64, math.MaxInt64, MaxMillis},
		{math.MinInt64, math.MinInt64, 0},
		{math.MinInt64, math.MaxInt64, 0},
		{math.MaxInt64, math.MinInt64, 0},
		{math.MaxInt64, -1, MaxMillis},
		{MaxMillis, -1, MaxMillis - 1},
		{0, math.MinInt64, 0},
	} {
		if got := v.a.Add(v.b); got != v.want {
			t.Errorf("%d + %d = %d, want %d", int64(v.a), int64(v.b), int64(got), int64(v.want))
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{
		"", "0", "1500", "1m30s", "12.5s", "7d", "1d12h", "PT6S", "P1DT2H", "PT1M30.5S", "P2W", "pt0,5s",
		"-5s", "NaN", "5x", "4611686018427387904", "99999999999999999999d", "1e9", "P1M", "\x00", "½s",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseDuration(text)
		if err != nil {
			if m != 0 || KindOf(err) != Invalid {
				t.Fatalf("%q: %d with %v", text, m, err)
			}
			return
		}
		if m < 0 || m > MaxMillis {
			t.Fatalf("%q is read as %d", text, int64(m))
		}
		if again, err := ParseDuration(m.String()); err != nil || again != m {
			t.Fatalf("%q prints %s, which is read as %d, %v", text, m, again, err)
		}
	})
}
