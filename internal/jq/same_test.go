package jq

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"
)

// What an expression is rewritten to gives what the interpreter gives.
func TestBoundedExpressionsAnswerAsBefore(t *testing.T) {
	inputs := []string{
		`null`, `5`, `"a,b a1 B2"`, `[3,1,2,[1,2],"x",null,1]`, `{"a":1,"b":{"c":[1,2,3]},"d":"text","n":9007199254740993}`,
		`[{"key":"k","value":1},{"name":"m","Value":false}]`, `[[1,2],[3]]`, `["b","a","b"]`, `[]`, `{}`, `[{"a":2,"b":1},{"a":1,"b":2},{"a":2,"b":0}]`,
	}
	for _, source := range strings.Split(strings.TrimSpace(expressions), "\n") {
		for _, input := range inputs {
			var v, w any
			decode := func(into *any) {
				d := json.NewDecoder(strings.NewReader(input))
				d.UseNumber()
				if err := d.Decode(into); err != nil {
					t.Fatal(err)
				}
			}
			decode(&v)
			decode(&w)
			q, err := gojq.Parse(source)
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			code, err := gojq.Compile(q)
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			p, err := Compile(source)
			if err != nil {
				t.Fatalf("%s: bounded: %v", source, err)
			}
			if want, got := outputs(code, v), outputs(p.code, w); !slices.Equal(got, want) {
				t.Errorf("%s over %s:\n got %q\nwant %q", source, input, got, want)
			}
		}
	}
}

func outputs(code *gojq.Code, v any) (out []string) {
	defer func() {
		if why := recover(); why != nil {
			out = append(out, fmt.Sprint("panic: ", why))
		}
	}()
	for iter := code.Run(v); ; {
		switch v, ok := iter.Next(); v := v.(type) {
		case error:
			return append(out, "error: "+v.Error())
		default:
			if !ok {
				return out
			}
			text, err := gojq.Marshal(v)
			if err != nil {
				panic(err)
			}
			out = append(out, string(text))
		}
	}
}

