package parser

import (
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/record"
)

// source is what sources ask for: connect.Lines, which is not below this package.
type source interface {
	Line(dst, line []byte, now time.Time) (out []byte, events, held int)
	Rest(dst []byte, now time.Time) (out []byte, events int)
}

// feed gives lines to what makes events of them, and tells the events of each
// line, how many lines are held, and the rest.
func feed(t *testing.T, l source, lines ...string) (told []string) {
	t.Helper()
	tell := func(out []byte, events int) string {
		text, n, err := record.NewJSONWriter(record.Stream, "", record.Double, false).AppendChunk(nil, out[1:])
		if n != events || err != nil || out[0] != 'x' {
			t.Errorf("%d events are told, %d written, %v", events, n, err)
		}
		return string(text)
	}
	for _, line := range lines {
		out, events, held := l.Line([]byte("x"), []byte(line), time.Unix(5, 0))
		told = append(told, tell(out, events)+strings.Repeat("+", held))
	}
	return append(told, tell(l.Rest([]byte("x"), time.Unix(5, 0))))
}

func expectLines(t *testing.T, name string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEachLineIsAnEvent(t *testing.T) {
	l := NewLines("log", must(New(Options{Format: "json"})), must(New(Options{Format: "regex", Regex: `^k=(?<k>\d)$`})))
	expectLines(t, "lines", feed(t, l, `{"a":1}`, "k=5", "a line"), `{"a":1}`, `{"k":"5"}`, `{"log":"a line"}`, ``)
}

func TestJoinedLinesTellHowManyAreHeld(t *testing.T) {
	l, err := NewJoinedLines("log", builtInMultiline(t, "java")...)
	if err != nil {
		t.Fatal(err)
	}
	expectLines(t, "java", feed(t, l, "xError: a", " at b", "c", "yError: d"),
		"+", "++", `{"log":"xError: a\n at b\n"}{"log":"c\n"}`, "+", `{"log":"yError: d\n"}`)
	l, err = NewJoinedLines("log", builtInMultiline(t, "cri")...)
	if err != nil {
		t.Fatal(err)
	}
	line := func(rest string) string { return "2020-01-02T03:04:05Z " + rest }
	record := func(stream, p, log string) string {
		return `{"time":"2020-01-02T03:04:05Z","stream":"` + stream + `","_p":"` + p + `","log":"` + log + `"}`
	}
	expectLines(t, "cri", feed(t, l, line("stdout P a"), line("stderr F b"), line("stdout F c"), line("stderr P d")),
		"+", record("stderr", "F", "b")+"++", record("stdout", "P", "ac"), "+", record("stderr", "P", "d"))
	if _, err := NewJoinedLines("log"); err == nil {
		t.Error("without a parser it was made")
	}
}

func TestLinesBehindAFirstLine(t *testing.T) {
	first := must(New(Options{Format: "regex", Regex: `^(?<n>\d+) (?<log>.*)$`, Types: "n:integer"}))
	more := must(New(Options{Format: "regex", Regex: `^user=(?<user>.*)$`}))
	expectLines(t, "first lines", feed(t, NewFirstLines("log", first, more), "before", "1 a", "b", "user=u", "v", "2 c"),
		`{"log":"before"}`, "+", "++", "+++", "++++", `{"n":1,"log":"a\nb","user":"u\nv"}+`, `{"n":2,"log":"c"}`)
	number := must(New(Options{Format: "regex", Regex: `^(?<n>\d+)$`, Types: "n:integer"}))
	expectLines(t, "no text", feed(t, NewFirstLines("log", number), "1", "a"), "+", "++", `{"n":1,"log":"\na"}`)
	l, events := NewFirstLines("log", first), 0
	for i := range 3 * JoinLinesMax {
		line := "x"
		if i == 0 {
			line = "1 a"
		}
		_, n, held := l.Line(nil, []byte(line), time.Unix(0, 0))
		if events += n; held > JoinLinesMax {
			t.Fatalf("%d lines are held", held)
		}
	}
	if events != 1+2*JoinLinesMax {
		t.Errorf("%d events", events)
	}
}
