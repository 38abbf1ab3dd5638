package parser

import (
	"errors"
	"strings"
	"testing"
)

func TestExpressionsInTheSyntaxOfRuby(t *testing.T) {
	for _, row := range []struct {
		expr, text string
		want       string // what group 1, or all of it, is; "-" = not found
		slow       bool
	}{
		{`^(\w+)$`, "ab", "ab", false},
		{`^b(.*)$`, "a\nbc\nd", "c", false}, // lines, not the text
		{`/^(a.c)$/m`, "a\nc", "a\nc", false},
		{`/^(a.c)$/`, "a\nc", "-", false},
		{`/(AB)/i`, "xaby", "ab", false},
		{`(?m:(a.c))`, "a\nc", "a\nc", false},
		{`(?i)(ab)`, "AB", "AB", false},
		{`/( a b )/x`, "ab", "ab", true},
		{`/a/b`, "x/a/b", "/a/b", false}, // no flags behind the slash: a path
		{`(\h+)`, "xyz09afg", "09af", false},
		{`([\h_]+)`, "xyz0_f", "0_f", false},
		{`(\H+)`, "0xyz", "xyz", false},
		{`\<(?<pri>[0-9]{1,5})\>`, "<34>", "34", false},
		{`(a{,2})b`, "xaaab", "aa", false},
		{`(?<=x)(a)`, "xa", "a", true},
		{`(a)(?!b)`, "abac", "a", true},
		{`(a++)b`, "aab", "aa", true},
		{`(a++)a`, "aaa", "-", true},
		{`((?:ab)*+)c`, "ababc", "abab", true},
		{`([^"]*+)"`, `x"`, "x", true},
		{`(\d?+)1`, "1", "-", true},
		{`(?>(a|ab))c`, "abc", "-", true},
		{`(a)\1`, "aa", "a", true},
		{`é(?=x)`, "\xffaéx", "é", true}, // places are in bytes, broken ones too
		{`(?<n>a)|(?<n>b)`, "b", "b", false},
		{`([[:alpha:]]+)`, "1ab", "ab", false},
		{`(\Aa\z)`, "a", "a", false},
	} {
		e, err := Compile(row.expr)
		if err != nil {
			t.Errorf("%s: %v", row.expr, err)
			continue
		}
		if slow := e.Notice() != ""; slow != row.slow {
			t.Errorf("%s: %q", row.expr, e.Notice())
		}
		at, err := e.Find([]byte(row.text))
		got := "-"
		if len(at) >= 4 && at[2] >= 0 {
			got = row.text[at[2]:at[3]]
		} else if len(at) >= 2 {
			got = row.text[at[0]:at[1]]
		}
		found, err2 := e.Match([]byte(row.text))
		if got != row.want || err != nil || found != (row.want != "-") || err2 != nil {
			t.Errorf("%s in %q: %q, %t, %v, %v", row.expr, row.text, got, found, err, err2)
		}
	}
}

func TestExpressionsThatAreNoneAreRefused(t *testing.T) {
	for text, want := range map[string]string{`(`: "missing", `[a`: "[]", `a**+`: "", `[a&&b]`: "&&", `(?<a-b>x)(?=y)`: ""} {
		if e, err := Compile(text); err == nil {
			t.Errorf("%s was read: %s", text, e.Notice())
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestBacktrackingIsStopped(t *testing.T) {
	e, err := Compile(`^(?:a|a|aa)+(?!x)$`)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat("a", 60) + "!")
	if at, err := e.Find(text); !errors.Is(err, ErrSlow) || at != nil {
		t.Errorf("Find: %v, %v", at, err)
	}
	if found, err := e.Match(text); !errors.Is(err, ErrSlow) || found {
		t.Errorf("Match: %t, %v", found, err)
	}
	p, err := New(Options{Name: "x", Format: "regex", Regex: `^(?<a>(?:a|a|aa)+)(?!x)$`})
	if err != nil {
		t.Fatal(err)
	}
	if out, _, err := p.Parse([]byte("x"), text, epoch); !errors.Is(err, ErrSlow) || string(out) != "x" {
		t.Errorf("Parse: %q, %v", out, err)
	}
	if notice := p.Notice(); !strings.Contains(notice, "parser x") || !strings.Contains(notice, "backtracking") {
		t.Errorf("notice: %s", notice)
	}
}
