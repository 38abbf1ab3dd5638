package cron

import (
	"math/bits"
	"time"
)

// wall is a time on a clock on the wall, without a zone: seconds as if it were UTC.
type wall int64

const day = 24 * 60 * 60

// yearsMax is how far a search goes: the fifth Monday of a February comes every
// 28 years, over 2100 every 40.
const yearsMax = 50

// search is how many months a search looks at: years that are named may be far off.
func (e *Expression) search() int {
	switch {
	case e.seconds == 0 || e.minutes == 0 || e.hours == 0: // a list without entries
		return 0
	case e.years != nil:
		return yearMax * 12
	}
	return yearsMax*12 + 1
}

func (e *Expression) inMonth(y, m int) bool {
	return e.months&(1<<m) != 0 && (e.years == nil || y >= 0 && y <= yearMax && e.years[y])
}

// on reports whether the day of a time is meant.
func (e *Expression) on(w wall) bool {
	y, m, d := date(w)
	return e.inMonth(y, m) && e.days.of(monthOf(y, m))&(1<<d) != 0
}

// after returns the first time that matches, from w on; ok is false if none
// comes in yearsMax.
func (e *Expression) after(w wall) (_ wall, ok bool) {
	y, m, d := date(w)
	clock, found := e.clockAfter(int(mod(w)))
	if !found {
		d, clock = d+1, e.firstClock()
	}
	for range e.search() {
		if e.inMonth(y, m) {
			set := e.days.of(monthOf(y, m)) >> d << d
			if set != 0 {
				on := bits.TrailingZeros64(set)
				if on != d { // a later day
					clock = e.firstClock()
				}
				return dateWall(y, m, on) + wall(clock), true
			}
		}
		d, clock = 1, e.firstClock()
		if m++; m > 12 {
			y, m = y+1, 1
		}
	}
	return 0, false
}

// before returns the last time that matches, up to w.
func (e *Expression) before(w wall) (_ wall, ok bool) {
	y, m, d := date(w)
	clock, found := e.clockBefore(int(mod(w)))
	if !found {
		d, clock = d-1, e.lastClock()
	}
	for range e.search() {
		if e.inMonth(y, m) {
			set := e.days.of(monthOf(y, m)) & (1<<(d+1) - 1)
			if set != 0 {
				on := bits.Len64(set) - 1
				if on != d {
					clock = e.lastClock()
				}
				return dateWall(y, m, on) + wall(clock), true
			}
		}
		d, clock = 31, e.lastClock()
		if m--; m < 1 {
			y, m = y-1, 12
		}
	}
	return 0, false
}

// clockAfter returns the first second of a day that matches, from s on.
func (e *Expression) clockAfter(s int) (int, bool) {
	h, m, sec := s/3600, s/60%60, s%60
	if e.hours&(1<<h) != 0 {
		if e.minutes&(1<<m) != 0 {
			if set := e.seconds >> sec << sec; set != 0 {
				return h*3600 + m*60 + bits.TrailingZeros64(set), true
			}
		}
		if set := e.minutes >> (m + 1) << (m + 1); set != 0 {
			return h*3600 + bits.TrailingZeros64(set)*60 + bits.TrailingZeros64(e.seconds), true
		}
	}
	set := e.hours >> (h + 1) << (h + 1)
	return bits.TrailingZeros64(set)*3600 + bits.TrailingZeros64(e.minutes)*60 + bits.TrailingZeros64(e.seconds), set != 0
}

// clockBefore returns the last second of a day that matches, up to s.
func (e *Expression) clockBefore(s int) (int, bool) {
	high := func(set uint64) int { return bits.Len64(set) - 1 }
	below := func(n int) uint64 { return 1<<n - 1 }
	h, m, sec := s/3600, s/60%60, s%60
	if e.hours&(1<<h) != 0 {
		if e.minutes&(1<<m) != 0 {
			if set := e.seconds & below(sec+1); set != 0 {
				return h*3600 + m*60 + high(set), true
			}
		}
		if set := e.minutes & below(m); set != 0 {
			return h*3600 + high(set)*60 + high(e.seconds), true
		}
	}
	set := e.hours & below(h)
	return high(set)*3600 + high(e.minutes)*60 + high(e.seconds), set != 0
}

func (e *Expression) firstClock() int { s, _ := e.clockAfter(0); return s }
func (e *Expression) lastClock() int  { s, _ := e.clockBefore(day - 1); return s }

func mod(w wall) wall { return ((w % day) + day) % day }

func date(w wall) (y, m, d int) {
	year, month, dom := time.Unix(int64(w), 0).UTC().Date()
	return year, int(month), dom
}

func dateWall(y, m, d int) wall {
	return wall(time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix())
}

// monthOf returns the length of a month and the weekday of its first day.
func monthOf(y, m int) (long, first int) {
	start := time.Date(y, time.Month(m), 1, 0, 0, 0, 0, time.UTC)
	return start.AddDate(0, 1, -1).Day(), int(start.Weekday())
}
