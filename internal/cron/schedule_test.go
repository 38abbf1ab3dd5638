package cron_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/job"
)

const layout = "2006-01-02 15:04:05 -0700"

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := cron.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func mustParse(t testing.TB, expression string) *cron.Expression {
	t.Helper()
	e, err := cron.Parse(expression)
	if err != nil {
		t.Fatalf("%q: %v", expression, err)
	}
	return e
}

func at(t testing.TB, text string, zone *time.Location) job.Millis {
	t.Helper()
	moment, err := time.ParseInLocation("2006-01-02 15:04:05", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return job.Millis(moment.UnixMilli())
}

func show(m job.Millis, zone *time.Location) string {
	return time.UnixMilli(int64(m)).In(zone).Format(layout)
}

// The ticks of an expression from a wall time on, in that zone.
var tables = []struct {
	name, expression, zone, after string
	want                          []string
}{
	{"every five minutes", "*/5 * * * *", "UTC", "2026-03-01 10:02:03", []string{"2026-03-01 10:05:00", "2026-03-01 10:10:00"}},
	{"a tick is not its own successor", "5 * * * *", "UTC", "2026-03-01 10:05:00", []string{"2026-03-01 11:05:00"}},
	{"seconds in front", "*/20 59 23 31 12 *", "UTC", "2026-12-31 23:59:30", []string{"2026-12-31 23:59:40", "2027-12-31 23:59:00"}},
	{"a list of ranges with steps", "0 9-17/4,20 * * *", "UTC", "2026-03-01 13:00:00", []string{"2026-03-01 17:00:00", "2026-03-01 20:00:00", "2026-03-02 09:00:00"}},
	{"a step without a range goes to the end", "50/4 * * * *", "UTC", "2026-03-01 10:00:00", []string{"2026-03-01 10:50:00", "2026-03-01 10:54:00", "2026-03-01 10:58:00", "2026-03-01 11:50:00"}},
	{"names in any case", "0 0 * feb-Apr mon", "UTC", "2026-04-26 00:00:00", []string{"2026-04-27 00:00:00", "2027-02-01 00:00:00"}},
	{"Friday to Sunday", "0 0 * * FRI-SUN", "UTC", "2026-03-04 00:00:00", []string{"2026-03-06 00:00:00", "2026-03-07 00:00:00", "2026-03-08 00:00:00", "2026-03-13 00:00:00"}},
	{"7 is Sunday", "0 0 * * 7", "UTC", "2026-03-04 00:00:00", []string{"2026-03-08 00:00:00", "2026-03-15 00:00:00"}},
	{"day of month or day of week", "0 0 13 * 5", "UTC", "2026-03-01 00:00:00", []string{"2026-03-06 00:00:00", "2026-03-13 00:00:00", "2026-03-20 00:00:00"}},
	{"a step is no star: one field is enough", "0 0 */2 * 1", "UTC", "2026-03-01 00:00:00", []string{"2026-03-02 00:00:00", "2026-03-03 00:00:00"}},
	{"a plus asks for both fields", "0 0 */2 * +1", "UTC", "2026-03-01 00:00:00", []string{"2026-03-09 00:00:00", "2026-03-23 00:00:00"}},
	{"a year", "0 30 12 L 2 * 2028-2032/4", "UTC", "2026-03-01 00:00:00", []string{"2028-02-29 12:30:00", "2032-02-29 12:30:00"}},
	{"a year that is far off", "0 0 0 1 1 ? 2090", "UTC", "2026-03-01 00:00:00", []string{"2090-01-01 00:00:00"}},
	{"a question mark is a star", "0 0 13 * ?", "UTC", "2026-03-01 00:00:00", []string{"2026-03-13 00:00:00", "2026-04-13 00:00:00"}},
	{"the last day", "0 0 L * *", "UTC", "2028-02-01 00:00:00", []string{"2028-02-29 00:00:00", "2028-03-31 00:00:00"}},
	{"three before the last day", "0 0 L-3 * *", "UTC", "2026-02-01 00:00:00", []string{"2026-02-25 00:00:00", "2026-03-28 00:00:00"}},
	{"the working day nearest to the 15th", "0 0 15W * *", "UTC", "2026-02-01 00:00:00", []string{"2026-02-16 00:00:00", "2026-03-16 00:00:00", "2026-04-15 00:00:00"}},
	{"the working day nearest to the 1st stays in its month", "0 0 1W * *", "UTC", "2026-07-02 00:00:00", []string{"2026-08-03 00:00:00"}},
	{"the working day nearest to the 31st stays in its month", "0 0 31W * *", "UTC", "2026-05-01 00:00:00", []string{"2026-05-29 00:00:00", "2026-07-31 00:00:00"}},
	{"the last working day", "0 0 LW * *", "UTC", "2026-01-01 00:00:00", []string{"2026-01-30 00:00:00", "2026-02-27 00:00:00", "2026-03-31 00:00:00"}},
	{"the last Friday", "0 0 * * 5L", "UTC", "2026-02-01 00:00:00", []string{"2026-02-27 00:00:00", "2026-03-27 00:00:00"}},
	{"the third Friday", "0 0 * * FRI#3", "UTC", "2026-02-01 00:00:00", []string{"2026-02-20 00:00:00", "2026-03-20 00:00:00"}},
	{"the fifth Monday of a February", "0 0 * 2 1#5", "UTC", "2026-01-01 00:00:00", []string{"2044-02-29 00:00:00", "2072-02-29 00:00:00"}},
	{"29 February over 2100", "0 0 29 2 *", "UTC", "2096-02-29 00:00:00", []string{"2104-02-29 00:00:00"}},
	{"the last day of a leap year", "30 2 * * *", "Europe/Berlin", "2040-12-31 12:00:00", []string{"2041-01-01 02:30:00", "2041-01-02 02:30:00"}},
	{"an alias", "@weekly", "UTC", "2026-03-01 00:00:00", []string{"2026-03-08 00:00:00"}},
	{"an offset that is not of whole hours", "0 6 * * *", "Asia/Kathmandu", "2026-03-01 06:00:00", []string{"2026-03-02 06:00:00"}},

	// Berlin: 29 March 2026 02:00 -> 03:00, 25 October 2026 03:00 -> 02:00.
	{"an hour in the gap comes once, at its end", "30 2 * * *", "Europe/Berlin", "2026-03-28 02:30:00", []string{"2026-03-29 03:00:00", "2026-03-30 02:30:00"}},
	{"quarters in the gap do not come", "*/15 2 * * *", "Europe/Berlin", "2026-03-28 02:45:00", []string{"2026-03-30 02:00:00"}},
	{"the end of the gap is not doubled", "0,30 2,3 * * *", "Europe/Berlin", "2026-03-28 03:30:00", []string{"2026-03-29 03:00:00", "2026-03-29 03:30:00", "2026-03-30 02:00:00"}},
	{"every hour goes on over the gap", "30 * * * *", "Europe/Berlin", "2026-03-29 00:30:00", []string{"2026-03-29 01:30:00", "2026-03-29 03:30:00"}},
	{"every second hour leaves the gap out", "0 */2 * * *", "Europe/Berlin", "2026-03-29 00:00:00", []string{"2026-03-29 04:00:00"}},
	{"a repeated hour comes once, the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24 02:30:00", []string{"2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00"}},
	{"halves of a repeated hour come twice", "*/30 2,3 * * *", "Europe/Berlin", "2026-10-24 03:30:00", []string{"2026-10-25 02:00:00 +0200", "2026-10-25 02:30:00 +0200", "2026-10-25 02:00:00 +0100", "2026-10-25 02:30:00 +0100", "2026-10-25 03:00:00", "2026-10-25 03:30:00"}},
	{"a gap that ends on a day that is not meant", "30 23 * * 6", "America/Nuuk", "2026-03-28 12:00:00", []string{"2026-04-04 23:30:00"}},
	{"every hour comes twice in a repeated hour", "30 * * * *", "Europe/Berlin", "2026-10-25 01:30:00", []string{"2026-10-25 02:30:00 +0200", "2026-10-25 02:30:00 +0100", "2026-10-25 03:30:00"}},
	// New York: 8 March 2026 02:00 -> 03:00, 1 November 2026 02:00 -> 01:00.
	{"New York, the gap", "15 2 * * *", "America/New_York", "2026-03-07 02:15:00", []string{"2026-03-08 03:00:00", "2026-03-09 02:15:00"}},
	{"New York, the repeated hour", "15 1 * * *", "America/New_York", "2026-10-31 01:15:00", []string{"2026-11-01 01:15:00 -0400", "2026-11-02 01:15:00"}},
	{"New York, in real time", "*/30 * * * *", "America/New_York", "2026-11-01 00:30:00", []string{"2026-11-01 01:00:00 -0400", "2026-11-01 01:30:00 -0400", "2026-11-01 01:00:00 -0500", "2026-11-01 01:30:00 -0500", "2026-11-01 02:00:00"}},
	// Lord Howe: 4 October 2026 02:00 -> 02:30, 5 April 2026 02:00 -> 01:30.
	{"half an hour of gap", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 02:15:00", []string{"2026-10-04 02:30:00", "2026-10-05 02:15:00"}},
	{"half an hour again", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 01:45:00", []string{"2026-04-05 01:45:00 +1100", "2026-04-06 01:45:00"}},
	{"half an hour again, in real time", "*/15 * * * *", "Australia/Lord_Howe", "2026-04-05 01:15:00", []string{"2026-04-05 01:30:00 +1100", "2026-04-05 01:45:00 +1100", "2026-04-05 01:30:00 +1030", "2026-04-05 01:45:00 +1030", "2026-04-05 02:00:00"}},
	// Samoa left out 30 December 2011 altogether.
	{"a day that was left out does not come on the next one", "0 12 30 12 *", "Pacific/Apia", "2011-12-01 00:00:00", []string{"2012-12-30 12:00:00"}},
	{"a day that was left out comes at its end if that day is meant, too", "0 12 30,31 12 *", "Pacific/Apia", "2011-12-01 00:00:00", []string{"2011-12-31 00:00:00", "2011-12-31 12:00:00"}},
}

func TestTicks(t *testing.T) {
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			zone := mustZone(t, c.zone)
			s := mustParse(t, c.expression).In(zone)
			from := at(t, c.after[:19], zone)
			for _, want := range c.want {
				next, ok := s.Next(from)
				if got := show(next, zone); !ok || !strings.HasPrefix(got, want) {
					t.Fatalf("after %s comes %s (%t), want %s", show(from, zone), got, ok, want)
				}
				if back, ok := s.Last(next + 999); !ok || back != next {
					t.Fatalf("the last tick until %s is %s (%t)", show(next, zone), show(back, zone), ok)
				}
				from = next
			}
		})
	}
}

