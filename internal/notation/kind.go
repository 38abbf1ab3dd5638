// Package notation holds how the value of a setting is written: the same on a
// command line, in the environment and in a file. It knows no setting.
package notation

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

// Kind is a way to write a value: what Show writes, Parse reads back.
type Kind[T any] struct {
	Name  string // as --help and docs/config.md call it
	Parse func(string) (T, error)
	Show  func(T) string
}

// Quote writes a value into a message, short whatever it is.
func Quote(s string) string {
	const bytesMax = 64
	if len(s) > bytesMax {
		s = strings.ToValidUTF8(s[:bytesMax], "") + "..."
	}
	return strconv.Quote(s)
}

// YesNo is true or false, in a few spellings.
var YesNo = Kind[bool]{
	Name: "bool",
	Parse: func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
		return false, fmt.Errorf("%s must be true or false", Quote(s))
	},
	Show: strconv.FormatBool,
}

// Words is one of a few words.
func Words[T ~string](list ...T) Kind[T] {
	return OneOf(func(w T) string { return string(w) }, list...)
}

// Enum is one of a few constants, written as they write themselves.
func Enum[T interface {
	comparable
	fmt.Stringer
}](list ...T) Kind[T] {
	return OneOf(T.String, list...)
}

// OneOf is one of a few values, each written as a word.
func OneOf[T comparable](show func(T) string, list ...T) Kind[T] {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = show(v)
	}
	return Kind[T]{
		Name: strings.Join(names, "|"),
		Parse: func(s string) (T, error) {
			if i := slices.Index(names, s); i >= 0 {
				return list[i], nil
			}
			var none T
			return none, fmt.Errorf("%s must be one of %s%s", Quote(s), strings.Join(names, ", "), spell.Hint(s, names))
		},
		Show: show,
	}
}

// Whole is a whole number between two bounds.
func Whole[T ~int | ~int64](least, most T) Kind[T] {
	return Kind[T]{
		Name: "number",
		Parse: func(s string) (T, error) {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || T(n) < least || T(n) > most {
				return 0, fmt.Errorf("%s must be a whole number from %d to %d", Quote(s), least, most)
			}
			return T(n), nil
		},
		Show: func(n T) string { return strconv.FormatInt(int64(n), 10) },
	}
}

// Millis is a span of time between two bounds.
func Millis(least, most job.Millis) Kind[job.Millis] {
	return Kind[job.Millis]{
		Name: "duration",
		Parse: func(s string) (job.Millis, error) {
			v, err := job.ParseDuration(s)
			if err == nil && (v < least || v > most) {
				err = fmt.Errorf("%s must be from %s to %s", Quote(s), least, most)
			}
			return v, err
		},
		Show: job.Millis.String,
	}
}

// units of bytes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"TB", 1e12},
	{"GiB", 1 << 30},
	{"GB", 1e9},
	{"MiB", 1 << 20},
	{"MB", 1e6},
	{"KiB", 1 << 10},
	{"KB", 1e3},
	{"B", 1},
}

// BytesMost is the largest size that can be written: 1024 TiB.
const BytesMost = 1 << 50

// Size is a number of bytes between two bounds.
func Size(least, most int64) Kind[int64] {
	return Kind[int64]{
		Name: "size",
		Parse: func(s string) (int64, error) {
			n, err := ParseSize(s)
			if err == nil && (n < least || n > most) {
				err = fmt.Errorf("%s must be from %s to %s", Quote(s), ShowSize(least), ShowSize(most))
			}
			return n, err
		},
		Show: ShowSize,
	}
}

// ParseSize reads 64MiB, 100MB or a bare number of bytes.
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "BKMGTbkmgtiI ")
	unit := strings.TrimSpace(s[len(digits):])
	if unit == "" {
		unit = "B"
	}
	for _, u := range units {
		if !strings.EqualFold(unit, u.name) {
			continue
		}
		if digits == "" || strings.Trim(digits, "0123456789.") != "" {
			break
		}
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || n*float64(u.bytes) > BytesMost {
			break
		}
		if n = math.Round(n*float64(u.bytes)*1e3) / 1e3; n != math.Trunc(n) {
			return 0, fmt.Errorf("%s is not a whole number of bytes", Quote(s))
		}
		return int64(n), nil
	}
	return 0, fmt.Errorf("%s must be a number of bytes or a size such as 64MiB (1024 x 1024) or 100MB (1000 x 1000), at most %s",
		Quote(s), ShowSize(BytesMost))
}

// ShowSize writes a size in the largest unit that fits.
func ShowSize(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
