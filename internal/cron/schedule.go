package cron

import (
	"time"
	_ "time/tzdata" // where the machine has no zones, or old ones under another name

	"github.com/reprisehq/reprise/internal/job"
)

// Schedule is an expression in a time zone. Its ticks are whole seconds.
//
// Where the clocks change, an expression that names one second, one minute and
// one hour comes once on each of its days: at the end of the gap if its time
// falls into one, and the first of two equal times. Any other goes on in real
// time: what the gap leaves out does not come, and what is repeated comes twice.
// That is how croner has it; Zizq itself passes over what is repeated.
type Schedule struct {
	e    *Expression
	zone *time.Location
}

// In places an expression in a time zone.
func (e *Expression) In(zone *time.Location) Schedule { return Schedule{e, zone} }

// Zone finds a time zone by its IANA name, such as Europe/Berlin or UTC.
func Zone(name string) (*time.Location, error) {
	if name != "" && name != "Local" && len(name) <= 64 {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, job.Errorf(job.Invalid, "%q is not known; use a name of the IANA time zone database, such as Europe/Berlin or UTC", name)
}

// jump is more than clocks are ever changed by: so far from an end of a
// segment the other side of it does not matter.
const jump = 2 * day

// segment is a span of time in which clocks run evenly: wall = time + offset.
type segment struct {
	begin, end int64 // seconds since the epoch; the end is not in it
	offset     int64
	seen       int64 // where the clock stood when it was set to begin
	open       bool  // it has no begin: begin and seen mean nothing
}

const never = 1 << 60

// dateMax is the end of the year 9999; there is no tick after it.
const dateMax = 253402300799

func (s Schedule) segment(at int64) segment {
	t := time.Unix(at, 0).In(s.zone)
	_, offset := t.Zone()
	begin, end := t.ZoneBounds()
	g := segment{begin: -never, end: never, offset: int64(offset), open: begin.IsZero()}
	if !end.IsZero() {
		if g.end = end.Unix(); g.end <= at { // where a rule goes on for ever, package time forgets the last day of leap years
			g.end += day
		}
	}
	if !g.open {
		g.begin = begin.Unix()
		_, before := begin.Add(-time.Second).Zone()
		g.seen = g.begin + int64(before)
	}
	return g
}

// gap reports whether a tick fell into the gap before the segment.
func (s Schedule) gap(g segment) bool {
	if !s.e.fixed || g.open {
		return false
	}
	end := wall(g.begin + g.offset)
	at, ok := s.e.after(wall(g.seen))
	return ok && at < end && s.e.on(end) // if the gap ends on another day, that must be meant, too
}

// floor is the first wall time of the segment that counts: what the clock had
// shown before it was set back was there already.
func (s Schedule) floor(g segment) int64 {
	if g.open {
		return -never
	}
	if at := g.begin + g.offset; !s.e.fixed || at > g.seen {
		return at
	}
	return g.seen
}

// Next returns the first tick after a time, and false if there is none within
// 50 years, or in the years that the expression names.
func (s Schedule) Next(after job.Millis) (job.Millis, bool) {
	x := seconds(after) + 1
	for x <= dateMax {
		g := s.segment(x)
		if x == g.begin && s.gap(g) {
			return millis(x), true
		}
		at, ok := s.e.after(wall(max(x+g.offset, s.floor(g))))
		switch {
		case !ok:
			return 0, false
		case int64(at)-g.offset < g.end:
			return millis(int64(at) - g.offset), true
		case g.end-x > jump:
			x = max(g.end, int64(at)-g.offset-jump)
		default:
			x = g.end
		}
	}
	return 0, false
}

// NextTime is Next for times; what it returns is in the schedule's zone.
func (s Schedule) NextTime(after time.Time) (time.Time, bool) {
	at, ok := s.Next(job.Millis(after.UnixMilli()))
	return time.UnixMilli(int64(at)).In(s.zone), ok
}

// Last returns the last tick at or before a time, and false if there is none
// in as many years.
func (s Schedule) Last(until job.Millis) (job.Millis, bool) {
	x := min(seconds(until), dateMax)
	for {
		g := s.segment(x)
		at, ok := s.e.before(wall(x + g.offset))
		switch {
		case !ok:
			return 0, false
		case int64(at) >= s.floor(g):
			return millis(int64(at) - g.offset), true
		case s.gap(g):
			return millis(g.begin), true
		case x-g.begin > jump:
			x = min(g.begin-1, int64(at)-g.offset+jump)
		default:
			x = g.begin - 1
		}
	}
}

// seconds rounds down.
func seconds(m job.Millis) int64 { return int64(m / job.Second) }
func millis(s int64) job.Millis  { return job.Millis(s) * job.Second }
