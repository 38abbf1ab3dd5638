package fluentconf

import (
	"fmt"
	"strings"
	"testing"
)

// printed writes sections as YAML that reads back as the same.
func printed(sections []*Section, variables map[string]string) string {
	var b strings.Builder
	b.WriteString("env:\n")
	for name, value := range variables {
		fmt.Fprintf(&b, "  %s: %s\n", text(name), text(value))
	}
	for i, s := range sections {
		// A name that is no word of its own at the top keeps the section as it is.
		fmt.Fprintf(&b, "s%d: {%s}\n", i, fields(s))
	}
	return b.String()
}

func fields(s *Section) string {
	var parts []string
	for _, e := range s.Entries {
		parts = append(parts, text(e.Key)+": "+text(e.Written))
	}
	for _, inner := range s.Inner {
		parts = append(parts, text(inner.Kind)+": {"+fields(inner)+"}")
	}
	return strings.Join(parts, ", ")
}

func text(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\v", `\v`, "\f", `\f`).Replace(s) + `"`
}

// No text makes the reader panic, and what it reads without a problem is the same when
// it is printed and read again.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"main.conf", "main.yaml"} {
		for _, s := range []string{
			"@SET a=b\n[INPUT]\n    Name ${a}\n    Path /x\n    [G]\n        a b\n[OUTPUT]\n    Name c ${no:-d}\n",
			"[SERVICE]\nFlush 5\nscheduler.base 3\n", "@INCLUDE x\n@INCLUDE *.y\n",
			"env:\n  a: b\nservice:\n  flush: 1\npipeline:\n  inputs:\n    - name: dummy\n      processors:\n        logs: [ { name: x } ]\n      tag: [ a, 'b' ]\n",
			"plugins: [ a ]\nparsers:\n  - name: null\n    regex: |\n      a\n    b: \"\\x41\"\n? x\n: y\n", "a: &b !!str c\nd: *b\n<<: *b\n",
		} {
			f.Add(name, s, "1\n")
		}
	}
	f.Fuzz(func(t *testing.T, name, content, other string) {
		if name != "main.yaml" {
			name = "main.conf"
		}
		w := world{name: content, "x": other, "x.yaml": other, "z.y": other, "$HOME": "h"}
		r := &Report{}
		c := Load(name, nil, w.source(), r)
		for _, p := range append(r.Problems(), r.Notices()...) {
			if p.At.File == "" || p.Text == "" || strings.ContainsAny(p.Text, "\n\x00") && !strings.HasPrefix(p.Text, "is no YAML") && !strings.HasPrefix(p.Text, "the reader of YAML") {
				t.Errorf("a problem is %q at %+v", p.Text, p.At)
			}
		}
		if r.Err() != nil || strings.ContainsFunc(content+other, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r", r) || r > '~' }) {
			return
		}
		again := &Report{}
		w["main.yaml"] = printed(c.Sections, c.variables)
		c2 := Load("main.yaml", nil, w.source(), again)
		if err := again.Err(); err != nil {
			t.Fatalf("%v\n%s", err, w["main.yaml"])
		}
		for i, s := range c2.Sections {
			s.Kind = c.Sections[min(i, len(c.Sections)-1)].Kind
		}
		if one, two := show(c.Sections), show(c2.Sections); one != two {
			t.Fatalf("%q reads back as %q\n%s", one, two, w["main.yaml"])
		}
	})
}

func FuzzArguments(f *testing.F) {
	f.Add("-i dummy -o stdout -p a=b --flush=1 -vvq -t x")
	f.Fuzz(func(t *testing.T, line string) {
		r := &Report{}
		a := ReadArguments(strings.Split(line, " "), r)
		Load("", a.Sections, world{}.source(), r)
	})
}

func FuzzValues(f *testing.F) {
	f.Add("1.5k")
	f.Add("2d")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); err == nil && (n < 0 || n > sizeMax) {
			t.Errorf("%q is %d", s, n)
		}
		if d, err := ParseSpan(s); err == nil && (d < 0 || d > spanMax) {
			t.Errorf("%q is %s", s, d)
		}
	})
}
