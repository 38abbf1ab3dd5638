package job

import (
	"math/bits"
	"strconv"
	"strings"
)

// They end every refusal: the forms of spec/retry.md section 1.
const (
	durationHelp = "use ms, s, m, h or d, ISO 8601 such as PT6S, or a bare number of milliseconds"
	spanHelp     = "use ms, s, m, h or d, or ISO 8601 such as PT6S"
)

// ParseDuration reads a span of time in any of the forms of spec/retry.md
// section 1:
//
//	1m30s  12.5s  250ms   Go style, decimals allowed in every part
//	7d     1d12h          the same with days of 24 hours
//	PT6S   P1DT2H  P2W    ISO 8601; a fraction only in the last part
//	1500                  a bare whole number of milliseconds
//
// What is finer than a millisecond is cut off, part by part. Refused, with an
// Invalid error that quotes the text: nothing, a sign, blanks, an unknown
// unit, years and months (they have no fixed length), a bare number with a
// fraction (it is nearly always meant as seconds), more than MaxMillis.
func ParseDuration(s string) (Millis, error) {
	d := duration{text: s, rest: s, help: durationHelp}
	return d.read()
}

// ParseSpan is ParseDuration for settings that have a name in a system that
// counts in another unit: a bare number, but for 0, is refused with both
// readings, so that a unit is never guessed.
func ParseSpan(s string) (Millis, error) {
	d := duration{text: s, rest: s, help: spanHelp}
	if strings.Trim(s, "0123456789.") == "" && strings.Trim(s, "0.") != "" {
		return 0, d.refuse("it has no unit and could be milliseconds or seconds: write " + shorten(s) + "ms or " + shorten(s) + "s")
	}
	return d.read()
}

// duration is a text being read from the left.
type duration struct{ text, rest, help string }

func (d *duration) read() (total Millis, err error) {
	switch s := d.text; {
	case s == "":
		return 0, d.refuse("it is empty")
	case s[0] == '-':
		return 0, d.refuse("a wait cannot be negative")
	case s[0] == 'P' || s[0] == 'p':
		total, err = d.iso()
	default:
		total, err = d.plain()
	}
	if err != nil {
		return 0, err
	}
	return total, nil
}

func (d *duration) refuse(why string) error {
	return Errorf(Invalid, "duration %q: %s; %s", shorten(d.text), why, d.help)
}

// shorten keeps a hostile text from filling an error message.
func shorten(s string) string {
	const bytesMax = 64
	if len(s) <= bytesMax {
		return s
	}
	return strings.ToValidUTF8(s[:bytesMax], "") + "…"
}

// plain reads number-and-unit pairs, or one bare number.
func (d *duration) plain() (Millis, error) {
	var total Millis
	for first := true; d.rest != ""; first = false {
		n, err := d.number(".")
		if err != nil {
			return 0, err
		}
		name := d.unitName()
		unit, known := plainUnits[name]
		switch {
		case name == "" && !first:
			return 0, d.refuse("the last number has no unit")
		case name == "" && n.hasPoint:
			return 0, d.refuse("a bare number counts milliseconds and must be whole")
		case name == "":
			unit = 1
		case !known:
			return 0, d.refuse("unknown unit " + strconv.Quote(shorten(name)))
		}
		if total, err = d.sum(total, n, unit); err != nil {
			return 0, err
		}
	}
	return total, nil
}

var plainUnits = map[string]Millis{"ms": 1, "s": Second, "m": Minute, "h": Hour, "d": Day}

// unitName takes everything up to the next number.
func (d *duration) unitName() string {
	end := strings.IndexAny(d.rest, "0123456789.")
	if end < 0 {
		end = len(d.rest)
	}
	name := d.rest[:end]
	d.rest = d.rest[end:]
	return name
}

// iso reads P[nW][nD][T[nH][nM][nS]], the units in this order.
func (d *duration) iso() (Millis, error) {
	d.rest = d.rest[1:]
	var total Millis
	order := "WD" // the units still allowed
	inTime, parts, partsOfTime := false, 0, 0
	for fraction := false; d.rest != ""; {
		if c := d.rest[0]; (c == 'T' || c == 't') && !inTime {
			d.rest, order, inTime = d.rest[1:], "HMS", true
			continue
		}
		if fraction {
			return 0, d.refuse("only the last part may have a fraction")
		}
		n, err := d.number(".,")
		if err != nil {
			return 0, err
		}
		if d.rest == "" {
			return 0, d.refuse("the last number has no unit")
		}
		c := d.rest[0] &^ 0x20 // upper case
		d.rest = d.rest[1:]
		at := strings.IndexByte(order, c)
		switch {
		case c == 'Y' && !inTime, c == 'M' && !inTime:
			return 0, d.refuse("years and months have no fixed length (minutes stand after a T)")
		case at < 0:
			return 0, d.refuse("unit " + strconv.QuoteRune(rune(c)) + " is unknown or out of order")
		}
		order = order[at+1:]
		if total, err = d.sum(total, n, isoUnits[c]); err != nil {
			return 0, err
		}
		fraction = n.hasPoint
		parts++
		if inTime {
			partsOfTime++
		}
	}
	if parts == 0 || (inTime && partsOfTime == 0) {
		return 0, d.refuse("it names no time")
	}
	return total, nil
}

var isoUnits = map[byte]Millis{'W': 7 * Day, 'D': Day, 'H': Hour, 'M': Minute, 'S': Second}

// decimal is a number in exact parts: whole + billionths / 1e9.
type decimal struct {
	whole      uint64
	billionths uint64 // further digits are cut off: they cannot reach a millisecond
	hasPoint   bool
	huge       bool // whole did not fit
}

const billion = 1_000_000_000

// number takes digits with an optional fraction after one of points.
func (d *duration) number(points string) (decimal, error) {
	var n decimal
	digits, i := 0, 0
	for scale := uint64(billion); i < len(d.rest); i++ {
		c := d.rest[i]
		if c < '0' || c > '9' {
			if strings.IndexByte(points, c) < 0 || n.hasPoint {
				break
			}
			n.hasPoint = true
			continue
		}
		digits++
		v := uint64(c - '0')
		if n.hasPoint {
			scale /= 10
			n.billionths += v * scale
			continue
		}
		high, low := bits.Mul64(n.whole, 10)
		whole, carry := bits.Add64(low, v, 0)
		n.huge = n.huge || high != 0 || carry != 0
		n.whole = whole
	}
	if digits == 0 {
		return n, d.refuse("a number is missing at " + strconv.Quote(shorten(d.rest)))
	}
	d.rest = d.rest[i:]
	return n, nil
}

// sum adds n units to the total, or refuses what is longer than MaxMillis.
func (d *duration) sum(total Millis, n decimal, unit Millis) (Millis, error) {
	high, low := bits.Mul64(n.whole, uint64(unit))
	part := n.billionths * uint64(unit) / billion // below one unit: at most 6e8 * 1e9 before dividing
	if n.huge || high != 0 || low > uint64(MaxMillis) || total > MaxMillis-Millis(low) ||
		total+Millis(low) > MaxMillis-Millis(part) {
		return 0, d.refuse("it is too long; the most is " + MaxMillis.String())
	}
	return total + Millis(low) + Millis(part), nil
}
