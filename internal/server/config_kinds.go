package server

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/spell"
)

// kind is a way to write a value, the same on a command line, in the
// environment and in a file: what show writes, parse reads back.
type kind[T any] struct {
	name  string // as --help and docs/config.md call it
	parse func(string) (T, error)
	show  func(T) string
}

// field is one value inside an O, with its kind.
type field[O any] struct {
	kind string
	set  func(o *O, texts []string) error
	show func(o *O) string
	list bool // takes many texts; otherwise the last one counts
}

// of ties a kind to the place where its value is kept.
func of[O, T any](k kind[T], at func(*O) *T) field[O] {
	return field[O]{
		kind: k.name,
		set: func(o *O, texts []string) error {
			v, err := k.parse(texts[len(texts)-1])
			if err == nil {
				*at(o) = v
			}
			return err
		},
		show: func(o *O) string { return k.show(*at(o)) },
	}
}

// listOf is a field that takes any number of texts, each with any number of
// values between commas.
func listOf[O any](k kind[string], at func(*O) *[]string) field[O] {
	return field[O]{
		kind: k.name + ", ...",
		list: true,
		set: func(o *O, texts []string) error {
			var list []string
			var errs []error
			for text := range strings.SplitSeq(strings.Join(texts, ","), ",") {
				if text = strings.TrimSpace(text); text == "" {
					continue
				}
				v, err := k.parse(text)
				if err != nil {
					errs = append(errs, err)
				} else if !slices.Contains(list, v) {
					list = append(list, v)
				}
			}
			if errs == nil {
				*at(o) = list
			}
			return errors.Join(errs...)
		},
		show: func(o *O) string { return strings.Join(*at(o), ",") },
	}
}

// quote writes a value into a message, short whatever it is.
func quote(s string) string {
	const bytesMax = 64
	if len(s) > bytesMax {
		s = strings.ToValidUTF8(s[:bytesMax], "") + "..."
	}
	return strconv.Quote(s)
}

func same(s string) string { return s }

var yesNo = kind[bool]{
	name: "bool",
	parse: func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
		return false, fmt.Errorf("%s must be true or false", quote(s))
	},
	show: strconv.FormatBool,
}

// words is one of a few words.
func words[T ~string](list ...T) kind[T] {
	return oneOf(func(w T) string { return string(w) }, list...)
}

// enum is one of a few constants, written as they write themselves.
func enum[T interface {
	comparable
	fmt.Stringer
}](list ...T) kind[T] {
	return oneOf(T.String, list...)
}

func oneOf[T comparable](show func(T) string, list ...T) kind[T] {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = show(v)
	}
	return kind[T]{
		name: strings.Join(names, "|"),
		parse: func(s string) (T, error) {
			if i := slices.Index(names, s); i >= 0 {
				return list[i], nil
			}
			var none T
			return none, fmt.Errorf("%s must be one of %s%s", quote(s), strings.Join(names, ", "), spell.Hint(s, names))
		},
		show: show,
	}
}

// whole is a whole number between two bounds.
func whole[T ~int | ~int64](least, most T) kind[T] {
	return kind[T]{
		name: "number",
		parse: func(s string) (T, error) {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || T(n) < least || T(n) > most {
				return 0, fmt.Errorf("%s must be a whole number from %d to %d", quote(s), least, most)
			}
			return T(n), nil
		},
		show: func(n T) string { return strconv.FormatInt(int64(n), 10) },
	}
}

// millis is a span of time between two bounds.
func millis(least, most job.Millis) kind[job.Millis] {
	return kind[job.Millis]{
		name: "duration",
		parse: func(s string) (job.Millis, error) {
			v, err := job.ParseDuration(s)
			if err == nil && (v < least || v > most) {
				err = fmt.Errorf("%s must be from %s to %s", quote(s), least, most)
			}
			return v, err
		},
		show: job.Millis.String,
	}
}

// unitOnly is a span that must name its unit.
func unitOnly(k kind[job.Millis]) kind[job.Millis] {
	parse := k.parse
	k.parse = func(s string) (job.Millis, error) {
		if _, err := job.ParseSpan(s); err != nil {
			return 0, err
		}
		return parse(s)
	}
	return k
}