func TestDatesThatNeverComeHaveNoTick(t *testing.T) {
	for _, expression := range []string{"0 0 30 2 *", "0 0 31 4,6,9,11 ?", "0 0 31W 2 *", "0 0 1-7 * 1#5", "0 0 1-7 * +1#5", "0 0 L-30 2 *", "0 0 * * L", ", * * * *", "0 0 0 30 2 * 2020"} {
		s := mustParse(t, expression).In(mustZone(t, "Europe/Berlin"))
		if expression == "0 0 1-7 * 1#5" {
			if _, ok := s.Next(0); !ok { // one of the fields is enough
				t.Errorf("%q has no tick", expression)
			}
			continue
		}
		if next, ok := s.Next(1_700_000_000_000); ok {
			t.Errorf("%q comes at %d", expression, next)
		}
		if last, ok := s.Last(1_700_000_000_000); ok {
			t.Errorf("%q came at %d", expression, last)
		}
	}
}

func TestTheLastTickMayBeMonthsAgo(t *testing.T) {
	for _, c := range []struct{ expression, until, want string }{
		{"30 10 1 3 *", "2026-08-15 09:00", "2026-03-01 10:30"},
		{"0 0 31 12 *", "2026-02-10 09:00", "2025-12-31 00:00"},
		{"30 10 1 1 *", "2027-01-01 10:00", "2026-01-01 10:30"},
		{"0 8,20 10 * *", "2026-03-15 09:00", "2026-03-10 20:00"},
		{"0 8,20 10 * *", "2026-03-10 09:00", "2026-03-10 08:00"},
		{"0 8,20 10 * *", "2026-03-10 07:00", "2026-02-10 20:00"},
		{"0 0 L-1 * *", "2026-03-05 09:00", "2026-02-27 00:00"},
	} {
		until, err := time.Parse("2006-01-02 15:04", c.until)
		if err != nil {
			t.Fatal(err)
		}
		last, ok := mustParse(t, c.expression).In(time.UTC).Last(job.Millis(until.UnixMilli()))
		if got := time.UnixMilli(int64(last)).UTC().Format("2006-01-02 15:04"); !ok || got != c.want {
			t.Errorf("%q up to %s: %s, want %s", c.expression, c.until, got, c.want)
		}
	}
}