const expressions = `
. + 1, 1 + ., . + ., . - 1, . * 2, . / 2, . % 3, . + null
try (. - .) catch ., try (. * .) catch ., try (. / ",") catch .
. == 5, . != 5, . < 5, . <= 5, . > 5, . >= 5, . == ., . < [1]
(1, 2) + (10, 20), (1, 2) < (1, 2), [(1, 2) * (3, 4)]
try (.[1] += 5) catch ., try (.a -= 1) catch ., try (.[0] *= 2) catch ., try (.a /= 2) catch ., try (.a %= 2) catch ., try (.z //= 7) catch .
try (.a |= tostring) catch ., try (.[] |= tojson) catch ., try (.a = 1) catch ., try (.[2] = 9) catch ., try (.[1:2] = ["z"]) catch .
"x\(.)y", "\(1, 2)-\("a", "b")", @base64 "a\(.)b\("c")", @json "v: \(.)", @text, @json, try @html catch ., try @uri catch ., try @csv catch ., try @tsv catch ., try @sh catch ., try @base64 catch ., try @base64d catch .
{"a\(1)": 2, b: 3, "c": 4, ("d" + "e"): 5}, try {"\(.d)"} catch ., try {d, "a"} catch .
try ."a" catch ., try ."a\(empty)b" catch ., try ."\("d")" catch ., try .["a"] catch ., try .[0] catch ., try .[-1] catch ., try .[1 + 0] catch ., try .[1:] catch ., try .[:-1] catch .
try .[("a", "b")] catch ., try (.[0, 1]) catch ., try .["b"]["c"][1] catch ., try .b.c[0:2] catch ., try (.. | numbers) catch .
try add catch ., try add(.[]) catch ., try join("-") catch ., try join(1) catch ., try (map(tostring) | join(", ")) catch .
tojson, tostring, try tonumber catch ., try fromjson catch ., try (tojson | fromjson) catch ., try explode catch ., try (explode | implode) catch .
try split(",") catch ., try split(" "; null) catch ., try split("[, ]"; "g") catch ., try [splits("[, ]")] catch .
try flatten catch ., try flatten(1) catch ., try flatten(-1) catch ., try transpose catch ., try sort catch ., try unique catch ., try min catch ., try max catch .
try sort_by(.a) catch ., try sort_by(.a, .b) catch ., try group_by(.a) catch ., try unique_by(.a) catch ., try min_by(.a) catch ., try max_by(.b) catch ., try sort_by(empty) catch .
try bsearch(1) catch ., try (sort | bsearch(2, 3)) catch ., try contains("a") catch ., try contains([1]) catch ., try contains({b: {c: [1]}}) catch ., try inside([1, 2, 3]) catch .
try indices(1) catch ., try indices("a") catch ., try indices([1, 2]) catch ., try index("b") catch ., try rindex("a") catch ., try index(1) catch .
try IN(1, 5, "x") catch ., try IN(.[]; 1, 2) catch ., try any(.[]; . == 1) catch ., try all(.[]; . != 7) catch ., try (.[] | IN(1, 2)) catch .
try INDEX(.a) catch ., try INDEX(.[]; .b) catch ., try JOIN({"1": 5}; tostring) catch ., try [JOIN({"1": 5}; .[]; tostring)] catch ., try [JOIN({"1": 5}; .[]; tostring; add)] catch .
try match("a") catch ., try [match("a"; "g") | .offset] catch ., try test("A"; "i") catch ., try test(["A", "i"]) catch ., try capture("(?<l>[a-z])(?<n>[0-9])") catch ., try [scan("[a-z][0-9]?")] catch ., try [scan("([a-z])(,)")] catch ., try [scan("A"; "i")] catch .
try sub("a"; "z") catch ., try gsub("a"; "z") catch ., try gsub("(?<x>[a-z])"; "<\(.x)>") catch ., try gsub("A"; "z"; "i") catch ., try [sub("a"; "1", "2")] catch ., try gsub(""; "-") catch ., try [splits("a"; "i")] catch .
try getpath(["b", "c", 1]) catch ., try getpath([0]) catch ., try setpath(["a"]; 5) catch ., try setpath([1]; (5, 6)) catch ., try delpaths([["a"], [0]]) catch ., try del(.a) catch ., try del(.[0, 1]) catch ., try del(.[]) catch ., try del(.b.c[0]) catch .
try pick(.a) catch ., try pick(.b.c[1]) catch ., try [paths] catch ., try [paths(type == "number")] catch ., try [path(..)] catch ., try path(.a[0].b?) catch ., try to_entries catch ., try from_entries catch ., try with_entries(.value |= tostring) catch .
try nth(1) catch ., try nth(1; .[]) catch ., try first catch ., try last catch ., try [limit(2; .[])] catch ., try [first(range(5)), last(range(5))] catch ., try [skip(1; .[])] catch .
try fromstream(tostream) catch ., try [tostream] catch ., try fromstream(1 | truncate_stream(.[] as $x | [[0, 1], $x], [[0]])) catch .
try error catch ., try error("x") catch ., try error({a: 1}) catch .a, (.a? // "none"), (try error("y")), [.[]?], (.[]? | select(. == 1))
try map(. + 1) catch ., try map_values(. // 0) catch ., try (reduce .[] as $x (0; . + ($x | length))) catch ., [foreach range(4) as $i (0; . + $i; [$i, .])], try walk(if type == "number" then . + 1 else . end) catch .
def add: 7; add, (def f: add; f), [.[]?] as $x | $x | length
def f(add): add + 1; f(5), (def tojson: "mine"; [tojson, tostring]), (def g($min): min + $min; g(3))
def _x($y): $y + 1; def _add(a; b): 0; [_x(1), _add(1; 2)], (def h($_k): _k + $_k; h(2))
. as {a: $x, b: {c: [$y]}} ?// [$x, $y] ?// $x | [$x, $y], (5 as $v | {$v}), ({"k": 5} | . as {"k": $q} | $q), ({"k1": 5} | . as {"k\(1)": $q} | $q)
if . == null then "n" elif . == 5 then "five" else "other" end, (label $out | 1, break $out, 2), ([1, 2, 3] | IN(2)), [range(0; 10; 3)], ([recurse(if . == null then empty else null end)] | length)
try ascii_downcase catch ., try ascii_upcase catch ., try ltrimstr("a") catch ., try startswith("a") catch ., try length catch ., try keys catch ., try has("a") catch ., try has(0) catch ., try in([1, 2, 3, 4, 5, 6, 7]) catch ., type, try reverse catch ., try utf8bytelength catch ., try not catch ., try -. catch ., try abs catch .
try splits(1) catch ., try strptime("%Y") catch ., (0 | todate), (1e3 | floor), ([1, 2] | combinations(2)?), ([[1, 2], [3, 4]] | [combinations]), ltrimstr(1), getpath(["a"])?, ([limit(3; repeat(1))]), ({} | .a.b.c), ([1, [2]] | getpath([1, 0])), ([splits("a")]?)
`

