package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// fault is one line of the product, made wrong.
type fault struct {
	name   string
	breaks string // the invariant (ARCHITECTURE.md), or the section of the specification
	does   string
	file   string
	old    string  // must stand in the file exactly once
	new    string  // differs in one line
	by     []suite // who should notice, asked before everybody else
}

// suite is tests of one package; without names it is all of them.
type suite struct {
	pkg   string
	tests []string
}

func (s suite) String() string { return strings.TrimSpace(s.pkg + " " + strings.Join(s.tests, " ")) }

// order goes from the narrow to the wide: whose tests are all asked about a
// fault that the tests named with it let pass.
var order = []string{
	"internal/job", "internal/jq", "internal/rule", "internal/store/storetest/mem", "internal/store/embedded", "internal/engine",
	"internal/trace", "internal/door/jobs", "internal/auth", "internal/httpapi", "internal/config", "internal/server",
	"internal/sim", "test/e2e",
}

// table is every fault there is, file by file.
func table(t tree) (list []fault, err error) {
	for name := range t {
		if dir, _, _ := cutLast(name); dir == "scripts/sabotage/faults" {
			faults, err := readFaults(name, string(t[name]))
			if err != nil {
				return nil, err
			}
			list = append(list, faults...)
		}
	}
	// The order of the packages that notice, so that results of one come together.
	slices.SortStableFunc(list, func(a, b fault) int {
		return strings.Compare(a.by[0].pkg+" "+a.file+" "+a.name, b.by[0].pkg+" "+b.file+" "+b.name)
	})
	return list, nil
}

// readFaults reads a file of faults. docs/testing-sabotage.md shows one.
func readFaults(name, text string) (list []fault, err error) {
	var f *fault
	for i, line := range strings.Split(text, "\n") {
		wrong := func(what string) error { return fmt.Errorf("%s:%d: %s: %q", name, i+1, what, line) }
		key, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
			continue
		case key == "fault":
			list = append(list, fault{name: value})
			f = &list[len(list)-1]
			continue
		case f == nil:
			return nil, wrong("this stands before the first `fault NAME`")
		case line[0] == '-':
			f.old += line[1:] + "\n"
			continue
		case line[0] == '+':
			f.new += line[1:] + "\n"
			continue
		}
		switch key {
		case "breaks":
			f.breaks = value
		case "does":
			f.does = value
		case "file":
			f.file = value
		case "by":
			words := strings.Fields(value)
			if len(words) == 0 {
				return nil, wrong("name a package, and tests of it")
			}
			f.by = append(f.by, suite{words[0], words[1:]})
		default:
			return nil, wrong("want fault, breaks, does, file, by, -old text or +new text")
		}
	}
	for i := range list {
		f := &list[i]
		f.old, f.new = strings.TrimSuffix(f.old, "\n"), strings.TrimSuffix(f.new, "\n")
		if f.name == "" || f.breaks == "" || f.does == "" || f.file == "" || f.old == "" || len(f.by) == 0 {
			return nil, fmt.Errorf("%s: fault %q needs a name, what it breaks, what it does, its file, the old text and by whom it is noticed", name, f.name)
		}
	}
	return list, nil
}

// place is where in a text the fault changes it: what lies between from and to
// becomes text.
func (f *fault) place(src string) (from, to int, text string, err error) {
	if n := strings.Count(src, f.old); n != 1 {
		return 0, 0, "", fmt.Errorf("the old text stands %d times in %s, not once", n, f.file)
	}
	at, same := strings.Index(src, f.old), 0
	for same < min(len(f.old), len(f.new)) && f.old[same] == f.new[same] {
		same++
	}
	tail := 0
	for tail < min(len(f.old), len(f.new))-same && f.old[len(f.old)-1-tail] == f.new[len(f.new)-1-tail] {
		tail++
	}
	return at + same, at + len(f.old) - tail, f.new[same : len(f.new)-tail], nil
}

// apply returns the file with the fault in it.
func (f *fault) apply(t tree) (string, error) {
	src, ok := t[f.file]
	if !ok {
		return "", fmt.Errorf("there is no file %s", f.file)
	}
	from, to, text, err := f.place(string(src))
	if err != nil {
		return "", err
	}
	return string(src[:from]) + text + string(src[to:]), nil
}

func (f *fault) pkg() string { return path.Dir(f.file) }
