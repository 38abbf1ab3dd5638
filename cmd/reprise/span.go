package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// spanFlag is a flag that takes a span of time, days included.
type spanFlag struct{ to *time.Duration }

// spanVar defines one.
func spanVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	flags.Var(spanFlag{to}, name, usage)
}

func (f spanFlag) Type() string { return "span" }

func (f spanFlag) String() string {
	if f.to == nil || *f.to == 0 {
		return ""
	}
	return span(*f.to)
}

func (f spanFlag) Set(text string) (err error) {
	*f.to, err = parseSpan(text)
	return err
}

var errSpan = errors.New("write a span of time as 90s, 1h30m, 2d or 1d12h")

// parseSpan reads a span of time: as Go writes it, with days of 24 hours before it.
func parseSpan(text string) (time.Duration, error) {
	days, rest := time.Duration(0), text
	if n, tail, ok := strings.Cut(text, "d"); ok {
		d, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return 0, errSpan
		}
		if days, rest = time.Duration(d)*24*time.Hour, tail; rest == "" { //nolint:gosec // 16 bits
			return days, nil
		}
	}
	span, err := time.ParseDuration(rest)
	if err != nil || span < 0 {
		return 0, errSpan
	}
	return days + span, nil
}