// A step that would take gigabytes or hours is refused, and at once.
func TestNoStepIsALongOne(t *testing.T) {
	limits := Limits{Time: 30 * time.Second, Bytes: 4 << 20}
	const tree = `(reduce range(60) as $i (1; [., .]))`
	const deep = `(reduce range(200000) as $i (1; [.]))`
	const long = `("x" * 4000000)`
	for _, source := range []string{
		tree + ` | tojson`, tree + ` | tostring`, `"\(` + tree + `)"`, `@json "\(` + tree + `)"`, tree + ` | @json`, tree + ` | @text`, tree + ` | flatten`,
		tree + ` | . == ` + tree, tree + ` | . < ` + tree, `[` + tree + `,` + tree + `] | sort`, `[` + tree + `, ` + tree + `] | unique`,
		`[` + tree + `, ` + tree + `] | sort_by(.)`, `[` + tree + `, ` + tree + `] | group_by(.)`, `[` + tree + `, ` + tree + `] | min_by(.)`, `[` + tree + `,` + tree + `] | max`,
		`[` + tree + `,` + tree + `] | IN(` + tree + `)`, tree + ` | contains(` + tree + `)`, tree + ` | inside(` + tree + `)`, `[` + tree + `] - [` + tree + `]`,
		`[` + tree + `] | indices([` + tree + `])`, `[` + tree + `] | .[[` + tree + `]]`, `[` + tree + `] | bsearch(` + tree + `)`, `[[` + tree + `, 1]] | INDEX(.[0])`,
		`(reduce range(60) as $i ({}; {a: ., b: .})) | . * .`, tree + ` | error | true`, `error(` + tree + `)`,
		deep + ` | tojson`, deep + ` | . == ` + deep, deep + ` | flatten`, deep + ` | error`,
		`"x" * 1e9`, `1e9 * "x"`, `reduce range(60) as $i ("x"; . + .)`, `reduce range(60) as $i ([1]; . + .)`, `reduce range(60) as $i ("x"; . += .)`,
		`reduce range(60) as $i ("x"; "\(.)\(.)")`, `reduce range(60) as $i ("\""; tojson)`,
		`reduce range(60) as $i (7; . * .)`, `reduce range(60) as $i ("7"; . + .) | tonumber`, `("7" * 100000) | tonumber`,
		long + ` as $x | [range(1000) | $x] | add`, long + ` as $x | [range(1000) | $x] | join("")`, `[range(100000)] | map("") | join("x" * 1000)`, long + ` as $x | add(range(1000) | $x)`,
		`[range(10000)] as $x | [range(10000) | $x] | add`,
		`.[100000000] = 1`, `.[100000000] += 1`, `setpath([100000000]; 1)`, `.[1e8] |= 1`, `(100000000 as $i | .[$i]) = 1`, `nth(100000000) = 1`, `pick(nth(100000000))`,
		`getpath([100000000]) = 1`, `fromstream([[100000000], 1], [[100000000]])`, `[[1e8], 1] as $e | fromstream($e)`,
		`[[range(1000000)]] + [range(1000) | []] | transpose`, `[range(50000)] | del(.[])`, `[range(50000)] as $x | $x - $x`,
		long + ` | [match("(((((((((())))))))))"; "g")]`, long + ` | [scan("()()")]`, long + ` | gsub("()()()"; "y")`, long + ` as $x | ($x | indices($x[:2000000]))`,
		`[limit(2; ` + tree + ` | tojson)]`, `def f: tojson; ` + tree + ` | f`, tree + ` | _tojson?`, `[1] | JOIN([1, 2]; ` + tree + `)`,
	} {
		p, err := Compile(source)
		if err != nil {
			if !strings.Contains(source, "_tojson") {
				t.Errorf("%s: %v", source, err)
			}
			continue
		}
		err = p.Run(t.Context(), limits, nil, func(v any) bool {
			_, err := Encode(v, limits.Bytes)
			if err == nil {
				t.Errorf("%s: an answer", source)
			}
			return true
		})
		if err != nil && !errors.Is(err, ErrBound) {
			t.Errorf("%s: %v; want a limit", source, err)
		}
		if err != nil && strings.Contains(err.Error(), "longer than") {
			t.Errorf("%s: took all its time", source)
		}
	}
}

// What grows step by step ends when it has taken too much.
func TestMemoryIsBounded(t *testing.T) {
	for _, source := range []string{
		`[range(1; infinite) | "x" * 1000000]`, `def f: 1 + f; f`, `[range(100000)] as $x | def f: $x | .[] | f; f`,
	} {
		err := run(t, source)
		if !errors.Is(err, ErrBound) || !strings.Contains(err.Error(), "memory") {
			t.Errorf("%s: %v; want the limit of memory", source, err)
		}
	}
}

func run(t *testing.T, source string) error {
	t.Helper()
	p, err := Compile(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return p.Run(t.Context(), Limits{Time: time.Minute, Bytes: 1 << 20}, nil, func(any) bool { return true })
}

func TestTheInterpretersOwnNamesAreNotThere(t *testing.T) {
	for _, source := range []string{`_index(.; 1)`, `_match("a"; null; false)`, `_tojson`, `__whole`, `__op_add(1; 2)`, `op_add(1; 2)`, `_plus`, `_modify(.a; 1)`, `_sort_by(1)`} {
		if _, err := Compile(source); err == nil || !strings.Contains(err.Error(), "function not defined: "+strings.TrimSuffix(source, "(.; 1)")[:3]) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(`(.a == 1) and (.b | contains("x"))`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKeeps(b *testing.B) {
	p, err := Compile(`(.a == 1) and (.b | contains("x"))`)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if keeps, err := p.Keeps(b.Context(), Limits{Time: time.Second, Bytes: 1 << 20}, []byte(`{"a":1,"b":"text","c":[1,2,3]}`)); err != nil || !keeps {
			b.Fatal(keeps, err)
		}
	}
}
