package parser

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/record"
)

// timeFormat reads times by a format of strptime, in which %L is a fraction of
// a second.
type timeFormat struct {
	format  string
	zone    *time.Location // of times that name none
	lenient bool           // a fraction that is expected may be missing
}

// aheadMax is how far a time without a year may lie before now; beyond, it is
// one of last year.
const aheadMax = 24 * time.Hour

// newTimeFormat checks a format.
func newTimeFormat(format string, zone *time.Location, lenient bool) (*timeFormat, error) {
	format = long.Replace(format)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) || !strings.ContainsRune("aAbBhCdejHIklmMnpsStUuVwWyYzZLf%", rune(format[i])) {
			return nil, fmt.Errorf("the time format %q: %%%s is not known; known are %%Y %%m %%d %%b %%H %%M %%S %%L %%z %%s and the others of strptime", format, format[min(i, len(format)):min(i+1, len(format))])
		}
	}
	return &timeFormat{format: format, zone: zone, lenient: lenient}, nil
}

// long writes short forms of several parts in full.
var long = strings.NewReplacer("%%", "%%", "%D", "%m/%d/%y", "%F", "%Y-%m-%d", "%T", "%H:%M:%S", "%R", "%H:%M",
	"%c", "%a %b %e %H:%M:%S %Y", "%r", "%I:%M:%S %p", "%x", "%m/%d/%y", "%X", "%H:%M:%S", "%E", "%", "%O", "%")

// moment is a time while it is read.
type moment struct {
	year, month, day, hour, minute, second, yearDay int
	nsec                                            int
	dated, pm, am                                   bool // a month or a day was named
	epoch                                           int64
	hasYear, hasEpoch, hasZone                      bool
	offset                                          int // seconds east
}

// read reads a time at the beginning of a text; what follows is of no interest.
func (f *timeFormat) read(text []byte, now record.Time) (record.Time, bool) {
	m := moment{month: 1, day: 1}
	for i := 0; i < len(f.format); i++ {
		c := f.format[i]
		switch {
		case c == ' ':
			text = skipSpace(text)
		case c == '.' && f.lenient && strings.HasPrefix(f.format[i:], ".%L") && (len(text) == 0 || text[0] != '.'):
			i += 2
		case c != '%':
			if len(text) == 0 || text[0] != c {
				return record.Time{}, false
			}
			text = text[1:]
		default:
			var ok bool
			i++
			if text, ok = m.field(f.format[i], text); !ok && (!f.lenient || f.format[i] != 'L') {
				return record.Time{}, false
			}
		}
	}
	return m.time(f.zone, now)
}

func skipSpace(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t' || text[0] == '\n' || text[0] == '\r') {
		text = text[1:]
	}
	return text
}

// numbers are the fields of digits: how many at most, and the largest value.
var numbers = map[byte]struct{ digits, least, most int }{
	'd': {2, 1, 31}, 'e': {2, 1, 31}, 'm': {2, 1, 12}, 'H': {2, 0, 23}, 'k': {2, 0, 23}, 'I': {2, 1, 12}, 'l': {2, 1, 12},
	'M': {2, 0, 59}, 'S': {2, 0, 60}, 'Y': {4, 0, 9999}, 'y': {2, 0, 99}, 'j': {3, 1, 366}, 'C': {2, 0, 99},
	'U': {2, 0, 53}, 'W': {2, 0, 53}, 'V': {2, 1, 53}, 'u': {1, 1, 7}, 'w': {1, 0, 6},
}

