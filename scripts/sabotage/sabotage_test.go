package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// small is a module whose tests know nothing of Odd. Its wide package is
// asked after the narrow one.
func small() tree {
	return tree{
		"go.mod": []byte("module small\n\ngo 1.26\n"),
		"even/even.go": []byte(`package even

const two = 2

func Even(n int) bool { return n%two == 0 }

func Odd(n int) bool { return n%2 != 0 }

func Half(n int) int { return n / 2 }

func Reset(n *int) { *n = 0 }
`),
		"even/even_test.go": []byte(`package even

import "testing"

func TestEven(t *testing.T) {
	if !Even(2) || Even(3) {
		t.Fail()
	}
}

func TestNothing(t *testing.T) {}

func TestReset(t *testing.T) {
	n := 3
	if Reset(&n); n != 0 {
		t.Fail()
	}
}
`),
		"wide/wide_test.go": []byte(`package wide

import (
	"small/even"
	"testing"
)

func TestHalves(t *testing.T) {
	for n := 8; n > 0; n = even.Half(n) {
		if n > 8 {
			t.Fatal(n)
		}
	}
}
`),
		"child/child.go": []byte(`package child

func Code() int { return 7 }
`),
		"child/child_test.go": []byte(`package child

import (
	"os"
	"os/exec"
	"testing"
)

func init() {
	if os.Args[0] == "child" {
		os.Exit(Code())
	}
}

func TestChild(t *testing.T) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"child"}, Env: []string{"ONLY=this"}}
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 7 {
		t.Fail()
	}
}
`),
		"flaky/flaky_test.go": []byte(`package flaky

import "testing"

func TestBroken(t *testing.T) { t.Fail() }
`),
	}
}

// TestOnlyWhatATestNoticesIsCaught is what the whole tool is for: a fault that
// nobody notices must not pass for a caught one, whatever went wrong.
func TestOnlyWhatATestNoticesIsCaught(t *testing.T) {
	defer func(before []string) { order = before }(order)
	order = []string{"even", "not/written/yet", "wide"}
	var faults []fault
	want := map[string]string{}
	for _, c := range []struct{ name, want, old, new, by string }{
		{"by-the-test-that-was-named", "even TestEven", "n%two == 0", "true", "even TestEven"},
		{"by-another-test-of-the-package", "even TestEven", "n%two == 0", "n%two != 0", "even TestNothing"},
		{"by-a-package-that-nobody-named", "wide TestHalves", "n / 2", "n*2", "even"},
		{"where-nothing-is-returned", "even TestReset", "*n = 0", "*n = 1", "even TestReset"},
		{"outside-of-a-function", "even TestEven", "two = 2", "two = 3", "even"},
		{"by-nobody", "NOT CAUGHT", "n%2 != 0", "true", "even"},
		{"though-it-does-not-compile", "ERROR: even does not compile: ", "n%2 != 0", "n%2", "even"},
		{"though-it-is-not-Go", "ERROR: even does not compile: ", "return n%2 != 0 }", "return", "even"},
		{"though-it-does-not-apply", "ERROR: the old text stands 0 times in even/even.go, not once", "n%3", "", "even"},
		{"though-it-applies-twice", "ERROR: the old text stands 2 times in even/even.go, not once", "bool {", "", "even"},
		{"by-a-test-that-always-fails", "ERROR: flaky fails without any fault", "n%2 != 0", "n%2 == 5", "flaky"},
		{"by-a-test-that-does-not-exist", "ERROR: no test ran of even TestGone", "n%2 != 0", "n%2 == 6", "even TestGone"},
	} {
		words := strings.Fields(c.by)
		faults = append(faults, fault{name: c.name, file: "even/even.go", old: c.old, new: c.new, by: []suite{{words[0], words[1:]}}})
		want[c.name] = c.want
	}
	faults = append(faults, fault{name: "though-its-file-is-gone", file: "gone.go", by: []suite{{pkg: "even"}}})
	faults = append(faults, fault{name: "in-a-process-without-its-environment", file: "child/child.go", old: "return 7", new: "return 8", by: []suite{{pkg: "child"}}})
	want["in-a-process-without-its-environment"] = "child TestChild"
	want["though-its-file-is-gone"] = "ERROR: there is no file gone.go"
	err := sabotage(t.Context(), small(), faults, false, func(r *result) error {
		w := want[r.Fault]
		delete(want, r.Fault)
		if got := r.String(); !strings.HasPrefix(got, w) || r.Error == "" && got != w {
			t.Errorf("%s: got %q, want %q", r.Fault, got, w)
		}
		if good := strings.Contains(w, " Test") && r.Error == ""; (judge([]result{*r}) == nil) != good || r.Caught != good {
			t.Errorf("%s is judged %v", r.Fault, judge([]result{*r}))
		}
		return nil
	}, io.Discard)
	if err != nil || len(want) > 0 {
		t.Error(err, want)
	}
}

func TestAResultIsKeptAndNotAskedForAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kept")
	keep, _, err := kept[result](name)
	if err != nil {
		t.Fatal(err)
	}
	if err := keep(result{Fault: "one", Caught: true, By: "even TestEven"}); err != nil {
		t.Fatal(err)
	}
	_, done, err := kept[result](name)
	if err != nil || len(done) != 1 || done[0].Fault != "one" || judge(done) != nil {
		t.Error(done, err)
	}
	var out bytes.Buffer
	if printResults(&out, done); !strings.Contains(out.String(), "even TestEven") || !strings.Contains(out.String(), "1 faults, 1 caught") {
		t.Error(out.String())
	}
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	faults := []fault{{name: "one", file: "even/even.go", old: "n%two == 0", new: "true", by: []suite{{pkg: "even"}}}}
	if err := sabotage(ctx, small(), faults, false, func(*result) error { return nil }, io.Discard); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAFileOfFaultsIsRead(t *testing.T) {
	good := "# a room\nfault one\nbreaks I1\ndoes wrong\nfile a.go\n-\tx\n-\ty\n+\tx\nby even TestEven TestOdd\nby wide\n"
	list, err := readFaults("room.txt", good)
	if err != nil || len(list) != 1 || list[0].old != "\tx\n\ty" || list[0].new != "\tx" || len(list[0].by) != 2 || list[0].by[0].tests[1] != "TestOdd" {
		t.Error(list, err)
	}
	for want, text := range map[string]string{
		"room.txt:1: this stands before the first `fault NAME`": "does wrong\n",
		"room.txt:3: want fault, breaks":                        "# a\nfault one\ndo wrong\n",
		"room.txt:2: name a package":                            "fault one\nby \n",
		`room.txt: fault "one" needs`:                           "fault one\nbreaks I1\n",
	} {
		if _, err := readFaults("room.txt", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// most has each kind of change that the tool makes, in code whose tests see
// all but one of them.
func most() tree {
	return tree{
		"go.mod": []byte("module small\n\ngo 1.26\n"),
		"most/most.go": []byte(`package most

type list []int64

func (l *list) Most(floor int64, strict bool) (m int64) {
	m = floor
	for _, n := range *l {
		if n > m && !(strict && n%2 == 1) {
			m = n
		}
	}
	*l = nil
	return m + 1
}

func (l *list) None() bool { return len(*l) == 0 }

func Unused() int { return 7 }
`),
		"most/most_test.go": []byte(`package most

import "testing"

func TestMost(t *testing.T) {
	l := list{4, 9, 3}
	if l.None() || l.Most(3, false) != 10 || !l.None() {
		t.Error("all")
	}
	if l = (list{4, 9, 6}); l.Most(0, true) != 7 {
		t.Error("strict")
	}
	if l.Most(5, true) != 6 {
		t.Error("none")
	}
}
`),
	}
}

func TestEveryMutantIsKilledOrNamed(t *testing.T) {
	const twin = "most/most.go: > becomes >=: if n > m && !(strict && n%2 == 1) {"
	equal, err := readEquals([]byte("# why\n" + twin + "\n\tn is m then\n"))
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	keep := func(any) error { told++; return nil }
	list, err := mutateAll(t.Context(), most(), "most", []string{"most"}, equal, nil, keep, io.Discard)
	if err != nil || told != len(list) {
		t.Fatal(told, len(list), err)
	}
	fates := map[string]string{}
	for _, x := range list {
		fates[x.Does] = x.Fate
	}
	for does, want := range map[string]string{
		"> becomes >=": "equal", "+ becomes -": "killed", "% becomes *": "killed", "removed": "killed",
		"n > m is left out": "killed", "strict is left out": "killed", "1 becomes one more": "killed", "2 becomes one more": "killed",
		"7 becomes one more":          "not run",
		"len(*l) == 0 is always true": "killed", "len(*l) == 0 is always false": "killed", "n%2 == 1 is left out": "killed",
	} {
		if fates[does] != want {
			t.Errorf("%s: %q, want %s", does, fates[does], want)
		}
	}
	var out bytes.Buffer
	if err := tell(&out, "most", list, append(equal, equals{file: "most/most.go", does: "gone", code: "x"})); err == nil {
		t.Error("what no test runs is fine")
	}
	for _, want := range []string{"not run  most/most.go:18:28: 7 becomes one more: func Unused() int { return 7 }\n", "no longer equal most/most.go: gone: x\n", "0 survived, 1 not run"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
