package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// small is a module whose tests know nothing of Odd. Its wide package is
// asked after the narrow one.
func small() tree {
	return tree{
		"go.mod": []byte("module small\n\ngo 1.26\n"),
		"even/even.go": []byte(`package even

func Even(n int) bool { return n%2 == 0 }

func Odd(n int) bool { return n%2 != 0 }

func Half(n int) int { return n / 2 }
`),
		"even/even_test.go": []byte(`package even

import "testing"

func TestEven(t *testing.T) {
	if !Even(2) || Even(3) {
		t.Fail()
	}
}

func TestNothing(t *testing.T) {}
`),
		"wide/wide_test.go": []byte(`package wide

import (
	"small/even"
	"testing"
)

func TestHalves(t *testing.T) {
	for n := 8; n > 0; n = even.Half(n) {
	}
}
`),
		"flaky/flaky_test.go": []byte(`package flaky

import "testing"

func TestBroken(t *testing.T) { t.Fail() }
`),
	}
}

var smallOrder = []stage{
	{pkg: "even", timeout: time.Minute}, {pkg: "not/written/yet"}, {pkg: "wide", timeout: time.Second},
}

// TestOnlyWhatATestNoticesIsCaught is what the whole tool is for: a fault that
// nobody notices must not pass for a caught one, whatever went wrong.
func TestOnlyWhatATestNoticesIsCaught(t *testing.T) {
	evenFault := func(old, new string, first ...suite) fault {
		return fault{file: "even/even.go", old: old, new: new, first: first}
	}
	for _, c := range []struct {
		name, want string
		fault      fault
	}{
		{"by the test that was named", "even TestEven", evenFault("n%2 == 0", "true", in("even", "TestEven"))},
		{"by another test of the package", "even TestEven", evenFault("n%2 == 0", "true", in("even", "TestNothing"))},
		{"by a package that nobody named", "wide TestHalves (hang)", evenFault("n / 2", "n/2 + 1", in("even"))},
		{"by nobody", "NOT CAUGHT", evenFault("n%2 != 0", "true", in("even"))},
		{"though it does not compile", "ERROR: asking even: it does not compile: even/even.go:5:", evenFault("n%2 != 0", "n%2", in("even"))},
		{"though it is not Go", "ERROR: asking even: ", evenFault("return n%2 != 0 }", "return", in("even"))},
		{"though it does not apply", "ERROR: the old text stands 0 times in even/even.go, not once", evenFault("n%3", "", in("even"))},
		{"though it applies twice", "ERROR: the old text stands 2 times in even/even.go, not once", evenFault("n%2", "", in("even"))},
		{"though its file is gone", "ERROR: there is no file gone.go", fault{file: "gone.go"}},
		{"by a test that always fails", "ERROR: TestBroken of flaky fails without any fault", evenFault("n%2 != 0", "true", in("flaky"))},
		{"by a test that does not exist", "ERROR: asking even: no test ran", evenFault("n%2 != 0", "true", in("even", "TestGone"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			results, err := sabotage(t.Context(), small(), []fault{c.fault}, smallOrder, io.Discard)
			if err != nil || len(results) != 1 {
				t.Fatal(results, err)
			}
			r := &results[0]
			if got := r.String(); !strings.HasPrefix(got, c.want) || r.Error == "" && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if good := strings.Contains(c.want, " Test") && r.Error == ""; (judge(results) == nil) != good || r.Caught != good {
				t.Errorf("judged %v", judge(results))
			}
		})
	}
}

func TestEveryResultIsTold(t *testing.T) {
	var progress, table bytes.Buffer
	faults := []fault{
		{name: "one", file: "even/even.go", old: "n%2 == 0", new: "true", first: []suite{in("even")}},
		{name: "two", file: "even/even.go", old: "n%2 == 0", new: "false", first: []suite{in("even")}},
	}
	results, err := sabotage(t.Context(), small(), faults, nil, &progress)
	if err != nil || judge(results) != nil {
		t.Fatal(err, judge(results))
	}
	printResults(&table, results)
	for _, want := range []string{"one ", "two ", "even TestEven"} {
		if !strings.Contains(progress.String(), want) || !strings.Contains(table.String(), want) {
			t.Errorf("%q is missing in\n%s\n%s", want, &progress, &table)
		}
	}
	if !strings.Contains(table.String(), "2 faults, 2 caught") {
		t.Error(table.String())
	}
}

func TestAnInterruptedRunHasNoResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	faults := []fault{{name: "one", file: "even/even.go", old: "n%2 == 0", new: "true", first: []suite{in("even")}}}
	if results, err := sabotage(ctx, small(), faults, nil, io.Discard); !errors.Is(err, context.Canceled) || results != nil {
		t.Error(results, err)
	}
}
