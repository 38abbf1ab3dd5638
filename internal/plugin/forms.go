package plugin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/spell"
)

// value is what is written for a property, in one of these by its form.
type value struct {
	text    string
	number  float64 // a flag is 0 or 1
	span    time.Duration
	parts   []string
	retries Retries
}

// Retries is how many retries follow the first attempt.
type Retries struct {
	Most      int
	Unlimited bool
}

// retriesMost is the largest limit.
const retriesMost = 1_000_000

// ParseRetries reads a Retry_Limit: a number, no_limits (or false, off) or no_retries. What the
// original takes for 1 with a warning is refused: a limit that is no limit loses data.
func ParseRetries(s string) (Retries, error) {
	switch strings.ToLower(s) {
	case "no_limits", "false", "off":
		return Retries{Unlimited: true}, nil
	case "no_retries":
		return Retries{}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > retriesMost {
		return Retries{}, fmt.Errorf("%s must be how many retries follow the first attempt, from 1 to %d, or no_limits, or no_retries%s",
			notation.Quote(s), retriesMost, spell.Hint(s, []string{"no_limits", "no_retries"}))
	}
	return Retries{Most: n}, nil
}

func (p *Property) parse(s string) (v value, err error) {
	switch p.Form {
	case Text:
		v.text = s
	case Pattern:
		v.text = s
		_, err = parser.Compile(s)
	case Flag:
		var on bool
		if on, err = fluentconf.ParseFlag(s); on {
			v.number = 1
		}
	case Whole, Number, Size, Span:
		return p.number(s)
	case Word:
		v.text, err = p.word(s)
	case List:
		v.parts = split(s)
		if len(v.parts) == 0 {
			err = fmt.Errorf("%s must have at least one part", notation.Quote(s))
		}
	case Parts:
		v.parts = fields(s, int(p.Most))
		if len(v.parts) < int(p.Least) {
			err = fmt.Errorf("%s must have %s; write blanks between them", notation.Quote(s), p.howMany())
		}
	case Limit:
		v.retries, err = ParseRetries(s)
	}
	return v, err
}

// number reads what has bounds.
func (p *Property) number(s string) (v value, err error) {
	switch p.Form {
	case Whole:
		var n int64
		n, err = strconv.ParseInt(s, 10, 64)
		if v.number = float64(n); err != nil || v.number < p.Least || v.number > p.Most {
			err = fmt.Errorf("%s must be a whole number from %.0f to %.0f", notation.Quote(s), p.Least, p.Most)
		}
	case Number:
		v.number, err = strconv.ParseFloat(s, 64)
		if err != nil || !(v.number >= p.Least && v.number <= p.Most) {
			err = fmt.Errorf("%s must be a number from %g to %g", notation.Quote(s), p.Least, p.Most)
		}
	case Size:
		var n int64
		n, err = fluentconf.ParseSize(s)
		if v.number = float64(n); err == nil && (v.number < p.Least || v.number > p.Most) {
			err = fmt.Errorf("%s must be from %.0f to %.0f bytes", notation.Quote(s), p.Least, p.Most)
		}
	case Span:
		v.span, err = fluentconf.ParseSpan(s)
		if seconds := v.span.Seconds(); err == nil && (seconds < p.Least || seconds > p.Most) {
			err = fmt.Errorf("%s must be from %g to %g seconds", notation.Quote(s), p.Least, p.Most)
		}
	default:
	}
	return v, err
}

func (p *Property) howMany() string {
	if p.Least == p.Most {
		return fmt.Sprintf("%.0f parts", p.Least)
	}
	return fmt.Sprintf("%.0f to %.0f parts", p.Least, p.Most)
}

func (p *Property) word(s string) (string, error) {
	for _, w := range p.Words {
		if strings.EqualFold(w, s) {
			return w, nil
		}
	}
	return s, fmt.Errorf("%s must be one of %s%s", notation.Quote(s), strings.Join(p.Words, ", "), spell.Hint(s, p.Words))
}

// split takes a list apart at its commas.
func split(s string) (parts []string) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// fields takes a value apart at its blanks, into at most so many parts. Quotes around a
// part may hold blanks, and \" in them is a quote.
func fields(s string, most int) (parts []string) {
	for s = strings.TrimSpace(s); s != "" && len(parts) < most-1; s = strings.TrimSpace(s) {
		if inside, rest, ok := unquote(s); ok {
			parts, s = append(parts, inside), rest
			continue
		}
		end := strings.IndexAny(s, " \t")
		if end < 0 {
			end = len(s)
		}
		parts, s = append(parts, s[:end]), s[end:]
	}
	if s == "" {
		return parts
	}
	if inside, rest, ok := unquote(s); ok && rest == "" {
		s = inside
	}
	return append(parts, s)
}

// unquote takes a part in quotes off the beginning.
func unquote(s string) (inside, rest string, ok bool) {
	if s[0] != '"' {
		return "", s, false
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
		case s[i] == '"' && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\t'):
			return strings.ReplaceAll(s[1:i], `\"`, `"`), s[i+1:], true
		}
	}
	return "", s, false
}
