// Package arch holds the architecture: floors.txt says which package may
// import which, and its test compares that with the source. It owns no code.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/reprisehq/reprise/"
	root   = "../.."
)

// floor is one line of floors.txt.
type floor struct {
	height int
	name   string
	marks  []string
	allow  []string
}

func (f floor) marked(mark string) bool { return slices.Contains(f.marks, mark) }

func TestPackagesKeepTheirFloors(t *testing.T) {
	floors, never := readFloors(t)
	packages := goFiles(t)
	for _, f := range floors {
		exists := false
		for dir := range packages {
			exists = exists || matches(f.name, dir)
		}
		if !exists && !f.marked("later") {
			t.Errorf("floors.txt: %s has a floor and no Go file", f.name)
		} else if exists && f.marked("later") {
			t.Logf("floors.txt: %s exists now, take its mark `later` away", f.name)
		}
		for _, other := range floors {
			if other.height >= f.height && matchesAny(f.allow, other.name) {
				t.Errorf("floors.txt: %s may import %s, which is not on a lower floor", f.name, other.name)
			}
		}
	}
	for dir, files := range packages {
		own := find(floors, dir)
		if own == nil {
			t.Errorf("%s has no floor in internal/arch/floors.txt", dir)
			continue
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("parsing: %v", err)
				continue
			}
			isTest := strings.HasSuffix(file, "_test.go")
			for _, spec := range parsed.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				inner, ours := strings.CutPrefix(imported, module)
				if ours && inner != dir && !mayImport(floors, own, inner, isTest) {
					t.Errorf("%s imports %s, which its floor (%d) does not allow", file, inner, own.height)
				} else if !ours && !isTest && forbidden(never, dir, imported) {
					t.Errorf("%s imports %s, which a `never` line of floors.txt forbids", file, imported)
				}
			}
			if !isTest && (dir == "internal/job" || dir == "internal/rule" || dir == "internal/cron") {
				refuseClock(t, file, parsed)
			}
		}
	}
}

// mayImport holds one import against the line of the importing package. Tests
// may also reach down to any lower floor, and to test support on their own; so may
// test support, to what its line names. All tests may use what is marked whole.
func mayImport(floors []floor, own *floor, imported string, isTest bool) bool {
	target := find(floors, imported)
	if target == nil {
		return false
	}
	if isTest && (target.height < own.height || target.marked("support") || target.marked("whole")) {
		return true
	}
	return matchesAny(own.allow, imported) && (!target.marked("support") || own.marked("support"))
}

// forbidden holds an import from elsewhere against the `never` lines.
func forbidden(never []floor, dir, imported string) bool {
	return slices.ContainsFunc(never, func(n floor) bool {
		return matches(n.name, dir) && slices.ContainsFunc(n.allow, func(banned string) bool {
			return imported == banned || strings.HasPrefix(imported, banned+"/")
		})
	})
}

// refuseClock reports a pure package that reads the time: its callers pass it.
func refuseClock(t *testing.T, file string, parsed *ast.File) {
	t.Helper()
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
				t.Errorf("%s reads the clock (time.%s); take now as an argument", file, sel.Sel.Name)
			}
		}
		return true
	})
}

// readFloors reads the table and, in never, what a package may not import.
func readFloors(t *testing.T) (floors, never []floor) {
	t.Helper()
	text, err := os.ReadFile("floors.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if fields[0] == "never" && len(fields) > 3 {
			never = append(never, floor{name: fields[1], allow: fields[3:]})
			continue
		}
		height, err := strconv.Atoi(fields[0])
		if err != nil || len(fields) < 4 {
			t.Fatalf("floors.txt: this line is not `floor package mark imports`: %s", line)
		}
		floors = append(floors, floor{height, fields[1], strings.Split(fields[2], ","), fields[3:]})
	}
	return floors, never
}

// goFiles lists the Go files of this module by their package's folder.
func goFiles(t *testing.T) map[string][]string {
	t.Helper()
	packages := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		file := filepath.ToSlash(strings.TrimPrefix(name, filepath.FromSlash(root+"/")))
		if !d.IsDir() && strings.HasSuffix(file, ".go") {
			packages[path.Dir(file)] = append(packages[path.Dir(file)], file)
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(name, "go.mod")) // a module of its own, such as bench/
			if nested == nil || strings.ContainsAny(d.Name()[:1], "._") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
		}
		return nil
	})
	if err != nil || len(packages) == 0 {
		t.Fatalf("listing the source: %d packages, %v", len(packages), err)
	}
	return packages
}

// find returns the first line for a package: exact names stand before patterns.
func find(floors []floor, name string) *floor {
	i := slices.IndexFunc(floors, func(f floor) bool { return matches(f.name, name) })
	if i < 0 {
		return nil
	}
	return &floors[i]
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}
