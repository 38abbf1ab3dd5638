package jq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/jq"
)

var wide = jq.Limits{Time: 10 * time.Second, Bytes: 1 << 20}

func compile(t *testing.T, source string, vars ...string) *jq.Program {
	t.Helper()
	p, err := jq.Compile(source, vars...)
	if err != nil {
		t.Fatalf("compiling %s: %v", source, err)
	}
	return p
}

// run returns the outputs as JSON.
func run(t *testing.T, source, input string) (out []string, err error) {
	t.Helper()
	outputs, err := compile(t, source).Run(t.Context(), wide, 100, []byte(input))
	for _, output := range outputs {
		out = append(out, string(output))
	}
	return out, err
}

func TestAFilterKeepsWhatHasATruthyOutput(t *testing.T) {
	for _, c := range []struct {
		source, payload string
		keeps           bool
	}{
		{`true`, `null`, true},
		{`.`, `null`, false},
		{`.`, `false`, false},
		{`.`, `0`, true},
		{`.`, `""`, true},
		{`.`, `[]`, true},
		{`.`, `{}`, true},
		{`empty`, `1`, false},
		{`false, null, 1`, `1`, true},
		{`false, null`, `1`, false},
		{`.a`, `{"b":1}`, false},
		{`.a.b`, `{"a":5}`, false},       // an error
		{`error("no")`, `1`, false},      // an error
		{`true, error("no")`, `1`, true}, // true came first
		{`false, error("no")`, `1`, false},
		{`error("no"), true`, `1`, true}, // an error is an output, as in jaq
		{`.[] | .a`, `[1,{"a":true}]`, true},
		{`.[].a`, `[1,{"a":true}]`, true},
		{`.l[].a.b`, `{"l":[{"a":1},{"a":{"b":1}}]}`, true},
		{`.l[]?.a[].b`, `{"l":[1,{"a":[1,{"b":1}]}]}`, true},
		{`(.[] | .a) | not`, `[1,{"a":false}]`, true},
		{`(1, .[]) | .a`, `[1,{"a":false}]`, false},
		{`.[] as $x | $x.a`, `[1,{"a":true}]`, true},
		{`def f: .a; .[] | f`, `[1,{"a":true}]`, true},
		{`.[] | label $out | (1, break $out) | . == 2`, `[1]`, false},
		{`.[] as [$x] ?// $x | $x == 1`, `[[2],1]`, true},
		{`[.[] | .a] | any`, `[1,{"a":true}]`, false}, // one output, and it is an error
		{`halt`, `1`, false},
		{`true, halt`, `1`, true},
		{`halt_error`, `1`, false},
		{`. == {"a":[1,2]}`, `{"a":[1,2]}`, true},
		{`. | contains({"a":{"b":1}})`, `{"a":{"b":1,"c":2}}`, true},
		{`. | contains({"a":{"b":1}})`, `{"a":{"b":2}}`, false},
		{`.[0:2] == [1,2]`, `[1,2,3]`, true},
		{`.[0:2] == [1,2]`, `[1,3]`, false},
		{`(.a == 1) and (.b == "x")`, `{"a":1,"b":"x"}`, true},
		{`select(.to | test("@example\\.com$"))`, `{"to":"a@example.com"}`, true},
		{`select(.to | test("@example\\.com$"))`, `{"to":"a@example.org"}`, false},
		{`.name | ascii_downcase == "ann"`, `{"name":"ANN"}`, true},
		{`.[] | . > 2`, `[1,2,3]`, true},
		{`.n == 9007199254740993`, `{"n":9007199254740993}`, true},
		{`.n == 9007199254740993`, `{"n":9007199254740992}`, false},
		{`.n == 18446744073709551615`, `{"n":18446744073709551615}`, true},
		{`.n == 18446744073709551615`, `{"n":18446744073709551614}`, false},
	} {
		keeps, err := compile(t, c.source).Keeps(t.Context(), wide, []byte(c.payload))
		if err != nil || !slices.Equal(keeps, []bool{c.keeps}) {
			t.Errorf("%s over %s: %v, %v; want %v", c.source, c.payload, keeps, err, c.keeps)
		}
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	for _, c := range []struct{ source, input, want string }{
		{`.`, `9007199254740993`, `9007199254740993`},
		{`.`, `-9223372036854775808`, `-9223372036854775808`},
		{`.`, `18446744073709551615`, `18446744073709551615`},
		{`.`, `1.0`, `1.0`},
		{`.`, `1e300`, `1e300`},
		{`.`, `0.1000000000000000055511151231257827`, `0.1000000000000000055511151231257827`},
		{`. + 1`, `9007199254740993`, `9007199254740994`},
		{`. + 1`, `18446744073709551615`, `18446744073709551616`},
		{`. * .`, `9007199254740993`, `81129638414606699710187514626049`},
		{`[.[] | select(. > 9007199254740992)]`, `[9007199254740992,9007199254740993]`, `[9007199254740993]`},
	} {
		out, err := run(t, c.source, c.input)
		if err != nil || !slices.Equal(out, []string{c.want}) {
			t.Errorf("%s over %s: %v, %v; want %s", c.source, c.input, out, err, c.want)
		}
	}
}

func TestAnExpressionSeesItsVariables(t *testing.T) {
	p := compile(t, `$existing + $new, .`, "$existing", "$new")
	out, err := p.Run(t.Context(), wide, 3, nil, []byte(`[1]`), []byte(`[2]`))
	if err != nil || len(out) != 2 || string(out[0]) != `[1,2]` || string(out[1]) != `null` {
		t.Errorf("got %s, %v; want [1,2] and null", out, err)
	}
	if _, err := jq.Compile(`$new`); err == nil {
		t.Error("a variable that nobody gave compiled")
	}
}

func TestWhatDoesNotCompileSaysWhy(t *testing.T) {
	for _, c := range []struct{ source, says string }{
		{``, "missing query"},
		{`.a |`, "unexpected EOF"},
		{`nonsense`, "function not defined: nonsense/0"},
		{`input`, "not allowed"},
		{`[inputs]`, "not allowed"},
		{`import "a" as a; .`, "cannot load module"},
		{`include "a"; .`, "cannot load module"},
		{`stderr`, "not defined"},
		{`input_filename`, "not defined"},
		{`$__prog_args`, "variable not defined"},
		{strings.Repeat(" ", jq.SourceMax) + ".", "longer than"},
	} {
		if _, err := jq.Compile(c.source); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: %v; want an error that says %q", c.source, err, c.says)
		}
	}
}

