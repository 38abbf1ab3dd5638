package cron

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// ExpressionBytesMax bounds the length of an expression.
const ExpressionBytesMax = 256

// Expression is a cron expression that was read. It holds no zone: its fields
// are those of a clock on the wall.
type Expression struct {
	seconds, minutes, hours uint64 // bit n = the value n
	months                  uint64
	days                    days
	free                    bool // every hour is in it: it runs on through changes of the clock
}

var aliases = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Parse reads an expression of 5 fields (minute, hour, day of month, month, day
// of week), of 6 with the second in front, or an alias such as @daily:
//
//	second, minute   0-59
//	hour             0-23
//	day of month     1-31, L (the last), L-3 (three before it), 15W (the working
//	                 day nearest to the 15th), LW (the last working day)
//	month            1-12 or JAN-DEC
//	day of week      0-7 or SUN-SAT, 0 and 7 are Sunday; 5L (the last Friday),
//	                 5#3 (the third one)
//	each             *, a list a,b, a range a-b, a step */n, a-b/n, or a/n to the end
//	days             ? is *
//
// A day must be in both of its fields; if neither begins with * or ?, one of
// them is enough, as in Vixie cron. Refused with an Invalid error that names
// the field. A date that never comes, such as 30 February, is read; it has no tick.
func Parse(text string) (*Expression, error) {
	if len(text) > ExpressionBytesMax {
		return nil, job.Errorf(job.Invalid, "must not be longer than %d bytes", ExpressionBytesMax)
	}
	whole := strings.TrimSpace(text)
	if strings.HasPrefix(whole, "@") {
		long, ok := aliases[strings.ToLower(whole)]
		if !ok {
			return nil, job.Errorf(job.Invalid, "%q is no alias; there are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly", whole)
		}
		whole = long
	}
	parts := strings.Fields(whole)
	switch len(parts) {
	case 5:
		parts = append([]string{"0"}, parts...)
	case 6:
	default:
		return nil, job.Errorf(job.Invalid, "%q has %d fields; there must be 5 (minute, hour, day of month, month, day of week), or 6 with the second in front", text, len(parts))
	}
	e := &Expression{}
	for i, into := range []*uint64{&e.seconds, &e.minutes, &e.hours, nil, &e.months, nil} {
		var err error
		switch i {
		case 3:
			err = e.days.readMonth(parts[i])
		case 5:
			err = e.days.readWeek(parts[i])
		default:
			*into, err = units[i].set(parts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	e.free = parts[2][0] == '*' || e.hours == 1<<24-1
	return e, nil
}

// unit is one field.
type unit struct {
	name        string
	least, most int
	words       []string // of least, least+1, ...
}

var units = [6]unit{
	{"second", 0, 59, nil},
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{"day of week", 0, 7, []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

func (u *unit) refuse(text, why string) error {
	return job.Errorf(job.Invalid, "the %s %q %s", u.name, text, why)
}

// set reads a list of values, ranges and steps.
func (u *unit) set(text string) (set uint64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		one, err := u.item(item)
		if err != nil {
			return 0, err
		}
		set |= one
	}
	return set, nil
}

func (u *unit) item(text string) (set uint64, err error) {
	span, every, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = strconv.Atoi(every); err != nil || step < 1 || step > u.most || every[0] == '+' {
			return 0, u.refuse(text, "must have a step from 1 to "+strconv.Itoa(u.most))
		}
	}
	from, to := u.least, u.most
	if u.most == 7 {
		to = 6 // Sunday once
	}
	if span != "*" {
		low, high, ranged := strings.Cut(span, "-")
		if from, err = u.value(low); err != nil {
			return 0, err
		}
		switch {
		case ranged:
			if to, err = u.value(high); err != nil {
				return 0, err
			}
			if u.most == 7 && to == 0 && from > 0 {
				to = 7 // FRI-SUN
			}
		case !stepped:
			to = from
		}
	}
	if from > to {
		return 0, u.refuse(text, "begins after its end")
	}
	for v := from; v <= to; v += step {
		set |= 1 << v
	}
	return set, nil
}

// value reads a number or a word.
func (u *unit) value(text string) (int, error) {
	for i, word := range u.words {
		if strings.EqualFold(text, word) {
			return u.least + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < u.least || n > u.most || text[0] == '+' || text[0] == '-' {
		why := "must be from " + strconv.Itoa(u.least) + " to " + strconv.Itoa(u.most)
		if u.words != nil {
			why += ", or " + u.words[0] + " to " + u.words[len(u.words)-1]
		}
		return 0, u.refuse(text, why)
	}
	return n, nil
}

// days are the fields day of month and day of week.
type days struct {
	month uint64    // bit n = the day n
	last  uint64    // bit n = n days before the last
	near  uint64    // bit n = the working day nearest to the day n
	lastW bool      // the last working day
	week  uint64    // bit n = the day n of the week, Sunday is 0
	lastD uint64    // the same, the last one of the month
	nth   [6]uint64 // the same, the nth one of the month
	both  bool      // a day must be in both fields
	freeM bool      // the day of month begins with a star
	freeW bool
}

func isFree(text string) bool { return text[0] == '*' || text[0] == '?' }

func (d *days) readMonth(text string) error {
	u := &units[3]
	d.freeM = isFree(text)
	for item := range strings.SplitSeq(text, ",") {
		upper := strings.ToUpper(item)
		switch {
		case item == "?":
			item = "*"
		case upper == "L":
			d.last |= 1
			continue
		case upper == "LW":
			d.lastW = true
			continue
		case strings.HasPrefix(upper, "L-"):
			n, err := u.value(upper[2:])
			if err != nil || n > 30 {
				return u.refuse(item, "must be L- and 1 to 30 days")
			}
			d.last |= 1 << n
			continue
		case strings.HasSuffix(upper, "W"):
			n, err := u.value(upper[:len(upper)-1])
			if err != nil {
				return u.refuse(item, "must be a day and W, such as 15W, or LW")
			}
			d.near |= 1 << n
			continue
		}
		set, err := u.item(item)
		if err != nil {
			return err
		}
		d.month |= set
	}
	return nil
}

func (d *days) readWeek(text string) error {
	u := &units[5]
	d.freeW = isFree(text)
	d.both = d.freeM || d.freeW
	sunday := func(set uint64) uint64 { return (set | set>>7) & (1<<7 - 1) }
	for item := range strings.SplitSeq(text, ",") {
		upper := strings.ToUpper(item)
		day, nth, numbered := strings.Cut(upper, "#")
		switch {
		case item == "?":
			item = "*"
		case upper == "L": // as in Quartz: Saturday
			d.week |= 1 << 6
			continue
		case numbered:
			n, err := u.value(day)
			which, bad := strconv.Atoi(nth)
			if err != nil || bad != nil || which < 1 || which > 5 || len(nth) != 1 {
				return u.refuse(item, "must be a day, # and 1 to 5, such as 5#3")
			}
			d.nth[which] |= sunday(1 << n)
			continue
		case len(upper) > 1 && strings.HasSuffix(upper, "L"):
			n, err := u.value(upper[:len(upper)-1])
			if err != nil {
				return u.refuse(item, "must be a day and L, such as 5L")
			}
			d.lastD |= sunday(1 << n)
			continue
		}
		set, err := u.item(item)
		if err != nil {
			return err
		}
		d.week |= sunday(set)
	}
	return nil
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
	if d.lastW {
		month |= 1 << workday(long, long, first)
	}
	week := uint64(0)
	for day := 1; day <= long; day++ {
		bit := uint64(1) << ((first + day - 1) % 7)
		if d.week&bit != 0 || d.lastD&bit != 0 && day+7 > long || d.nth[(day+6)/7]&bit != 0 {
			week |= 1 << day
		}
	}
	if d.both {
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
