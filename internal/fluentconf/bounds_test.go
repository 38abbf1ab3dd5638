package fluentconf

import (
	"fmt"
	"strings"
	"testing"
)

// What is too much is refused, with one message. That it is refused soon and in little
// memory is what the bounds are for; `go test -run Bounds` in a second is the measure.
func TestBounds(t *testing.T) {
	includes := world{}
	var all strings.Builder
	for i := range filesMax {
		fmt.Fprintf(&all, "@INCLUDE f%d\n", i)
		includes[fmt.Sprintf("f%d", i)] = ""
	}
	many := world{"m": "@INCLUDE *.c\n"}
	for i := range filesMax + 1 {
		many[fmt.Sprintf("%d.c", i)] = ""
	}
	var deep strings.Builder
	for i := range 300 {
		deep.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	yamls := world{"m": "@INCLUDE *.yaml\n"}
	for i := range 6 {
		yamls[fmt.Sprintf("%d.yaml", i)] = strings.Repeat("#", 200<<10)
	}
	keys := world{"m": "@INCLUDE *.yaml\n"}
	for i := range 5 {
		keys[fmt.Sprintf("%d.yaml", i)] = "a:\n" + strings.Repeat(" - b: c\n", 4500)
	}
	items := world{"m": "@INCLUDE *.yaml\n"}
	for i := range 2 {
		items[fmt.Sprintf("%d.yaml", i)] = "a:\n" + strings.Repeat("- b\n", 51_000)
	}
	for name, row := range map[string]struct {
		main string
		text string
		also world
		want string
	}{
		"files":        {"m", all.String(), includes, "m:1000: more than 1000 files are included; put them together"},
		"a pattern":    {"m", many["m"], many, "m:1: more than 1000 files are included; put them together"},
		"bytes":        {"m", strings.Repeat("\n", bytesMax+1), nil, `m: "m" is too large: a file of YAML may have 256 KiB, all of them 1 MiB, and all files together 64 MiB`},
		"a line":       {"m", "[INPUT]\n Name " + strings.Repeat("x", lineBytesMax), nil, "m:2: the line is longer than 32 MiB"},
		"entries":      {"m", "[INPUT]\n" + strings.Repeat("a b\n", itemsMax), nil, "m:100001: the configuration has more than 100000 sections and entries"},
		"sections":     {"m", strings.Repeat("[a]\n", 1<<20), nil, "m:100001: the configuration has more than 100000 sections and entries"},
		"variables":    {"m", "@SET a=" + strings.Repeat("x", 1<<20) + "\n[INPUT]\n Name " + strings.Repeat("${a}", 1<<20), nil, "m:3: with its variables the configuration is larger than 64 MiB"},
		"YAML":         {"m.yaml", strings.Repeat("#", yamlBytesMax+1), nil, `m.yaml: "m.yaml" is too large: a file of YAML may have 256 KiB, all of them 1 MiB, and all files together 64 MiB`},
		"all YAML":     {"m", yamls["m"], yamls, `m:1: "5.yaml" is too large: a file of YAML may have 256 KiB, all of them 1 MiB, and all files together 64 MiB`},
		"keys of YAML": {"m.yaml", strings.Repeat("a: b\n", yamlKeysMax+1), nil, "m.yaml:5001: a file may have 5000 keys; move some of it into another one and name that one by includes"},
		"items":        {"m", items["m"], items, "1.yaml:49000: the configuration has more than 100000 sections and entries"},
		"all bytes":    {"m", "@INCLUDE a\n@INCLUDE b\n", world{"a": strings.Repeat("#", bytesMax/2), "b": strings.Repeat("#", bytesMax/2)}, `m:2: "b" is too large: a file of YAML may have 256 KiB, all of them 1 MiB, and all files together 64 MiB`},
		"all keys":     {"m", keys["m"], keys, "4.yaml:1997: all files together may have 20000 keys"},
		"brackets":     {"m.yaml", "a: " + strings.Repeat("[", 1000), nil, "m.yaml:1: is nested deeper than 64 levels"},
		"braces":       {"m.yaml", "a: " + strings.Repeat("{a: ", 1000), nil, "m.yaml:1: is nested deeper than 64 levels"},
		"dashes":       {"m.yaml", strings.Repeat("- ", 1000), nil, "m.yaml:1: is nested deeper than 64 levels"},
		"keys of keys": {"m.yaml", strings.Repeat("? ", 1000), nil, "m.yaml:1: is nested deeper than 64 levels"},
		"tags":         {"m.yaml", "a: " + strings.Repeat("!b ", 1000), nil, "m.yaml:1: is nested deeper than 64 levels"},
		"levels":       {"m.yaml", deep.String(), nil, "m.yaml:65: is nested deeper than 64 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{}
			for name, text := range row.also {
				w[name] = text
			}
			w[row.main] = row.text
			r := &Report{}
			c := Load(row.main, nil, w.source(), r)
			if len(c.Files) > filesMax {
				t.Errorf("%d files were read", len(c.Files))
			}
			if err := r.Err(); err == nil || err.Error() != row.want {
				t.Errorf("%.300v, want %s", err, row.want)
			}
		})
	}
	// A bound does not meet what people write: brackets in texts are no levels.
	r := &Report{}
	Load("m.yaml", nil, world{"m.yaml": "parsers:\n" + strings.Repeat("  - name: x\n    regex: '^[^\\[]*[[{'\n    time: [ a ]\n    b: ^[^\\[]*{x\n", 500)}.source(), r)
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}
