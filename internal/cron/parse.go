package cron

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// ExpressionBytesMax bounds the length of an expression.
const ExpressionBytesMax = 256

// yearMax is the last year that an expression may name.
const yearMax = 5000

// Expression is a cron expression that was read. It holds no zone: its fields
// are those of a clock on the wall.
type Expression struct {
	seconds, minutes, hours uint64 // bit n = the value n
	months                  uint64
	days                    days
	years                   *[yearMax + 1]bool // nil = all
	fixed                   bool               // it names one time of the day
}

var aliases = map[string]string{
	"@YEARLY": "0 0 1 1 *", "@ANNUALLY": "0 0 1 1 *", "@MONTHLY": "0 0 1 * *", "@WEEKLY": "0 0 * * 0",
	"@DAILY": "0 0 * * *", "@MIDNIGHT": "0 0 * * *", "@HOURLY": "0 * * * *",
}

// names are those of days and months; they may stand wherever a number may.
var names = strings.NewReplacer(
	"-SUN", "-7", "SUN", "0", "MON", "1", "TUE", "2", "WED", "3", "THU", "4", "FRI", "5", "SAT", "6",
	"JAN", "1", "FEB", "2", "MAR", "3", "APR", "4", "MAY", "5", "JUN", "6",
	"JUL", "7", "AUG", "8", "SEP", "9", "OCT", "10", "NOV", "11", "DEC", "12",
)

// Parse reads an expression as croner does, the library of Zizq: 5 fields
// (minute, hour, day of month, month, day of week), 6 with the second in front,
// 7 with the year at the end as well, or an alias such as @daily:
//
//	second, minute   0-59
//	hour             0-23
//	day of month     1-31, L (the last), L-3 (three before it), 15W (the working
//	                 day nearest to the 15th), LW (the last working day)
//	month            1-12 or JAN-DEC
//	day of week      0-7 or SUN-SAT, 0 and 7 are Sunday; 5L or 5#L (the last
//	                 Friday, 0 to 6 only), 5#3 (the third one)
//	year             1-5000
//	each             *, a list a,b, a range a-b, a step */n, a-b/n, or a/n to the end
//	days             ? is *
//
// If one of the fields of days is *, the other one decides. If none is, a day
// is meant that is in one of them; with + in front of the day of week it must
// be in both. Refused with an Invalid error that names the field. A date that
// never comes, such as 30 February, is read; it has no tick. Croner has neither
// L-3 nor LW nor @midnight.
func Parse(text string) (*Expression, error) {
	if len(text) > ExpressionBytesMax {
		return nil, job.Errorf(job.Invalid, "must not be longer than %d bytes", ExpressionBytesMax)
	}
	whole := strings.TrimSpace(text)
	if strings.HasPrefix(whole, "@") {
		long, ok := aliases[strings.ToUpper(whole)]
		if !ok {
			return nil, job.Errorf(job.Invalid, "%q is no alias; there are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly", whole)
		}
		whole = long
	}
	written := strings.Fields(whole)
	if len(written) < 5 || len(written) > 7 {
		return nil, job.Errorf(job.Invalid, "%q has %d fields; there must be 5 (minute, hour, day of month, month, day of week), "+
			"6 with the second in front, or 7 with the year at the end as well", text, len(written))
	}
	if len(written) == 5 {
		written = append([]string{"0"}, written...)
	}
	e := &Expression{fixed: true}
	for i, set := range []*uint64{&e.seconds, &e.minutes, &e.hours, nil, &e.months, nil, nil}[:len(written)] {
		field := names.Replace(strings.ToUpper(written[i]))
		put := func(v int, _ mark) { *set |= 1 << v }
		switch i {
		case 3:
			field = strings.ReplaceAll(field, "?", "*")
			put = e.days.putMonth
		case 5:
			field, e.days.plus = strings.CutPrefix(strings.ReplaceAll(field, "?", "*"), "+")
			put = e.days.putWeek
		case 6:
			if field == "*" {
				continue
			}
			e.years = new([yearMax + 1]bool)
			put = func(v int, _ mark) { e.years[v] = true }
		}
		plain, why := units[i].read(field, put)
		if why != "" {
			return nil, job.Errorf(job.Invalid, "the %s %q %s", units[i].name, written[i], why)
		}
		switch i {
		case 0, 1, 2:
			e.fixed = e.fixed && plain && bits.OnesCount64(*set) == 1
		case 3, 5:
			e.days.star = e.days.star || field == "*"
		}
	}
	return e, nil
}

// unit is one field.
type unit struct {
	name        string
	least, most int
	more        string // what it may hold beside digits and */,-
	words       string // what may stand for a number
}

var units = [7]unit{
	{"second", 0, 59, "", ""},
	{"minute", 0, 59, "", ""},
	{"hour", 0, 23, "", ""},
	{"day of month", 1, 31, "LW", ""},
	{"month", 1, 12, "", ", or JAN to DEC"},
	{"day of week", 0, 7, "L#", ", or SUN to SAT"},
	{"year", 1, yearMax, "", ""},
}

// mark says what a value of a field of days stands for: 0 for itself, 1 to 5
// for that one of the month.
type mark int

const (
	last mark = iota + 6 // the last one of the month
	near                 // the working day nearest to it, of 0 the last one
	back                 // so many days before the last
)

// read reads a list: put gets each of its values. It reports whether there is
// neither a star nor a step in it, or says why it cannot be read. Entries
// without anything are passed over.
func (u *unit) read(field string, put func(int, mark)) (plain bool, why string) {
	if strings.Trim(field, "0123456789*/,-"+u.more) != "" {
		return false, u.bounds()
	}
	plain = true
	for item := range strings.SplitSeq(field, ",") {
		if item == "" {
			continue
		}
		simple, why := u.item(item, put)
		if why != "" {
			return false, why
		}
		plain = plain && simple
	}
	return plain, ""
}

