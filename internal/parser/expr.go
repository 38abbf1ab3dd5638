// Package parser makes records of lines: JSON, LTSV, logfmt and texts that a
// regular expression takes apart, with the settings of Fluent Bit's [PARSER];
// and it joins lines that belong together, as [MULTILINE_PARSER] says.
//
// It reads no files and no clock. A line that does not fit is told as such and
// is never lost here; a line costs a bounded time, and joined lines a bounded
// memory.
package parser

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// matchTimeMax is how long one expression with backtracking may run on one text;
// its clock is read every 100 ms, so that it may be twice as long.
const matchTimeMax = 100 * time.Millisecond

// ErrSlow says that an expression was stopped after 0.1 s on one text.
var ErrSlow = errors.New("the regular expression ran for 0.1 s on one text and was stopped")

// Expr is a regular expression in Ruby's syntax, as the original's are: `^` and
// `$` are the ends of lines, /.../imx may stand around it, \h is a hexadecimal
// digit. Go's regexp runs it in linear time; only what that cannot run
// (look-around, back references, possessive and atomic groups) backtracks, and
// for at most 0.2 s a text.
type Expr struct {
	names []string       // by the number of the group; "" = it has none
	line  *regexp.Regexp // for a text without a line break: ^ and $ are its ends
	lines *regexp.Regexp
	slow  *regexp2.Regexp
	why   error // Go's regexp cannot run it
}

// Compile reads an expression.
func Compile(text string) (*Expr, error) {
	pattern, flags := unwrap(text)
	pattern, err := translate(pattern)
	if err != nil {
		return nil, fmt.Errorf("the regular expression %q: %w", text, err)
	}
	e := &Expr{}
	inline := ""
	if strings.Contains(flags, "i") {
		inline += "i"
	}
	if strings.Contains(flags, "m") {
		inline += "s"
	}
	if e.why = errors.New("flag x"); !strings.Contains(flags, "x") {
		if e.lines, e.why = regexp.Compile("(?m" + inline + ")" + pattern); e.why == nil {
			if inline != "" {
				pattern = "(?" + inline + ")" + pattern
			}
			e.line, e.why = regexp.Compile(pattern)
		}
	}
	if e.why == nil {
		e.names = e.line.SubexpNames()
		return e, nil
	}
	options := regexp2.RegexOptions(regexp2.RE2 | regexp2.Multiline)
	for flag, option := range map[string]regexp2.RegexOptions{"i": regexp2.IgnoreCase, "m": regexp2.Singleline, "x": regexp2.IgnorePatternWhitespace} {
		if strings.Contains(flags, flag) {
			options |= option
		}
	}
	if e.slow, err = regexp2.Compile(pattern, options); err != nil {
		return nil, fmt.Errorf("the regular expression %q: %w", text, err)
	}
	e.slow.MatchTimeout = matchTimeMax
	for _, n := range e.slow.GetGroupNumbers() {
		for len(e.names) <= n {
			e.names = append(e.names, "")
		}
		if name := e.slow.GroupNameFromNumber(n); name != fmt.Sprint(n) {
			e.names[n] = name
		}
	}
	return e, nil
}

// Notice tells, of an expression that has to backtrack, why; "" for all others.
func (e *Expr) Notice() string {
	if e.slow == nil {
		return ""
	}
	return fmt.Sprintf("the regular expression %q needs backtracking (%s): it is slower, and stopped after 0.2 s on one text",
		e.slow.String(), strings.TrimPrefix(e.why.Error(), "error parsing regexp: "))
}

// Names are the names of the groups by their numbers; "" is one without a name.
func (e *Expr) Names() []string { return e.names }

// Match reports whether the expression is found in a text.
func (e *Expr) Match(text []byte) (bool, error) {
	if e.slow == nil {
		return e.of(text).Match(text), nil
	}
	found, err := e.slow.MatchString(string(text))
	if err != nil {
		return false, ErrSlow
	}
	return found, nil
}

// Find finds the expression in a text: the beginning and the end of group n are
// at[2n] and at[2n+1], or -1. It returns nil if it is not there.
func (e *Expr) Find(text []byte) (at []int, err error) {
	if e.slow == nil {
		return e.of(text).FindSubmatchIndex(text), nil
	}
	m, err := e.slow.FindStringMatch(string(text))
	if err != nil {
		return nil, ErrSlow
	}
	if m == nil {
		return nil, nil
	}
	place := places(text)
	for n := range e.names {
		begin, end := -1, -1
		if g := m.GroupByNumber(n); g != nil && len(g.Captures) > 0 {
			begin, end = place(g.Index), place(g.Index+g.Length)
		}
		at = append(at, begin, end)
	}
	return at, nil
}