var (
	months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	days   = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// field reads one field and returns what follows it.
func (m *moment) field(c byte, text []byte) (rest []byte, ok bool) {
	if form, is := numbers[c]; is {
		n, rest, count := readDigits(skipSpace(text), form.digits)
		if count == 0 || n < int64(form.least) || n > int64(form.most) {
			return text, false
		}
		m.number(c, int(n))
		return rest, true
	}
	switch c {
	case 'n', 't':
		return skipSpace(text), true
	case '%':
		if len(text) == 0 || text[0] != '%' {
			return text, false
		}
		return text[1:], true
	case 'b', 'B', 'h':
		n, rest := readName(text, months)
		m.month, m.dated = n+1, true
		return rest, n >= 0
	case 'a', 'A':
		n, rest := readName(text, days)
		return rest, n >= 0
	case 'p':
		if len(text) < 2 || text[1]|0x20 != 'm' {
			return text, false
		}
		m.am, m.pm = text[0]|0x20 == 'a', text[0]|0x20 == 'p'
		return text[2:], m.am || m.pm
	case 's':
		n, rest, count := readDigits(text, 12)
		m.epoch, m.hasEpoch = n, true
		return rest, count > 0
	case 'L', 'f':
		n, rest, count := readDigits(text, 9)
		for range 9 - count {
			n *= 10
		}
		if m.nsec = int(n); count == 9 { // finer than can be held
			_, rest, _ = readDigits(rest, 1<<10)
		}
		return rest, count > 0
	default: // z, Z
		return m.zone(text)
	}
}

func (m *moment) number(c byte, n int) {
	switch c {
	case 'Y':
		m.year, m.hasYear = n, true
	case 'y':
		if m.year, m.hasYear = 1900+n, true; n < 69 {
			m.year = 2000 + n
		}
	case 'm':
		m.month, m.dated = n, true
	case 'd', 'e':
		m.day, m.dated = n, true
	case 'j':
		m.yearDay = n
	case 'H', 'k', 'I', 'l':
		m.hour = n
	case 'M':
		m.minute = n
	case 'S':
		m.second = n
	}
}

// readDigits reads a number of at most some digits.
func readDigits(text []byte, most int) (n int64, rest []byte, count int) {
	for count < len(text) && count < most && text[count] >= '0' && text[count] <= '9' {
		if n < 1e17 {
			n = n*10 + int64(text[count]-'0')
		}
		count++
	}
	return n, text[count:], count
}

// readName reads one of some names, of which three letters are enough.
func readName(text []byte, names []string) (index int, rest []byte) {
	letters := 0
	for letters < len(text) && text[letters]|0x20 >= 'a' && text[letters]|0x20 <= 'z' {
		letters++
	}
	if letters < 3 {
		return -1, text
	}
	for i, name := range names {
		if text[0]|0x20 == name[0] && text[1]|0x20 == name[1] && text[2]|0x20 == name[2] {
			return i, text[letters:]
		}
	}
	return -1, text
}

// zones are the names of zones that mean one offset.
var zones = map[string]int{
	"Z": 0, "UTC": 0, "GMT": 0, "UT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	"CET": 1, "CEST": 2, "WET": 0, "WEST": 1, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9,
}

// zone reads +hh, +hhmm, +hh:mm or a name.
func (m *moment) zone(text []byte) (rest []byte, ok bool) {
	text = skipSpace(text)
	letters := 0
	for letters < len(text) && letters < 5 && text[letters] >= 'A' && text[letters] <= 'Z' {
		letters++
	}
	if letters > 0 {
		hours, known := zones[string(text[:letters])]
		m.offset, m.hasZone = hours*3600, true
		return text[letters:], known
	}
	if len(text) < 3 || text[0] != '+' && text[0] != '-' {
		return text, false
	}
	hours, rest, count := readDigits(text[1:], 2)
	if count != 2 {
		return text, false
	}
	if len(rest) > 0 && rest[0] == ':' {
		rest = rest[1:]
	}
	minutes, rest, _ := readDigits(rest, 2)
	if m.offset, m.hasZone = int(hours*3600+minutes*60), true; text[0] == '-' {
		m.offset = -m.offset
	}
	return rest, hours <= 24 && minutes < 60
}

// time puts the fields together. What is not named is taken from now.
func (m *moment) time(zone *time.Location, now record.Time) (record.Time, bool) {
	if m.hasEpoch {
		return record.Time{Sec: m.epoch, Nsec: uint32(m.nsec)}, true
	}
	if m.hasZone {
		zone = time.UTC
	}
	east := time.Duration(m.offset) * time.Second
	switch {
	case m.pm && m.hour < 12:
		m.hour += 12
	case m.am && m.hour == 12:
		m.hour = 0
	}
	today := now.Go().In(zone).Add(east)
	if !m.hasYear {
		if m.year = today.Year(); !m.dated && m.yearDay == 0 {
			m.month, m.day = int(today.Month()), today.Day()
		}
	}
	if m.yearDay > 0 {
		m.month, m.day = 1, m.yearDay
	}
	t := time.Date(m.year, time.Month(m.month), m.day, m.hour, m.minute, m.second, m.nsec, zone)
	if !m.hasYear && t.Sub(today) > aheadMax {
		t = time.Date(m.year-1, time.Month(m.month), m.day, m.hour, m.minute, m.second, m.nsec, zone)
	}
	return record.At(t.Add(-east)), true
}

// fixedZone reads an offset such as +0200, as Time_Offset has it.
func fixedZone(text string) (*time.Location, error) {
	var m moment
	if rest, ok := m.zone([]byte(text)); !ok || len(rest) > 0 {
		return nil, fmt.Errorf("time_offset %q is no offset; write it as +0200", text)
	}
	return time.FixedZone(text, m.offset), nil
}