func (u *unit) item(item string, put func(int, mark)) (plain bool, why string) {
	if item == "L" {
		put(0, back)
		return true, ""
	}
	text, m := item, mark(0)
	switch u.more {
	case "LW":
		if plain, why = u.fromTheEnd(item, put); plain || why != "" {
			return plain, why
		}
		text, m, why = nearWorkday(item)
	case "L#":
		text, m, why = nthInMonth(item)
	}
	if why != "" {
		return false, why
	}
	return u.span(text, m, put)
}

// fromTheEnd reads L-3 and LW: days counted from the end of the month.
func (u *unit) fromTheEnd(item string, put func(int, mark)) (is bool, why string) {
	if item == "LW" {
		put(0, near)
		return true, ""
	}
	days, is := strings.CutPrefix(item, "L-")
	if !is {
		return false, ""
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || n < 1 || n > 30 {
		return false, "must be L- and 1 to 30 days"
	}
	put(int(n), back)
	return true, ""
}

// nearWorkday reads 15W; without W it is the item as it is.
func nearWorkday(item string) (day string, m mark, why string) {
	day, _, is := strings.Cut(item, "W")
	switch {
	case !is:
		return item, 0, ""
	case strings.ContainsAny(item, "-/"):
		return day, near, "must be a day and W, such as 15W, or LW"
	}
	return day, near, ""
}

// nthInMonth reads 5#3 and 5L; without # and L it is the item as it is.
func nthInMonth(item string) (day string, m mark, why string) {
	day, nth, marked := strings.Cut(item, "#")
	day = strings.TrimRight(day, "L")
	if strings.HasSuffix(item, "L") {
		return day, last, ""
	}
	if !marked {
		return day, 0, ""
	}
	n, err := strconv.ParseUint(nth, 10, 16)
	if err != nil || n < 1 || n > 5 {
		return day, 0, "must be a day, # and 1 to 5, such as 5#3"
	}
	return day, mark(n), ""
}

// span reads a value, a range or *, and a step behind it.
func (u *unit) span(text string, m mark, put func(int, mark)) (plain bool, why string) {
	span, every, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		n, err := strconv.ParseUint(every, 10, 16)
		if step = int(n); err != nil || step == 0 {
			return false, "must have a step from 1 to 65535"
		}
	}
	from, to := u.least, u.most
	if span != "*" {
		low, high, ranged := strings.Cut(span, "-")
		ok := u.number(low, &from)
		if ranged {
			ok = ok && u.number(high, &to)
		} else if !stepped {
			to = from
		}
		if !ok {
			return false, u.bounds()
		}
	}
	if from > to {
		return false, "begins after its end"
	}
	for v := from; v <= to; v += step {
		put(v, m)
	}
	return span != "*" && step == 1, ""
}

func (u *unit) number(text string, into *int) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	*into = int(n)
	return err == nil && *into >= u.least && *into <= u.most
}

func (u *unit) bounds() string {
	return "must be from " + strconv.Itoa(u.least) + " to " + strconv.Itoa(u.most) + u.words
}

// days are the fields day of month and day of week.
type days struct {
	month uint64    // bit n = the day n
	last  uint64    // bit n = n days before the last
	near  uint64    // bit n = the working day nearest to the day n, bit 0 = the last one
	week  uint64    // bit n = the day n of the week, Sunday is 0
	lastD uint64    // the same, the last one of the month
	nth   [6]uint64 // the same, the nth one of the month
	star  bool      // one of the fields is *
	plus  bool      // a day must be in both
}

func (d *days) putMonth(v int, m mark) {
	switch m {
	case back:
		d.last |= 1 << v
	case near:
		d.near |= 1 << v
	default:
		d.month |= 1 << v
	}
}

func (d *days) putWeek(v int, m mark) {
	switch m {
	case back: // a lone L is no day here
	case last:
		d.lastD |= 1 << v
	case 0:
		d.week |= 1 << (v % 7)
	default:
		d.nth[m] |= 1 << (v % 7)
	}
}

// of returns the days of a month that are meant, as a set; long is its length
// and first the weekday of its first day.
func (d *days) of(long, first int) uint64 {
	all := uint64(1)<<(long+1) - 2
	month := d.month & all
	for set := d.last; set != 0; set &= set - 1 {
		if day := long - bits.TrailingZeros64(set); day > 0 {
			month |= 1 << day
		}
	}
	for set := d.near & all; set != 0; set &= set - 1 {
		month |= 1 << workday(bits.TrailingZeros64(set), long, first)
	}
	if d.near&1 != 0 {
		month |= 1 << workday(long, long, first)
	}
	week := uint64(0)
	for day := 1; day <= long; day++ {
		bit := uint64(1) << ((first + day - 1) % 7)
		if d.week&bit != 0 || d.lastD&bit != 0 && day+7 > long || d.nth[(day+6)/7]&bit != 0 {
			week |= 1 << day
		}
	}
	if d.star || d.plus {
		return month & week
	}
	return month | week
}

// workday is the working day nearest to a day, inside its month.
func workday(day, long, first int) int {
	switch (first + day - 1) % 7 {
	case 6: // Saturday
		if day == 1 {
			return 3
		}
		return day - 1
	case 0: // Sunday
		if day == long {
			return day - 2
		}
		return day + 1
	}
	return day
}