func TestNoTickAfterTheYear9999(t *testing.T) {
	s := mustParse(t, "* * * * * *").In(time.UTC)
	if next, ok := s.Next(job.MaxMillis); ok {
		t.Errorf("there is a tick at %d", next)
	}
	if _, ok := s.Last(job.MaxMillis); !ok {
		t.Errorf("there is no last tick")
	}
}

func TestRefusals(t *testing.T) {
	for expression, want := range map[string]string{
		"":                       "has 0 fields",
		"* * * *":                "has 4 fields",
		"* * * * * * * *":        "has 8 fields",
		"* * * * * * 5001":       `the year "5001" must be from 1 to 5000`,
		"60 * * * *":             `the minute "60" must be from 0 to 59`,
		"* 24 * * *":             `the hour "24"`,
		"* * 0 * *":              `the day of month "0" must be from 1 to 31`,
		"* * * 13 *":             `the month "13" must be from 1 to 12, or JAN to DEC`,
		"* * * * 8":              `the day of week "8" must be from 0 to 7, or SUN to SAT`,
		"* * * * MOON":           `the day of week "MOON"`,
		"5-1 * * * *":            "begins after its end",
		"*/0 * * * *":            "must have a step from 1 to 65535",
		"*/-1 * * * *":           "must have a step",
		"*/+1 * * * *":           `the minute "*/+1"`,
		"*/99999999999 * * * *":  "must have a step",
		"+5 * * * *":             `the minute "+5"`,
		"? * * * *":              `the minute "?"`,
		"* * 32W * *":            `the day of month "32W"`,
		"* * L-31 * *":           "must be L- and 1 to 30 days",
		"* * L-0 * *":            "must be L- and 1 to 30 days",
		"* * L-x * *":            `the day of month "L-x"`,
		"* * * * 5#6":            "must be a day, # and 1 to 5",
		"* * * * 5#":             "must be a day, # and 1 to 5",
		"* * * * 9L":             `the day of week "9L"`,
		"@every 5m":              "is no alias",
		"@reboot":                "is no alias",
		strings.Repeat("0", 257): "must not be longer than 256 bytes",
	} {
		if _, err := cron.Parse(expression); job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expression, err, want)
		}
	}
	for _, expression := range []string{"* * L-1 * *", "* * * * " + strings.Repeat("0", 256-len("* * * * "))} {
		if _, err := cron.Parse(expression); err != nil {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for _, name := range []string{"", "Local", "Europe/Nowhere", "../../etc/passwd", "/etc/localtime"} {
		if _, err := cron.Zone(name); job.KindOf(err) != job.Invalid {
			t.Errorf("zone %q: %v", name, err)
		}
	}
}

// slow says by brute force whether a second is a tick, from what the
// documentation of Parse and Schedule says.
func slow(t *testing.T, fields [6]map[int]bool, fixed bool, second int64, zone *time.Location) bool {
	t.Helper()
	fits := func(at time.Time) bool {
		return fields[0][at.Second()] && fields[1][at.Minute()] && fields[2][at.Hour()] &&
			fields[3][at.Day()] && fields[4][int(at.Month())] && fields[5][int(at.Weekday())]
	}
	here := time.Unix(second, 0).In(zone)
	_, offset := here.Zone()
	if !fixed {
		return fits(here)
	}
	if fits(here) {
		// an equal time on the wall, earlier?
		for back := int64(1800); back <= 3600; back += 1800 {
			before := time.Unix(second-back, 0).In(zone)
			if before.Format("2006-01-02 15:04:05") == here.Format("2006-01-02 15:04:05") {
				return false
			}
		}
		return true
	}
	_, was := time.Unix(second-1, 0).In(zone).Zone()
	for skipped := was; skipped < offset; skipped++ { // this second ends a gap
		if fits(time.Unix(second+int64(skipped), 0).UTC()) {
			return true
		}
	}
	return false
}

func TestTicksAreThoseOfASlowReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	bounds := [6][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	changes := []string{
		"2026-03-29 01:00:00 Europe/Berlin", "2026-10-25 00:00:00 Europe/Berlin", "2026-03-08 00:30:00 America/New_York",
		"2026-11-01 00:00:00 America/New_York", "2026-10-03 23:00:00 Australia/Lord_Howe", "2026-04-05 00:30:00 Australia/Lord_Howe",
		"2026-03-01 22:00:00 Asia/Kathmandu",
	}
	for range 100 {
		var fields [6]map[int]bool
		var text []string
		for i, b := range bounds {
			fields[i] = map[int]bool{}
			item := "*"
			low, high := b[0], b[1]
			step := 1
			if most := b[1] - b[0] + 1; rng.IntN(3) > 0 && i != 4 && (i < 3 || rng.IntN(4) == 0) {
				step = 1 + rng.IntN(most/2)
				switch rng.IntN(3) {
				case 0:
					item = "*/" + itoa(step)
				case 1:
					low, step = b[0]+rng.IntN(most), 1
					high, item = low, itoa(low)
				case 2:
					low = b[0] + rng.IntN(most)
					high = low + rng.IntN(b[1]-low+1)
					item = itoa(low) + "-" + itoa(high) + "/" + itoa(step)
				}
			}
			for v := low; v <= high; v += step {
				fields[i][v] = true
			}
			text = append(text, item)
		}
		if text[3] != "*" && text[5] != "*" { // then one is enough; keep this reading simple
			text[5] = "+" + text[5]
		}
		fixed := len(fields[0])*len(fields[1])*len(fields[2]) == 1 && !strings.ContainsAny(text[0]+text[1]+text[2], "*/")
		expression := strings.Join(text, " ")
		change := changes[rng.IntN(len(changes))]
		zone := mustZone(t, change[20:])
		s := mustParse(t, expression).In(zone)
		from := at(t, change[:19], zone)
		next, ok := s.Next(from)
		last := job.Millis(0)
		for second := int64(from/1000) + 1; second < int64(from/1000)+4*3600; second++ {
			now := job.Millis(second * 1000)
			if tick := slow(t, fields, fixed, second, zone); tick != (ok && next == now) {
				t.Fatalf("%q in %s at %s: %t by the slow reading; next is %s", expression, zone, show(now, zone), tick, show(next, zone))
			} else if tick {
				last = now
				if next, ok = s.Next(now); ok && next <= now {
					t.Fatalf("%q: %d follows %d", expression, next, now)
				}
			}
			if second%13 != 0 || last == 0 {
				continue
			}
			if back, _ := s.Last(now + 500); back != last {
				t.Fatalf("%q in %s: the last until %s is %s, not %s", expression, zone, show(now, zone), show(back, zone), show(last, zone))
			}
		}
	}
}

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + itoa(n%10)
	}
	return string(rune('0' + n))
}

