package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// aTest is one test of a compiled package and the mutants that it reaches.
type aTest struct {
	pkg, name string
	took      time.Duration
	reaches   map[int]bool
}

// mutation tries the mutants of one package.
type mutation struct {
	*lab
	pkg   string
	by    []string // the packages whose tests are asked
	tests []*aTest
}

// mutateAll makes every mutant of a package and asks the tests that reach it.
// Each fate is told as soon as it is known.
func mutateAll(ctx context.Context, whole tree, pkg string, by []string, equal []equals, done []*mutant, keep func(any) error, progress io.Writer) (list []*mutant, err error) {
	l, err := newLab(whole)
	if err != nil {
		return nil, err
	}
	m := &mutation{lab: l, pkg: pkg, by: by}
	defer func() { err = errors.Join(err, l.close()) }()
	if list, err = m.mutants(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%s: %d mutants\n", pkg, len(list))
	if err := m.reach(ctx, progress); err != nil {
		return nil, err
	}
	fates := map[string]*mutant{}
	for _, x := range done {
		fates[x.String()] = x
	}
	for i, x := range list {
		if before := fates[x.String()]; before != nil {
			x.Fate, x.By = before.Fate, before.By
			continue
		}
		err := m.try(ctx, x)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(equal, func(e equals) bool { return e.is(x) }); i >= 0 && x.Fate != "killed" {
			x.Fate, x.By = "equal", equal[i].why
		}
		if err := keep(x); err != nil {
			return nil, err
		}
		if i%100 == 99 {
			fmt.Fprintf(progress, "%d of %d\n", i+1, len(list))
		}
	}
	return list, nil
}

// mutants puts the mutants into the tree. A line in which one does not compile
// has none.
func (m *mutation) mutants(ctx context.Context) ([]*mutant, error) {
	skip := map[string]bool{}
	for {
		changed, list, err := mutate(m.whole, m.tree(), m.pkg, skip)
		if err == nil {
			err = m.put(changed)
		}
		if err != nil {
			return nil, err
		}
		said, err := m.command(ctx, "", "go", "build", "./"+m.pkg).CombinedOutput()
		if err == nil {
			return list, nil
		}
		before := len(skip)
		for _, at := range regexp.MustCompile(`(?m)^(\S+\.go:\d+):\d+: `).FindAllStringSubmatch(string(said), -1) {
			skip[at[1]] = true
		}
		if len(skip) == before || ctx.Err() != nil {
			return nil, fmt.Errorf("compiling: %w: %s", err, said)
		}
		if err := os.Remove(filepath.Join(m.tree(), m.pkg, "mutant_on.go")); err != nil {
			return nil, err
		}
	}
}

// reach runs every test alone, without a mutant, and notes which it asks for.
// A test that fails so says nothing, and is left out.
func (m *mutation) reach(ctx context.Context, progress io.Writer) error {
	seen := filepath.Join(m.dir, "seen")
	for _, by := range m.by {
		if err := m.build(ctx, by); err != nil {
			return err
		}
		names, err := m.command(ctx, by, m.exe(by), "-test.list", "^(Test|Fuzz|Example)").Output()
		if err != nil {
			return fmt.Errorf("listing the tests of %s: %w", by, err)
		}
		for _, name := range strings.Fields(string(names)) {
			t := &aTest{pkg: by, name: name, reaches: map[int]bool{}}
			_ = os.Remove(seen)
			start := time.Now()
			if by, err := m.run(ctx, suite{by, []string{name}}, 0, 10*time.Minute, "MUTANTS_SEEN="+seen); by != "" || err != nil {
				fmt.Fprintln(progress, "left out, since it fails without any mutant:", name, err)
				continue
			}
			t.took = time.Since(start)
			text, _ := os.ReadFile(seen)
			for _, n := range strings.Fields(string(text)) {
				id, _ := strconv.Atoi(n)
				t.reaches[id] = true
			}
			m.tests = append(m.tests, t)
		}
	}
	slices.SortStableFunc(m.tests, func(a, b *aTest) int { return cmp.Compare(a.took, b.took) })
	return ctx.Err()
}

// try asks the tests that reach a mutant, the fast ones first.
func (m *mutation) try(ctx context.Context, x *mutant) (err error) {
	x.Fate = "not run"
	var group suite
	var took time.Duration
	ask := func() {
		if len(group.tests) > 0 && x.By == "" && err == nil {
			x.Fate = "survived"
			if x.By, err = m.run(ctx, group, x.ID, 3*took+10*time.Second); x.By != "" {
				x.Fate = "killed"
			}
		}
		group.tests, took = nil, 0
	}
	for _, t := range m.tests {
		if !t.reaches[x.ID] {
			continue
		}
		if group.pkg != t.pkg || took+t.took > time.Second {
			ask()
		}
		group.pkg, group.tests, took = t.pkg, append(group.tests, t.name), took+t.took
	}
	ask()
	return err
}

// tell prints what tests let pass, and what the list of equal mutants says of
// mutants that are no more.
func tell(out io.Writer, pkg string, list []*mutant, equal []equals) error {
	n := map[string]int{}
	for _, x := range list {
		if n[x.Fate]++; x.Fate == "survived" || x.Fate == "not run" {
			fmt.Fprintf(out, "%-8s %s\n", x.Fate, x)
		}
	}
	for _, e := range equal {
		if filepath.Dir(e.file) == pkg && !slices.ContainsFunc(list, func(x *mutant) bool { return x.Fate == "equal" && e.is(x) }) {
			fmt.Fprintf(out, "no longer equal %s: %s: %s\n", e.file, e.does, e.code)
		}
	}
	fmt.Fprintf(out, "%s: %d mutants, %d killed, %d equal, %d survived, %d not run by any test\n",
		pkg, len(list), n["killed"], n["equal"], n["survived"], n["not run"])
	if n["survived"]+n["not run"] > 0 {
		return fmt.Errorf("%d mutants of %s were not killed", n["survived"]+n["not run"], pkg)
	}
	return nil
}

// equals is a mutant that changes nothing that a test could see, and why.
type equals struct{ file, code, does, why string }

func (e equals) is(x *mutant) bool { return e.file == x.File && e.code == x.Code && e.does == x.Does }

// readEquals reads the list of equal mutants: of each the line as a survivor
// is printed, without its place, and behind it, indented, the reason.
func readEquals(text []byte) (list []equals, err error) {
	for line := range bytes.Lines(text) {
		words := strings.TrimRight(string(line), "\n")
		switch {
		case strings.TrimSpace(words) == "" || strings.HasPrefix(words, "#"):
		case strings.HasPrefix(words, "\t"):
			for i := len(list) - 1; i >= 0 && list[i].why == ""; i-- {
				list[i].why = strings.TrimSpace(words)
			}
		default:
			parts := strings.SplitN(words, ": ", 3)
			if len(parts) != 3 {
				return nil, fmt.Errorf("%q is not `file: what it does: line of code`", words)
			}
			list = append(list, equals{file: parts[0], does: parts[1], code: parts[2]})
		}
	}
	return list, nil
}
