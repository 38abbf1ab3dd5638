package jq

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/itchyny/gojq"
)

// What one step of an evaluation may do. The interpreter looks at its time
// limit between two steps only, so a step must be bounded by itself: values
// share their parts, and twenty short ones can stand for a text of gigabytes.
const (
	stepBytes  = 4 << 20  // read or made, counted as in weigh
	stepPairs  = 1 << 26  // values compared with values, or copied
	stepScan   = 1 << 30  // bytes compared with bytes
	digitsMax  = 64 << 10 // of a number
	indexMax   = 1 << 20  // of an array; one that is written to grows up to it
	nestingMax = 10_000
)

// heavy is the error of a step that is refused.
func heavy(what string) error {
	return fmt.Errorf("%s needs more memory or time than one step may take (%w)", what, ErrBound)
}

// weigh takes the size of a value as it would be written out from left: the
// bytes of texts and numbers, 1 for each value. It stops when nothing is left.
func weigh(v any, left, nesting int) int {
	if left--; left < 0 || nesting == 0 {
		return -1
	}
	switch v := v.(type) {
	case string:
		left -= len(v)
	case json.Number:
		if left -= len(v); len(v) > digitsMax {
			return -1
		}
	case *big.Int:
		if left -= v.BitLen() / 3; v.BitLen() > 3*digitsMax {
			return -1
		}
	case []any:
		for i := 0; i < len(v) && left >= 0; i++ {
			left = weigh(v[i], left, nesting-1)
		}
	case map[string]any:
		for key, value := range v {
			if left = weigh(value, left-len(key), nesting-1); left < 0 {
				break
			}
		}
	}
	return left
}

func light(list ...any) bool {
	left := stepBytes
	for _, v := range list {
		left = weigh(v, left, nestingMax)
	}
	return left >= 0
}

// parts is how many values a light value is made of.
func parts(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			n += parts(part)
		}
	case map[string]any:
		for _, part := range v {
			n += parts(part)
		}
	}
	return n
}

// top is the room that the outermost layer of a value takes.
func top(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		return 16 * len(v)
	case map[string]any:
		return 48 * len(v)
	case json.Number, *big.Int:
		return stepBytes - weigh(v, stepBytes, 1)
	}
	return 1
}

// guards are the functions of the prelude that look before a step is taken.
// Those without or with one argument give their input on, those with two
// operands give both on as an array.
func guards() []gojq.CompilerOption {
	check := func(name string, arguments int, what string, ok func(in any, args []any) bool) gojq.CompilerOption {
		return gojq.WithFunction(name, arguments, arguments, func(in any, args []any) any {
			if !ok(in, args) {
				return heavy(what)
			}
			return in
		})
	}
	pair := func(name, what string, ok func(a, b any) bool) gojq.CompilerOption {
		return gojq.WithFunction(name, 2, 2, func(_ any, args []any) any {
			if !ok(args[0], args[1]) {
				return heavy(what)
			}
			return []any{args[0], args[1]}
		})
	}
	compare := func(name string, holds func(order int) bool) gojq.CompilerOption {
		return gojq.WithFunction(name, 2, 2, func(_ any, args []any) any {
			if (plain(args[0]) || plain(args[1])) && light(args...) || light(args[0]) && light(args[1]) {
				return holds(gojq.Compare(args[0], args[1]))
			}
			return heavy("a comparison")
		})
	}
	return []gojq.CompilerOption{
		compare("__eq", func(o int) bool { return o == 0 }),
		compare("__ne", func(o int) bool { return o != 0 }),
		compare("__lt", func(o int) bool { return o < 0 }),
		compare("__le", func(o int) bool { return o <= 0 }),
		compare("__gt", func(o int) bool { return o > 0 }),
		compare("__ge", func(o int) bool { return o >= 0 }),
		pair("__sums", "a sum", func(a, b any) bool { return top(a)+top(b) <= stepBytes }),
		pair("__differences", "a difference or quotient", func(a, b any) bool {
			return light(a, b) && apart(a, b)
		}),
		pair("__products", "a product", product),
		check("__whole", 0, "reading all of a value", func(in any, _ []any) bool { return light(in) }),
		check("__both", 1, "reading all of a value", func(in any, args []any) bool { return light(in, args[0]) }),
		check("__times", 1, "comparing two values", func(in any, args []any) bool { return light(in, args[0]) && apart(in, args[0]) }),
		check("__search", 1, "searching a value", func(in any, args []any) bool {
			return light(in, args[0]) && apart(in, args[0]) && top(in)*top(args[0]) <= stepScan
		}),
		check("__joined", 1, "joining values", joined),
		check("__table", 0, "transposing an array", table),
		check("__digits", 0, "reading a number", func(in any, _ []any) bool { return top(in) <= digitsMax }),
		check("__regexp", 2, "finding all matches", matches),
		check("__at", 0, "such an index", func(in any, _ []any) bool { return step(in) }),
		check("__path", 0, "such a path", func(in any, _ []any) bool { return path(in) }),
		check("__paths", 1, "deleting so many paths", paths),
		check("__event", 0, "such a path", func(in any, _ []any) bool {
			event, ok := in.([]any)
			return !ok || len(event) == 0 || path(event[0])
		}),
	}
}

// plain reports whether a value has no parts.
func plain(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

// apart reports whether each part of one value may meet each of the other.
func apart(a, b any) bool { return plain(a) || plain(b) || parts(a)*parts(b) <= stepPairs }

func product(a, b any) bool {
	if _, ok := a.(string); !ok {
		a, b = b, a
	}
	if s, ok := a.(string); ok {
		n, ok := gojq.ToFloat64(b)
		return !ok || float64(len(s))*n <= stepBytes
	}
	return light(a, b)
}

// joined: all texts one after another, with one between them.
func joined(in any, args []any) bool {
	list, _ := in.([]any)
	if fields, ok := in.(map[string]any); ok {
		for _, v := range fields {
			list = append(list, v)
		}
	}
	room := len(list) * top(args[0])
	for _, v := range list {
		if room += top(v); room > stepBytes {
			return false
		}
	}
	return true
}

func table(in any, _ []any) bool {
	rows, _ := in.([]any)
	columns := 0
	for _, row := range rows {
		if row, ok := row.([]any); ok {
			columns = max(columns, len(row))
		}
	}
	return len(rows)*columns <= stepBytes/16
}

// matches: a match has a record for each group.
func matches(in any, args []any) bool {
	text, _ := in.(string)
	expression := args[0]
	flags, _ := args[1].(string)
	if list, ok := expression.([]any); ok && len(list) > 0 {
		expression = list[0]
		if len(list) > 1 {
			flags, _ = list[1].(string)
		}
	}
	source, _ := expression.(string)
	if len(source) > digitsMax || len(text) > stepBytes {
		return false
	}
	return !strings.Contains(flags, "g") || len(text)*(1+strings.Count(source, "(")) <= stepBytes
}

// step reports whether a value may stand in brackets behind another: an array
// would be searched for in it.
func step(v any) bool {
	switch v := v.(type) {
	case []any:
		return false
	case string, map[string]any, nil, bool:
		return true
	default:
		n, ok := gojq.ToInt(v)
		return !ok || n <= indexMax
	}
}

func path(v any) bool {
	list, _ := v.([]any)
	for _, part := range list {
		if !step(part) {
			return false
		}
	}
	return light(v)
}

// paths: to delete one path may copy what it leads through.
func paths(in any, args []any) bool {
	list, _ := args[0].([]any)
	for _, p := range list {
		if !path(p) {
			return false
		}
	}
	return light(in, args[0]) && len(list)*parts(in) <= stepPairs
}
