package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

// Param is one part of a policy by the name of its flag, which is also the
// name of its query parameter.
type Param struct {
	Name  string // max-age
	Value string // what it takes, for a help text
	Help  string

	path string // in the policy: curve.base
	form form
}

// form is how a value is written in the policy's JSON.
type form uint8

const (
	text   form = iota // a string; spans and limits are read from strings too
	number             // a number
	list               // spans between commas
)

// Params are the parts of a policy that decide when a job is tried again.
var Params = []Param{
	{"curve", "KIND", "polynomial, uniform, exponential, constant, staircase, linear, list or immediate (default polynomial)", "curve.kind", text},
	{"base", "TIME", "polynomial (15s), uniform (5s), staircase (5s), linear: the shortest wait", "curve.base", text},
	{"exponent", "NUMBER", "polynomial: the wait grows by a^exponent seconds (4)", "curve.exponent", number},
	{"jitter", "HOW", "polynomial: a time (30s); exponential (full), linear, list: none, full, equal, decorrelated or ±10%", "curve.jitter", text},
	{"cap", "TIME", "uniform (2000s), exponential (1h), linear: the longest wait", "curve.cap", text},
	{"unit", "TIME", "exponential: the first wait (1s)", "curve.unit", text},
	{"factor", "NUMBER", "exponential: what each wait is multiplied by (2)", "curve.factor", number},
	{"offset", "N", "exponential: start as if N waits had been (0)", "curve.offset", number},
	{"delay", "TIME", "constant: every wait (5s)", "curve.delay", text},
	{"step", "TIME", "linear: what is added per retry", "curve.step", text},
	{"delays", "TIME,...", "list: each wait; the last one repeats", "curve.delays", list},
	{"count", "WHICH", "polynomial: a counts the attempts previous (default) to the failed one, or including it", "curve.count", text},
	{"limit", "N", "retries after the first attempt: a number, unlimited or none (25)", "limit", text},
	{"max-age", "TIME", "give up when the next retry would be later than this after the job's creation", "max_age", text},
}

// Rows is what else a preview takes.
var Rows = Param{"rows", "N", "how many retries to show (the limit, or 25 if there is none; at most 1000)", "", text}

// Kinds are the names of the curves.
func Kinds() (list []string) {
	for k := job.CurvePolynomial; k <= job.CurveImmediate; k++ {
		list = append(list, k.String())
	}
	return list
}

// Millis is a span of time, for packages that only pass it on.
type Millis = job.Millis

// Retry is a policy, for packages that only pass it on.
type Retry = job.Retry

// Read makes a policy of values by the names of Params. Without a kind, other
// fields of a curve are those of a polynomial. With rows it takes the number of
// rows of a preview, 1 to RowsMax, too (0 = not given); with policy a whole
// policy as JSON, beside which the others are refused. mark stands before the
// names in what is told about them, such as "--".
//
// Whatever is wrong is told at once, in an Invalid *job.Error whose cause is
// job.Problems, up to problemsMax of them.
func Read(values map[string][]string, mark string) (r job.Retry, rows int, err error) {
	in := input{values: values, mark: mark}
	in.unknown()
	if whole, given := in.one("policy"); given {
		r = in.parse([]byte(whole), func(field string) string { return "policy." + field })
		for _, p := range Params {
			if _, both := values[p.Name]; both {
				in.add(p.Name, "is given beside policy, which says it all; leave one of them out")
			}
		}
	} else {
		r = in.parse(in.json(), nameOf)
	}
	if s, given := in.one(Rows.Name); given {
		if rows, err = strconv.Atoi(s); err != nil || rows < 1 || rows > RowsMax {
			in.add(Rows.Name, "must be a whole number from 1 to %d", RowsMax)
		}
	}
	if len(in.problems) > 0 {
		return job.Retry{}, 0, &job.Error{Kind: job.Invalid, Text: "policy refused", Cause: in.problems}
	}
	return r, rows, nil
}

// problemsMax bounds what a hostile query can make us answer.
const problemsMax = 50

// input are values being read.
type input struct {
	values   map[string][]string
	mark     string
	problems job.Problems
}

func (in *input) add(name, format string, args ...any) {
	if len(in.problems) == problemsMax {
		return
	}
	text := in.mark + name + ": " + fmt.Sprintf(format, args...)
	in.problems = append(in.problems, &job.Error{Kind: job.Invalid, Field: name, Text: text})
}

// one is the value of a name; repeated values are a problem.
func (in *input) one(name string) (string, bool) {
	list := in.values[name]
	if len(list) > 1 {
		in.add(name, "is there twice")
	}
	if len(list) == 0 {
		return "", false
	}
	return list[0], true
}

func (in *input) unknown() {
	known := []string{"policy", Rows.Name}
	for _, p := range Params {
		known = append(known, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(in.values)) {
		if !slices.Contains(known, name) {
			in.add(shortened(name), "is not known; use %s%s", strings.Join(known, ", "), spell.Hint(name, known))
		}
	}
}

func shortened(s string) string {
	const bytesMax = 64
	if len(s) <= bytesMax {
		return s
	}
	return strings.ToValidUTF8(s[:bytesMax], "") + "…"
}

// json writes the values as a policy.
func (in *input) json() []byte {
	fields := map[string]any{}
	curve := map[string]any{}
	for _, p := range Params {
		s, given := in.one(p.Name)
		if !given {
			continue
		}
		into, key := fields, p.path
		if rest, inside := strings.CutPrefix(p.path, "curve."); inside {
			into, key = curve, rest
		}
		into[key] = p.form.value(s)
	}
	if len(curve) > 0 {
		if curve["kind"] == nil {
			curve["kind"] = job.CurvePolynomial.String()
		}
		fields["curve"] = curve
	}
	b, err := json.Marshal(fields)
	if err != nil { // strings and numbers that are JSON
		panic(err)
	}
	return b
}

func (f form) value(s string) any {
	switch {
	case f == number && json.Valid([]byte(s)) && !bytes.ContainsAny([]byte(s), "\"{[ntf"):
		return json.RawMessage(s)
	case f == list:
		return strings.Split(s, ",")
	}
	return s
}

// parse reads a policy and keeps its problems under the names of its fields.
func (in *input) parse(b []byte, name func(field string) string) job.Retry {
	r, err := job.ParseRetry(b)
	var each job.Problems
	if err != nil && !errors.As(err, &each) {
		in.add("policy", "%s", err)
	}
	for _, p := range each {
		why := strings.TrimPrefix(strings.TrimPrefix(p.Text, p.Field+": "), "it ")
		in.add(strings.TrimSuffix(name(p.Field), "."), "%s", why)
	}
	return r
}

// nameOf turns a field of a policy into the name of its parameter.
func nameOf(field string) string {
	for _, p := range Params {
		if rest, ok := strings.CutPrefix(field, p.path); ok && (rest == "" || rest[0] == '[') {
			return p.Name + rest
		}
	}
	return field
}