func TestTheEnvironmentIsEmpty(t *testing.T) {
	t.Setenv("REPRISE_SECRET", "hidden")
	for _, source := range []string{`$ENV`, `env`} {
		if out, err := run(t, source, `null`); err != nil || !slices.Equal(out, []string{`{}`}) {
			t.Errorf("%s: %v, %v; want {}", source, out, err)
		}
	}
}

func TestAnEvaluationEndsAtItsTimeLimit(t *testing.T) {
	short := jq.Limits{Time: 5 * time.Millisecond, Bytes: 100}
	for _, source := range []string{
		`last(range(1; infinite))`, `[limit(1e12; repeat(1))] | length`, `def f: f; f`, `until(false; .)`,
		`try last(range(1; infinite)) catch true`,
	} {
		keeps, err := compile(t, source).Keeps(t.Context(), short, []byte(`1`))
		if !errors.Is(err, jq.ErrBound) || len(keeps) > 0 {
			t.Errorf("%s: %v, %v; want an error of the limit", source, keeps, err)
		}
	}
}

// Who takes too long is named: it is the one behind those that are known.
func TestASieveSaysWhoTakesTooLong(t *testing.T) {
	payloads := [][]byte{[]byte(`1`), []byte(`2`), []byte(`"no"`), []byte(`3`), []byte(`4`)}
	keeps, err := compile(t, `if . == 3 then until(false; .) else . > 1 end`).Keeps(t.Context(), jq.Limits{Time: 50 * time.Millisecond, Bytes: 3}, payloads...)
	if !errors.Is(err, jq.ErrBound) || !slices.Equal(keeps, []bool{false, true, false}) {
		t.Errorf("%v, %v", keeps, err)
	}
}

func TestAnEvaluationEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := compile(t, `until(false; .)`).Keeps(ctx, wide, []byte(`1`))
	if !errors.Is(err, context.Canceled) || errors.Is(err, jq.ErrBound) {
		t.Errorf("got %v; want that the caller gave up", err)
	}
}

func TestInputAndOutputAreBounded(t *testing.T) {
	l := jq.Limits{Time: time.Second, Bytes: 10}
	p := compile(t, `.`)
	if _, err := p.Keeps(t.Context(), l, []byte(`"12345678"`)); err != nil {
		t.Errorf("a payload of exactly the limit: %v", err)
	}
	long := []byte(`"123456789"`)
	if keeps, err := p.Keeps(t.Context(), l, long); err != nil || !slices.Equal(keeps, []bool{false}) {
		t.Errorf("a payload over the limit: %v, %v; want that it is not kept", keeps, err)
	}
	if _, err := p.Run(t.Context(), l, 1, long); !errors.Is(err, jq.ErrBound) {
		t.Errorf("a run over a payload over the limit: %v", err)
	}
	if out, err := p.Run(t.Context(), l, 1, []byte(`"12345678"`)); err != nil || string(out[0]) != `"12345678"` {
		t.Errorf("an output of exactly the limit: %s, %v", out, err)
	}
	for _, source := range []string{`"123456789"`, `"\u0001" * 8`, `reduce range(60) as $i (1; [., .])`} {
		if out, err := compile(t, source).Run(t.Context(), l, 1, nil); !errors.Is(err, jq.ErrBound) || !strings.Contains(err.Error(), "larger than 10 bytes") {
			t.Errorf("%s, an output over the limit: %s, %v", source, out, err)
		}
	}
}

func TestWhatIsNotJSONIsRefused(t *testing.T) {
	for _, payload := range []string{``, `{`, `1 2`, `{"a":}`} {
		_, err := compile(t, `true`).Run(t.Context(), wide, 1, []byte(payload))
		if err == nil || !strings.Contains(err.Error(), "not JSON") {
			t.Errorf("%q: %v", payload, err)
		}
	}
}

func TestAProgramServesManyAtATime(t *testing.T) {
	p := compile(t, `[range(.)] | map(. * 2) | add`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if out, err := p.Run(t.Context(), wide, 2, []byte(`100`)); err != nil || len(out) != 1 || string(out[0]) != "9900" {
					t.Errorf("got %s, %v; want 9900", out, err)
				}
			}
		})
	}
	all.Wait()
}

func TestOnlyTheFirstOutputsAreMade(t *testing.T) {
	for most, want := range []int{1: 1, 2: 2} {
		if most == 0 {
			continue
		}
		if out, err := compile(t, `1, 2, until(false; .)`).Run(t.Context(), wide, most, nil); err != nil || len(out) != want {
			t.Errorf("the first %d: %s, %v", most, out, err)
		}
	}
	if out, err := compile(t, `1, error("no")`).Run(t.Context(), wide, 2, nil); err == nil || err.Error() != "error: no" || len(out) != 1 {
		t.Errorf("an error behind an output: %s, %v", out, err)
	}
}