func FuzzParseAndNext(f *testing.F) {
	for _, c := range tables {
		f.Add(c.expression, uint32(1_700_000_000), uint8(0))
	}
	f.Add("0 0 30 2 *", uint32(0), uint8(1))
	f.Add("* * LW,L-3,15W * 5L,5#3", uint32(1_774_746_000), uint8(2))
	zones := []*time.Location{mustZone(f, "UTC"), mustZone(f, "Europe/Berlin"), mustZone(f, "Australia/Lord_Howe"), mustZone(f, "Asia/Kathmandu"), mustZone(f, "America/New_York")}
	f.Fuzz(func(t *testing.T, expression string, start uint32, which uint8) {
		e, err := cron.Parse(expression)
		if err != nil {
			if job.KindOf(err) != job.Invalid {
				t.Fatal(err)
			}
			return
		}
		zone := zones[int(which)%len(zones)]
		s := e.In(zone)
		from := job.Millis(start) * job.Second
		for range 5 {
			next, ok := s.Next(from)
			if !ok {
				return
			}
			if next <= from {
				t.Fatalf("%q: %d follows %d", expression, next, from)
			}
			if !cron.Matches(e, next, zone) && !cron.EndsGap(next, zone) {
				t.Fatalf("%q in %s: %s does not match", expression, zone, show(next, zone))
			}
			if back, ok := s.Last(next); !ok || back != next {
				t.Fatalf("%q: the last until %d is %d", expression, next, back)
			}
			if back, ok := s.Last(next - 1); ok && back > from {
				t.Fatalf("%q: between %d and %d comes %d", expression, from, next, back)
			}
			from = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	zone := mustZone(b, "Europe/Berlin")
	for _, expression := range []string{"*/5 * * * *", "0 3 * * 1-5", "0 0 30 2 *"} {
		b.Run(expression, func(b *testing.B) {
			s := mustParse(b, expression).In(zone)
			for b.Loop() {
				s.Next(1_774_746_000_000)
			}
		})
	}
}
