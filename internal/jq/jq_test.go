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
	err = compile(t, source).Run(t.Context(), wide, []byte(input), func(v any) bool {
		text, err := jq.Encode(v, wide.Bytes)
		if err != nil {
			t.Fatalf("encoding an output of %s: %v", source, err)
		}
		out = append(out, string(text))
		return true
	})
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
		if err != nil || keeps != c.keeps {
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
	var out []string
	err := p.Run(t.Context(), wide, nil, func(v any) bool {
		text, _ := jq.Encode(v, 100)
		out = append(out, string(text))
		return true
	}, []byte(`[1]`), []byte(`[2]`))
	if want := []string{`[1,2]`, `null`}; err != nil || !slices.Equal(out, want) {
		t.Errorf("got %v, %v; want %v", out, err, want)
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
		if !errors.Is(err, jq.ErrBound) || keeps {
			t.Errorf("%s: %v, %v; want an error of the limit", source, keeps, err)
		}
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
	if keeps, err := p.Keeps(t.Context(), l, long); keeps || err != nil {
		t.Errorf("a payload over the limit: %v, %v; want that it is not kept", keeps, err)
	}
	if err := p.Run(t.Context(), l, long, func(any) bool { return true }); !errors.Is(err, jq.ErrBound) {
		t.Errorf("a run over a payload over the limit: %v", err)
	}
	if text, err := jq.Encode("12345678", 10); err != nil || string(text) != `"12345678"` {
		t.Errorf("an output of exactly the limit: %s, %v", text, err)
	}
	if _, err := jq.Encode("123456789", 10); !errors.Is(err, jq.ErrBound) {
		t.Errorf("an output over the limit: %v", err)
	}
}

func TestWhatIsNotJSONIsRefused(t *testing.T) {
	for _, payload := range []string{``, `{`, `1 2`, `{"a":}`} {
		err := compile(t, `true`).Run(t.Context(), wide, []byte(payload), func(any) bool { return true })
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
				err := p.Run(t.Context(), wide, []byte(`100`), func(v any) bool {
					if v != 9900 {
						t.Errorf("got %v; want 9900", v)
					}
					return true
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
