package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestEveryFaultAppliesToTheTreeAsItIs keeps the table from rotting: whoever
// changes a line that a fault breaks changes the fault with it.
func TestEveryFaultAppliesToTheTreeAsItIs(t *testing.T) {
	whole := checkout(t)
	seen := map[string]bool{}
	for _, f := range faultsOf(t, whole) {
		t.Run(f.name, func(t *testing.T) {
			if seen[f.name] {
				t.Error("another fault has this name")
			}
			seen[f.name] = true
			broken, err := f.apply(whole)
			if err != nil {
				t.Fatal(err)
			}
			if n := linesChanged(f.old, f.new); n != 1 {
				t.Errorf("%d lines differ, want one", n)
			}
			if strings.HasSuffix(f.file, "_test.go") {
				t.Error("a fault is in the product, not in a test")
			}
			if strings.HasSuffix(f.file, ".go") {
				if _, err := parser.ParseFile(token.NewFileSet(), f.file, broken, parser.SkipObjectResolution); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestEveryTestThatAFaultNamesExists(t *testing.T) {
	whole := checkout(t)
	there := map[string]map[string]bool{}
	for _, f := range faultsOf(t, whole) {
		for _, s := range f.by {
			if there[s.pkg] == nil {
				there[s.pkg] = testsOf(t, whole, s.pkg)
			}
			for _, name := range s.tests {
				if !there[s.pkg][name] {
					t.Errorf("%s: there is no %s in %s", f.name, name, s.pkg)
				}
			}
			if len(there[s.pkg]) == 0 {
				t.Errorf("%s: %s has no tests", f.name, s.pkg)
			}
		}
	}
}

func faultsOf(t *testing.T, whole tree) []fault {
	t.Helper()
	list, err := table(whole)
	if err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	return list
}

func checkout(t *testing.T) tree {
	t.Helper()
	whole, err := snapshot(".")
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// linesChanged is how many lines the longer of two texts has that are neither
// at the start nor at the end of both.
func linesChanged(a, b string) int {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return max(len(x), len(y))
}

// testsOf is the names of the tests of a package.
func testsOf(t *testing.T, whole tree, pkg string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for file, text := range whole {
		if dir, _, _ := cutLast(file); dir != pkg || !strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