func (e *Expr) of(text []byte) *regexp.Regexp {
	if bytes.IndexByte(text, '\n') < 0 {
		return e.line
	}
	return e.lines
}

// places turns places counted in characters into places in bytes.
func places(text []byte) func(int) int {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return func(n int) int { return n }
	}
	at := make([]int, 0, len(text)+1)
	for i := range string(text) {
		at = append(at, i)
	}
	at = append(at, len(text))
	return func(n int) int { return at[n] }
}

// unwrap takes /.../imxo apart.
func unwrap(text string) (pattern, flags string) {
	end := strings.LastIndexByte(text, '/')
	if !strings.HasPrefix(text, "/") || end == 0 || strings.Trim(text[end+1:], "imxo") != "" {
		return text, ""
	}
	return text[1:end], text[end+1:]
}

// translate writes an expression of Ruby in what Go and regexp2 have in common.
func translate(pattern string) (string, error) {
	var out []byte
	var groups []int // where those begin that are open
	atom := 0        // where that begins to which a quantifier belongs
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		switch c := rest[0]; {
		case c == '\\' && len(rest) > 1:
			atom = len(out)
			_, n := utf8.DecodeRuneInString(rest[1:])
			out = append(out, escape(rest[:1+n], false)...)
			i += 1 + n
		case c == '[':
			class, n, err := translateClass(rest)
			if err != nil {
				return "", err
			}
			atom, i = len(out), i+n
			out = append(out, class...)
		case c == '(':
			groups = append(groups, len(out))
			head := groupHead(rest)
			out, i = append(out, strings.Replace(head, "m", "s", 1)...), i+len(head)
			atom = len(out)
			if strings.HasSuffix(head, ")") { // (?i) is no group
				groups = groups[:len(groups)-1]
			}
		case c == ')':
			if atom = len(out); len(groups) > 0 {
				atom, groups = groups[len(groups)-1], groups[:len(groups)-1]
			}
			out, i = append(out, ')'), i+1
		case (c == '*' || c == '+' || c == '?') && strings.HasPrefix(rest[1:], "+"): // possessive
			held := string(out[atom:])
			out, i = append(append(append(out[:atom], "(?>"...), held...), c, ')'), i+2
		case c == '{' && strings.HasPrefix(rest, "{,"):
			out, i = append(out, "{0,"...), i+2
		case c == '*' || c == '+' || c == '?' || c == '{':
			out, i = append(out, c), i+1
		default:
			_, n := utf8.DecodeRuneInString(rest)
			atom = len(out)
			out, i = append(out, rest[:n]...), i+n
		}
	}
	return string(out), nil
}

// groupHead is a parenthesis with the flags behind it, if there are some.
func groupHead(rest string) string {
	if !strings.HasPrefix(rest, "(?") {
		return "("
	}
	flags := len(rest) - len(strings.TrimLeft(rest[2:], "imx-"))
	if flags == 2 || flags == len(rest) || rest[flags] != ':' && rest[flags] != ')' {
		return "("
	}
	return rest[:flags+1]
}

// translateClass translates [...] and returns its length in the pattern.
func translateClass(rest string) (class string, n int, err error) {
	var out strings.Builder
	for n < len(rest) {
		switch {
		case strings.HasPrefix(rest[n:], "&&"):
			return "", 0, errors.New("the intersection && of character classes is not there; write the characters that are left")
		case strings.HasPrefix(rest[n:], "[:") && strings.Contains(rest[n:], ":]"):
			end := n + strings.Index(rest[n:], ":]") + 2
			out.WriteString(rest[n:end])
			n = end
			continue
		case rest[n] == '\\' && n+1 < len(rest):
			out.WriteString(escape(rest[n:n+2], true))
			n += 2
			continue
		}
		out.WriteByte(rest[n])
		if n++; rest[n-1] == ']' && n > 2 && (n > 3 || rest[1] != '^') {
			break
		}
	}
	return out.String(), n, nil
}

// escape translates a backslash and what follows it.
func escape(text string, class bool) string {
	switch {
	case text == `\h` && class:
		return "0-9a-fA-F"
	case text == `\h`:
		return "[0-9a-fA-F]"
	case text == `\H` && !class:
		return "[^0-9a-fA-F]"
	}
	return text
}
