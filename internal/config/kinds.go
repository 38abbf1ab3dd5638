package config

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
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/internal/rule"
)

// field is one value of the configuration, with its kind.
type field struct {
	kind string
	set  func(c *Config, texts []string) error
	show func(c *Config) string
	list bool // takes many texts; otherwise the last one counts
}

// of ties a kind to the place where its value is kept.
func of[T any](k notation.Kind[T], at func(*Config) *T) field {
	return field{
		kind: k.Name,
		set: func(c *Config, texts []string) error {
			v, err := k.Parse(texts[len(texts)-1])
			if err == nil {
				*at(c) = v
			}
			return err
		},
		show: func(c *Config) string { return k.Show(*at(c)) },
	}
}

// listOf is a field that takes any number of texts, each with any number of
// values between commas.
func listOf(k notation.Kind[string], at func(*Config) *[]string) field {
	return field{
		kind: k.Name + ", ...",
		list: true,
		set: func(c *Config, texts []string) error {
			var list []string
			var errs []error
			for text := range strings.SplitSeq(strings.Join(texts, ","), ",") {
				if text = strings.TrimSpace(text); text == "" {
					continue
				}
				v, err := k.Parse(text)
				if err != nil {
					errs = append(errs, err)
				} else if !slices.Contains(list, v) {
					list = append(list, v)
				}
			}
			if errs == nil {
				*at(c) = list
			}
			return errors.Join(errs...)
		},
		show: func(c *Config) string { return strings.Join(*at(c), ",") },
	}
}

func same(s string) string { return s }

// unitOnly is a span that must name its unit.
func unitOnly(k notation.Kind[job.Millis]) notation.Kind[job.Millis] {
	parse := k.Parse
	k.Parse = func(s string) (job.Millis, error) {
		if _, err := job.ParseSpan(s); err != nil {
			return 0, err
		}
		return parse(s)
	}
	return k
}

// span is the same for what package time measures.
func span(least, most job.Millis) notation.Kind[time.Duration] {
	k := notation.Millis(least, most)
	return notation.Kind[time.Duration]{
		Name: k.Name,
		Parse: func(s string) (time.Duration, error) {
			v, err := k.Parse(s)
			return time.Duration(v) * time.Millisecond, err
		},
		Show: func(d time.Duration) string { return job.Millis(d / time.Millisecond).String() },
	}
}

// DiskReserve is how much of the disk stays free; one of the two is 0.
type DiskReserve struct {
	Bytes   int64
	Percent float64 // of the whole disk
}

var reserve = notation.Kind[DiskReserve]{
	Name: "size or percent",
	Parse: func(s string) (DiskReserve, error) {
		number, isPercent := strings.CutSuffix(s, "%")
		if !isPercent {
			n, err := notation.ParseSize(s)
			return DiskReserve{Bytes: n}, err
		}
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || strings.Trim(number, "0123456789.") != "" || p < 0.01 || p > 90 {
			return DiskReserve{}, fmt.Errorf("%s must be a share of the disk from 0.01%% to 90%%", notation.Quote(s))
		}
		return DiskReserve{Percent: math.Round(p*100) / 100}, nil
	},
	Show: func(r DiskReserve) string {
		if r.Percent > 0 {
			return strconv.FormatFloat(r.Percent, 'f', -1, 64) + "%"
		}
		return notation.ShowSize(r.Bytes)
	},
}

var limit = notation.Kind[job.Limit]{Name: "number|unlimited|none", Parse: job.ParseLimit, Show: job.Limit.String}

var exponent = notation.Kind[float64]{
	Name: "number",
	Parse: func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.Trim(s, "-0123456789.") != "" {
			return 0, fmt.Errorf("%s must be a number such as 4, 2.5 or -1", notation.Quote(s))
		}
		return f, nil
	},
	Show: func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
}

var path = notation.Kind[string]{
	Name: "path",
	Parse: func(s string) (string, error) {
		switch {
		case s == "" || strings.ContainsRune(s, 0):
			return "", fmt.Errorf("%s is not a path", notation.Quote(s))
		case s == "~" || strings.HasPrefix(s, "~/"):
			return "", fmt.Errorf("%s: ~ is expanded by shells only; write the whole path", notation.Quote(s))
		}
		return s, nil
	},
	Show: same,
}

// host is a name or an address without a port.
var host = notation.Kind[string]{
	Name: "host",
	Parse: func(s string) (string, error) {
		bare := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
		if addr, err := netip.ParseAddr(bare); err == nil {
			return addr.String(), nil
		}
		if _, err := netip.ParseAddrPort(s); err == nil || strings.ContainsAny(bare, ":/") {
			return "", fmt.Errorf("%s must be a host name or an IP address, without a scheme or a port", notation.Quote(s))
		}
		const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-._"
		if bare == "" || len(bare) > 253 || strings.Trim(bare, alphabet) != "" {
			return "", fmt.Errorf("%s must be a host name or an IP address", notation.Quote(s))
		}
		return bare, nil
	},
	Show: same,
}

// loopback reports whether only this machine can reach the host. A name other
// than localhost is not looked up: what it means can change.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// LevelTrace is below debug; Zizq knows it.
const LevelTrace = slog.LevelDebug - 4

var level = notation.OneOf(LevelName, LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError)

// LevelName is the level in lower case; levels in between count as the one below.
func LevelName(l slog.Level) string {
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
func orRecent(k notation.Kind[job.Millis]) notation.Kind[job.Millis] {
	const word = "recent"
	span := k
	k.Name += ", or " + word
	k.Parse = func(s string) (job.Millis, error) {
		if s == word {
			return rule.RetainRecent, nil
		}
		return span.Parse(s)
	}
	k.Show = func(m job.Millis) string {
		if m == rule.RetainRecent {
			return word
		}
		return span.Show(m)
	}
	return k
}