// Single steps of the interpreter that would take hours or gigabytes: all end
// at a limit or give an answer, and the next evaluation is as good as before.
func TestNoBuiltinOutlivesItsLimits(t *testing.T) {
	const tree = `(reduce range(60) as $i (1; [., .]))`
	const deep = `(reduce range(3000000) as $i (1; [.]))`
	const long = `("a" * 3000000)`
	l := jq.Limits{Time: 150 * time.Millisecond, Bytes: 1 << 20}
	for _, source := range []string{
		long + ` | gsub("";"b")`, long + ` | [match("a"; "g")] | length`, long + ` | [scan("(a*b|a)")] | length`, long + ` | test("(a|aa)*(a|aa)*(a|aa)*b")`,
		long + ` | [splits("a")] | length`, long + ` | sub("(?<x>a)"; .x; "g")`, long + ` | capture("(?<x>a)"; "g") | .x`, long + ` | split("a"; "g") | length`,
		long + ` | test("((a?){100}){8}b")`, long + ` as $x | ($x | indices($x[:1500000]))`, long + ` | ascii_downcase | length`, long + ` | tonumber`, `("7" * 3000000) | tonumber | . * .`,
		tree + ` | tojson`, tree + ` | flatten`, tree + ` | . == ` + tree, `[` + tree + `, ` + tree + `] | sort_by(.)`, tree + ` | contains(` + tree + `)`, tree + ` | error | true`,
		deep + ` | tojson`, deep + ` | . == ` + deep, deep + ` | flatten`, `"x" * 1e9`, `reduce range(60) as $i ("x"; . + .)`, `reduce range(60) as $i (7; . * .)`,
		`[range(1; infinite) | "x" * 1000000]`, `def f: 1 + f; f`, `[range(100000)] as $x | def f: $x | .[] | f; f`, `.[500000000] = 1`, `[range(3000)] | combinations(3)`,
		`[[range(1000000)]] + [range(3000) | []] | transpose`, `[range(500000)] | del(.[])`, `[range(100000)] as $x | $x - $x`, `[range(400000)] | [.[] | tostring] | unique | implode`,
		`[range(2000000) | -.] | sort`, `[range(100000)] | . as $x | map(select(IN($x[])))`, `infinite | todate`, `1e300 | strftime("%A" * 1000000)`, `@base32d "\(` + long + `)"`,
	} {
		_, err := compile(t, source).Run(t.Context(), l, 1, nil)
		t.Logf("%s: %v", source, err)
		if out, err := compile(t, `. + 1`).Run(t.Context(), wide, 1, []byte(`1`)); err != nil || string(out[0]) != "2" {
			t.Fatalf("after %s: %s, %v", source, out, err)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	for _, source := range []string{
		`[range(1; infinite) | "x" * 1000000]`, `def f: 1 + f; f`, `[range(100000)] as $x | def f: $x | .[] | f; f`, `.[500000000] = 1`,
		`("x" * 600000000) | ascii_downcase`, `[range(100) | "x" * 10000000] | add`, `reduce range(3000000) as $i (1; [.]) | tojson | length`,
	} {
		_, err := compile(t, source).Run(t.Context(), jq.Limits{Time: time.Minute, Bytes: 1 << 20}, 1, nil)
		if !errors.Is(err, jq.ErrBound) || !strings.Contains(err.Error(), "memory") {
			t.Errorf("%s: %v; want the limit of memory", source, err)
		}
	}
}

// A child may die while it waits: nobody who asks later hears of it.
func TestAChildThatEndedIsReplaced(t *testing.T) {
	p := compile(t, `. + 1`)
	for range 3 {
		if out, err := p.Run(t.Context(), wide, 1, []byte(`1`)); err != nil || string(out[0]) != "2" {
			t.Fatalf("%s, %v", out, err)
		}
		jq.KillIdle()
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := jq.Compile(`(.a == 1) and (.b | contains("x"))`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKeeps(b *testing.B) {
	p, err := jq.Compile(`(.a == 1) and (.b | contains("x"))`)
	if err != nil {
		b.Fatal(err)
	}
	payloads := slices.Repeat([][]byte{[]byte(`{"a":1,"b":"text","c":[1,2,3]}`)}, 500)
	for b.Loop() {
		if keeps, err := p.Keeps(b.Context(), wide, payloads...); err != nil || !keeps[499] {
			b.Fatal(keeps, err)
		}
	}
}
