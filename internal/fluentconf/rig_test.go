package fluentconf

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// world is files and variables: a name that begins with $ is a variable, one whose
// text begins with -> another name of a file.
type world map[string]string

func (w world) source() Source {
	return Source{
		Read: func(name string, most int64) ([]byte, string, error) {
			text, found := w[name]
			if to, link := strings.CutPrefix(text, "->"); link {
				name, text = to, w[to]
			}
			switch {
			case !found:
				return nil, "", fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
			case int64(len(text)) > most:
				return nil, "", ErrTooLarge
			}
			return []byte(text), name, nil
		},
		Glob: func(pattern string) (names []string, err error) {
			for name := range w {
				if ok, err := path.Match(pattern, name); err != nil {
					return nil, err
				} else if ok {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			return names, nil
		},
		Lookup: func(name string) (string, bool) {
			value, found := w["$"+name]
			return value, found
		},
	}
}

// show writes sections on a line: input[name=dummy tag=a inner[...]].
func show(sections []*Section) string {
	var list []string
	for _, s := range sections {
		var parts []string
		for _, e := range s.Entries {
			parts = append(parts, e.Key+"="+e.Value)
		}
		if inner := show(s.Inner); inner != "" {
			parts = append(parts, inner)
		}
		list = append(list, s.Kind+"["+strings.Join(parts, " ")+"]")
	}
	return strings.Join(list, " ")
}

func lines(remarks []Remark) string {
	var b strings.Builder
	for _, r := range remarks {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

// row is a configuration and what is read from it.
type row struct {
	name     string
	text     string // of the main file
	also     world
	want     string
	problems string // one a line
	notices  string
}

func run(t *testing.T, main string, rows []row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := world{main: row.text}
			for name, text := range row.also {
				w[name] = text
			}
			r := &Report{}
			c := Load(main, nil, w.source(), r)
			if got := show(c.Sections); got != row.want {
				t.Errorf("sections:\n  %s, want\n  %s", got, row.want)
			}
			if got := strings.TrimSpace(lines(r.Problems())); got != row.problems {
				t.Errorf("problems:\n%s\nwant\n%s", got, row.problems)
			}
			if got := strings.TrimSpace(lines(r.Notices())); got != row.notices {
				t.Errorf("notices:\n%s\nwant\n%s", got, row.notices)
			}
		})
	}
}
