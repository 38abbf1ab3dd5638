package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every acceptance test and vector of the grid has a row in docs/testing-grid.md,
// and every test that it names is there.
func TestTheAcceptanceTestsOfTheGridAreThere(t *testing.T) {
	dirs := map[string]string{
		"rule": "internal/rule", "plan": "internal/part/grid/plan", "grid": "internal/part/grid", "straggler": "internal/straggler", "client": "client", "e2e": "test/e2e",
	}
	functions := map[string]bool{} // "package Test"
	for name, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil || files == nil {
			t.Fatal(dir, err)
		}
		for _, file := range files {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`).FindAllStringSubmatch(read(t, file), -1) {
				functions[name+" "+m[1]] = true
			}
		}
	}
	rows := map[string]bool{}
	for line := range strings.Lines(read(t, filepath.Join(root, "docs/testing-grid.md"))) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !regexp.MustCompile(`^ [AV]\d`).MatchString(cells[1]) {
			continue
		}
		for id := range strings.SplitSeq(strings.TrimSpace(cells[1]), ", ") {
			first, last, _ := strings.Cut(id, " to ")
			if rows[first] = true; last == "" {
				continue
			}
			from, _ := strconv.Atoi(first[1:])
			to, _ := strconv.Atoi(last[1:])
			for n := from; n <= to; n++ {
				rows[first[:1]+strconv.Itoa(n)] = true
			}
		}
		held, in := 0, ""
		for _, word := range regexp.MustCompile("`[a-z0-9]+`|\\b(?:Test|Benchmark)\\w+").FindAllString(cells[2], -1) {
			if word[0] == '`' {
				in = strings.Trim(word, "`")
				continue
			}
			if held++; !functions[in+" "+word] {
				t.Errorf("%s: there is no %s in %s", strings.TrimSpace(cells[1]), word, in)
			}
		}
		if held == 0 && strings.TrimSpace(cells[1]) != "A1" {
			t.Errorf("%s is held by nothing", strings.TrimSpace(cells[1]))
		}
	}
	for kind, most := range map[string]int{"A": 43, "V": 13} {
		for n := 1; n <= most; n++ {
			if id := kind + strconv.Itoa(n); !rows[id] && id != "A41" {
				t.Errorf("%s has no row", id)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
