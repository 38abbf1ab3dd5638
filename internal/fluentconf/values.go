package fluentconf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseFlag reads true, on, yes and false, off, no.
func ParseFlag(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "on", "yes":
		return true, nil
	case "false", "off", "no":
		return false, nil
	}
	return false, fmt.Errorf("%s must be on or off", quote(s))
}

// sizeMax is the largest size, a million GB.
const sizeMax = 1e15

// ParseSize reads a number of bytes: 512, 32K, 1.5MB, 2g. A K is 1000 bytes, and
// false or off is 0, which means no limit.
func ParseSize(s string) (int64, error) {
	lower := strings.ToLower(s)
	if lower == "false" || lower == "off" {
		return 0, nil
	}
	number, unit := lower, 1.0
	if digits := strings.TrimRight(lower, "kmgb"); digits != lower {
		number = digits
		switch strings.TrimSuffix(lower[len(digits):], "b") {
		case "k":
			unit = 1e3
		case "m":
			unit = 1e6
		case "g":
			unit = 1e9
		default:
			number = ""
		}
	}
	v, ok := decimal(number)
	if !ok || v*unit > sizeMax {
		return 0, fmt.Errorf("%s must be a number of bytes, or a size such as 32K, 5M or 1G", quote(s))
	}
	return int64(math.Round(v * unit)), nil
}

// spanMax is the longest span of time, about a hundred years.
const spanMax = 36500 * 24 * time.Hour

// ParseSpan reads a span of time: a number of seconds, or one with s, m, h or d.
func ParseSpan(s string) (time.Duration, error) {
	number, unit := strings.ToLower(s), time.Second
	if number != "" {
		last := len(number) - 1
		switch number[last] {
		case 's':
			number = number[:last]
		case 'm':
			number, unit = number[:last], time.Minute
		case 'h':
			number, unit = number[:last], time.Hour
		case 'd':
			number, unit = number[:last], 24*time.Hour
		}
	}
	v, ok := decimal(number)
	if !ok || v*float64(unit) > float64(spanMax) {
		return 0, fmt.Errorf("%s must be a number of seconds, or a span of time such as 30s, 5m, 2h or 1d", quote(s))
	}
	return time.Duration(math.Round(v * float64(unit))), nil
}

// decimal reads digits with at most one point between or before them.
func decimal(s string) (float64, bool) {
	if s == "" || len(s) > 40 || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// bytes writes a bound into a message.
func bytes(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n>>20, 10) + " MiB"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
