package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page that names a test as its proof names one that is there.
func TestTestsThatPagesNameAreThere(t *testing.T) {
	const root = "../.."
	there := map[string]bool{}
	defined := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range defined.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named, cited := 0, regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range cited.FindAllSubmatch(text, -1) {
			if named++; !there[string(m[1])] {
				t.Errorf("%s names %s, which is no test", filepath.Base(page), m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests are named: the pattern fits no more", named)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// Each link between pages leads to a page, and to a heading of it; docs/README.md
// leads to every page of docs.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	const root = "../.."
	anchors := map[string]map[string]bool{}
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "bin" || d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = fenced.ReplaceAllString(string(text), "")
		anchors[path] = map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(texts[path], -1) {
			anchors[path][anchor(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for path, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, place, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
			} else if place != "" && !anchors[to][place] {
				t.Errorf("%s: %s: no heading of that page", path, m[1])
			}
		}
	}
	index := texts[root+"/docs/README.md"]
	for path := range texts {
		name, err := filepath.Rel(root+"/docs", path)
		if err == nil && !strings.HasPrefix(name, "..") && !strings.HasPrefix(name, "adr/0") && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found: the pattern fits no more", links)
	}
}

// anchor is what GitHub makes of a heading.
func anchor(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(text))
}