// span is the same for what package time measures.
func span(least, most job.Millis) kind[time.Duration] {
	k := millis(least, most)
	return kind[time.Duration]{
		name: k.name,
		parse: func(s string) (time.Duration, error) {
			v, err := k.parse(s)
			return time.Duration(v) * time.Millisecond, err
		},
		show: func(d time.Duration) string { return job.Millis(d / time.Millisecond).String() },
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

// bytesMost is the largest size that can be written: 1024 TiB.
const bytesMost = 1 << 50

// size is a number of bytes between two bounds.
func size(least, most int64) kind[int64] {
	return kind[int64]{
		name: "size",
		parse: func(s string) (int64, error) {
			n, err := parseSize(s)
			if err == nil && (n < least || n > most) {
				err = fmt.Errorf("%s must be from %s to %s", quote(s), showSize(least), showSize(most))
			}
			return n, err
		},
		show: showSize,
	}
}

func parseSize(s string) (int64, error) {
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
		if err != nil || n*float64(u.bytes) > bytesMost {
			break
		}
		if n = math.Round(n*float64(u.bytes)*1e3) / 1e3; n != math.Trunc(n) {
			return 0, fmt.Errorf("%s is not a whole number of bytes", quote(s))
		}
		return int64(n), nil
	}
	return 0, fmt.Errorf("%s must be a number of bytes or a size such as 64MiB (1024 x 1024) or 100MB (1000 x 1000), at most %s",
		quote(s), showSize(bytesMost))
}

func showSize(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// DiskReserve is how much of the disk stays free; one of the two is 0.
type DiskReserve struct {
	Bytes   int64
	Percent float64 // of the whole disk
}

var reserve = kind[DiskReserve]{
	name: "size or percent",
	parse: func(s string) (DiskReserve, error) {
		number, isPercent := strings.CutSuffix(s, "%")
		if !isPercent {
			n, err := parseSize(s)
			return DiskReserve{Bytes: n}, err
		}
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || strings.Trim(number, "0123456789.") != "" || p < 0.01 || p > 90 {
			return DiskReserve{}, fmt.Errorf("%s must be a share of the disk from 0.01%% to 90%%", quote(s))
		}
		return DiskReserve{Percent: math.Round(p*100) / 100}, nil
	},
	show: func(r DiskReserve) string {
		if r.Percent > 0 {
			return strconv.FormatFloat(r.Percent, 'f', -1, 64) + "%"
		}
		return showSize(r.Bytes)
	},
}

var limit = kind[job.Limit]{name: "number|unlimited|none", parse: job.ParseLimit, show: job.Limit.String}

var exponent = kind[float64]{
	name: "number",
	parse: func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.Trim(s, "-0123456789.") != "" {
			return 0, fmt.Errorf("%s must be a number such as 4, 2.5 or -1", quote(s))
		}
		return f, nil
	},
	show: func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
}

var path = kind[string]{
	name: "path",
	parse: func(s string) (string, error) {
		switch {
		case s == "" || strings.ContainsRune(s, 0):
			return "", fmt.Errorf("%s is not a path", quote(s))
		case s == "~" || strings.HasPrefix(s, "~/"):
			return "", fmt.Errorf("%s: ~ is expanded by shells only; write the whole path", quote(s))
		}
		return s, nil
	},
	show: same,
}

// host is a name or an address without a port.
var host = kind[string]{
	name: "host",
	parse: func(s string) (string, error) {
		bare := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
		if addr, err := netip.ParseAddr(bare); err == nil {
			return addr.String(), nil
		}
		if _, err := netip.ParseAddrPort(s); err == nil || strings.ContainsAny(bare, ":/") {
			return "", fmt.Errorf("%s must be a host name or an IP address, without a scheme or a port", quote(s))
		}
		const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-._"
		if bare == "" || len(bare) > 253 || strings.Trim(bare, alphabet) != "" {
			return "", fmt.Errorf("%s must be a host name or an IP address", quote(s))
		}
		return bare, nil
	},
	show: same,
}

// loopback reports whether only this machine can reach the host. A name other
// than localhost is not looked up: what it means can change.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// LevelTrace is below debug; Zizq knows it.
const LevelTrace = slog.LevelDebug - 4

var level = oneOf(levelName, LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError)

// levelName is the level in lower case; levels in between count as the one below.
func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelDebug:
		return "trace"
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}

// orRecent is a span, or the word for the few finished jobs that are kept by default.
func orRecent(k kind[job.Millis]) kind[job.Millis] {
	const word = "recent"
	span := k
	k.name += ", or " + word
	k.parse = func(s string) (job.Millis, error) {
		if s == word {
			return rule.RetainRecent, nil
		}
		return span.parse(s)
	}
	k.show = func(m job.Millis) string {
		if m == rule.RetainRecent {
			return word
		}
		return span.show(m)
	}
	return k
}

// retain is how long a queue keeps terminal jobs; without a word the server's
// retention applies.
var retain = kind[job.Millis]{
	name:  "duration",
	parse: millis(0, job.MaxMillis).parse,
	show: func(m job.Millis) string {
		if m == job.Unset {
			return ""
		}
		return m.String()
	},
}

// opposite is a yes or no kept the other way round.
func opposite(yes, no string) kind[bool] {
	return oneOf(func(inverted bool) string {
		if inverted {
			return no
		}
		return yes
	}, false, true)
}
