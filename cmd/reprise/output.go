package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/spell"
)

// usageError is a command line that cannot be understood.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// noArguments and oneOfMine refuse what a command does not take, the latter for those
// that only have others below them.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, but was given %q; it is used as: %s", cmd.CommandPath(), args[0], cmd.UseLine())
	}
	return nil
}

func oneOfMine(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			names = append(append(names, below.Name()), below.Aliases...)
		}
	}
	return usagef("%s has no command %q%s", cmd.CommandPath(), args[0], spell.Hint(args[0], names))
}

// unknownFlag says which flag was meant by one that a command does not have.
func unknownFlag(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return badValue(bad)
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usagef("%s needs a value", flagName(bare.GetSpecifiedName()))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return &usageError{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	name := unknown.GetSpecifiedName()
	hint := spell.Hint(name, names)
	if o, known := spell.Find("GridServer", name); known && hint == "" && cmd.Flags().Lookup("option") != nil {
		hint = "; --" + name + o.Answer("") + ", given as -O NAME=VALUE"
	}
	return usagef("%w%s", err, hint)
}

// badValue says what a flag takes. Go's own readers of numbers say it for programmers.
func badValue(bad *pflag.InvalidValueError) error {
	f := bad.GetFlag()
	kinds := map[string]string{
		"bool": "true or false", "duration": "a span of time such as 90s, 30m or 1h30m", "float64": "a number such as 0.5",
		"int": "a whole number", "int64": "a whole number", "uint": "a whole number, 0 or more", "uint64": "a whole number, 0 or more",
		"uint8": "0 to 255", "uint16": "0 to 65535", "uint32": "0 to 4294967295",
	}
	if what, ok := kinds[f.Value.Type()]; ok {
		return usagef("--%s %q: it takes %s", f.Name, bad.GetValue(), what)
	}
	return usagef("--%s %q: %w", f.Name, bad.GetValue(), bad.Unwrap())
}

// flagName writes a flag as it is given.
func flagName(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// must panics on an error that only a wrong name in this package can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// jsonLine writes v as one line of JSON.
func jsonLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printable keeps what others wrote from steering the terminal: anything that
// is no graphic character is shown escaped.
func printable(s string) string {
	plain := func(r rune) bool { return unicode.IsGraphic(r) && r != unicode.ReplacementChar }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if plain(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// printableLines is printable for a text of several lines.
func printableLines(s, indent string) string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(s, "\t", "    "), "\n"), "\n")
	for i := range lines {
		lines[i] = indent + printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// indented lays JSON out for reading; what is none stays as it is.
func indented(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// laidOut writes v as JSON for reading.
func laidOut(w io.Writer, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	fmt.Fprintln(w, printableLines(string(raw), ""))
	return err
}

// readFile reads a file, or standard input for -, and tells what to call it.
func readFile(name string, stdin io.Reader) (text []byte, called string, err error) {
	if name != "-" {
		text, err = os.ReadFile(name)
		return text, name, err
	}
	if text, err = io.ReadAll(stdin); err != nil {
		err = fmt.Errorf("reading standard input: %w", err)
	}
	return text, "standard input", err
}

// readBody reads the body of a call from a file, YAML or JSON, as JSON.
func readBody(name string, stdin io.Reader) (body json.RawMessage, called string, err error) {
	text, called, err := readFile(name, stdin)
	if err == nil {
		text, err = config.ReadBody(called, text)
	}
	return text, called, err
}

// among refuses a value of a flag that is none of those there are.
func among(flag, what string, given, all []string) error {
	for _, value := range given {
		if !slices.Contains(all, value) {
			return usagef("--%s %s: there is no such %s; the %[3]ss are %s%s", flag, value, what, strings.Join(all, ", "), spell.Hint(value, all))
		}
	}
	return nil
}

// namedValues reads the values of a flag that takes NAME=VALUE; nil = there are none.
func namedValues(flag string, list []string) (map[string]string, error) {
	var values map[string]string
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usagef("--%s %q: write it as NAME=VALUE", flag, text)
		}
		if values == nil {
			values = map[string]string{}
		}
		values[name] = value
	}
	return values, nil
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes "1 job", "2 jobs".
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + one + "s"
}

// span writes a duration as precisely as a person cares.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return trimZero(d.Round(time.Second).String())
	case d < 48*time.Hour:
		return trimZero(d.Round(time.Minute).String())
	}
	return fmt.Sprintf("%dd", int64(math.Round(d.Hours()/24)))
}

// trimZero drops the 0s of 5m0s and the 0m0s of 3h0m0s.
func trimZero(s string) string {
	if t, ok := strings.CutSuffix(s, "m0s"); ok {
		s = t + "m"
	}
	if t, ok := strings.CutSuffix(s, "h0m"); ok {
		s = t + "h"
	}
	return s
}

// moment writes date and distance of a time of the wire: "2026-03-01 12:00:00 +01:00 (in 5m)".
func moment(ms int64, now time.Time) string {
	at := time.UnixMilli(ms)
	return at.Format(forPeople) + " (" + distance(at, now) + ")"
}

// forPeople is how every command writes a time for people: that of this machine,
// with its offset. JSON has times of the wire.
const forPeople = "2006-01-02 15:04:05 -07:00"

var wireDate = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// localTimes writes the times in a text of the server for people.
func localTimes(text string) string {
	return wireDate.ReplaceAllStringFunc(text, func(date string) string {
		at, err := time.Parse(time.RFC3339Nano, date)
		if err != nil {
			return date
		}
		return at.Local().Format(forPeople)
	})
}

// ago writes the distance of a time of the wire: "5m ago", "in 2h".
func ago(ms int64) string { return distance(time.UnixMilli(ms), time.Now()) }

func distance(at, now time.Time) string {
	switch d := at.Sub(now); {
	case d > 0:
		return "in " + span(d)
	default:
		return span(d) + " ago"
	}
}

// clip shortens a text for a column.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// pairs writes name=value of a map, by name.
func pairs(m map[string]string, between string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return strings.Join(list, between)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }
