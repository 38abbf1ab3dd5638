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
