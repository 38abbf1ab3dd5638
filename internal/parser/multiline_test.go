package parser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/record"
)

func builtInMultiline(t testing.TB, names ...string) (parsers []*Multiline) {
	t.Helper()
	for _, name := range names {
		i := slices.IndexFunc(BuiltInMultiline(), func(o MultilineOptions) bool { return o.Name == name })
		m, err := NewMultiline(BuiltInMultiline()[i])
		if err != nil {
			t.Fatal(err)
		}
		parsers = append(parsers, m)
	}
	return parsers
}

// emitted collects records as JSON.
type emitted []string

func (e *emitted) add(_ record.Time, body []byte) {
	*e = append(*e, string(record.AppendJSON(nil, body, false)))
}

func (e *emitted) expect(t *testing.T, name string, want ...string) {
	t.Helper()
	if !slices.Equal(*e, want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(*e, "\n"), strings.Join(want, "\n"))
	}
}

// joinLines joins the lines of a text that comes at once.
func joinLines(t *testing.T, text string, parsers ...*Multiline) *emitted {
	t.Helper()
	j, err := NewJoiner("log", parsers...)
	if err != nil {
		t.Fatal(err)
	}
	var e emitted
	for line := range strings.SplitSeq(text, "\n") {
		j.Line(time.Unix(0, 0), epoch, []byte(line), e.add)
	}
	j.Flush(e.add)
	return &e
}

// The example of the documentation.
func TestLinesAreJoinedByRules(t *testing.T) {
	m, err := NewMultiline(MultilineOptions{Name: "m", Rules: []Rule{
		{"start_state", `/([a-zA-Z]+ \d+ \d+\:\d+\:\d+)(.*)/`, "cont"},
		{"cont", `/^\s+at.*/`, "cont"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	joinLines(t, `single line...
Dec 14 06:41:08 Exception in thread "main"
    at com.myproject.badMethod(MyProject.java:22)
    at com.myproject.main(MyProject.java:6)
Dec 14 06:41:09 another
another line...`, m).expect(t, "rules",
		`{"log":"single line...\n"}`,
		`{"log":"Dec 14 06:41:08 Exception in thread \"main\"\n    at com.myproject.badMethod(MyProject.java:22)\n    at com.myproject.main(MyProject.java:6)\n"}`,
		`{"log":"Dec 14 06:41:09 another\n"}`,
		`{"log":"another line...\n"}`)
}

func TestBuiltInMultilineParsers(t *testing.T) {
	for _, row := range []struct{ name, text string }{
		{"java", `java.lang.RuntimeException: it broke
    at com.x.Y.z(Y.java:22)
    at com.x.Y.main(Y.java:6)
Caused by: java.io.IOException
	at com.x.Q.r(Q.java:1)
	... 7 more
	Suppressed: x.Z: y
	nested exception is:
	java.lang.Error: deep
    at a.b(C.java:1)`},
		{"python", `Traceback (most recent call last):
  File "/usr/lib/x.py", line 1, in <module>
    main()
    ~~~~^^
  File "<string>", line 2, in main
  File "/usr/lib/x.py", line 3, in f
    raise ValueError("x")
ValueError: x`},
		{"python", `Traceback (most recent call last):
  File "x.py", line 1, in <module>
    time.sleep(9)
KeyboardInterrupt`},
		{"go", `panic: runtime error: index out of range
[signal SIGSEGV: segmentation violation]

goroutine 1 [running]:
main.f(0x1, 0x2)
	/src/main.go:5 +0x1d
main.main()
	/src/main.go:9 +0x20

goroutine 6 [chan receive]:
created by main.main in goroutine 1
	/src/main.go:7 +0x5c`},
		{"ruby", `/app/x.rb:6:in '/': divided by 0 (ZeroDivisionError)
	from /app/x.rb:6:in 'block'
	from /app/x.rb:2:in 'main'`},
	} {
		want := fmt.Sprintf(`{"log":%s}`, record.AppendJSON(nil, textOf(row.text+"\n"), false))
		joinLines(t, "before\n"+row.text+"\nafter", builtInMultiline(t, row.name)...).expect(t, row.name, `{"log":"before\n"}`, want, `{"log":"after\n"}`)
		all := builtInMultiline(t, "java", "python", "go", "ruby")
		joinLines(t, "before\n"+row.text+"\nafter", all...).expect(t, row.name+" among others", `{"log":"before\n"}`, want, `{"log":"after\n"}`)
	}
}

func textOf(text string) []byte {
	raw, err := record.AppendFromJSON(nil, fmt.Appendf(nil, "%q", text))
	if err != nil {
		panic(err)
	}
	return raw
}

func TestLinesOfContainersAreJoinedByTheirStreams(t *testing.T) {
	const at = `2020-01-02T03:04:05.5Z`
	joinLines(t, at+` stdout P one 
`+at+` stderr F other
`+at+` stdout P two 
`+at+` stdout F three
no line of a container`, builtInMultiline(t, "docker", "cri")...).expect(t, "cri",
		`{"time":"`+at+`","stream":"stderr","_p":"F","log":"other"}`,
		`{"time":"`+at+`","stream":"stdout","_p":"P","log":"one two three"}`,
		`{"log":"no line of a container"}`)
	joinLines(t, `{"log":"one ","stream":"stdout","time":"`+at+`"}
{"log":"other\n","stream":"stderr","time":"`+at+`"}
{"log":"two\n","stream":"stdout","time":"`+at+`"}
{"log":"three","stream":"stdout","time":"`+at+`"}`, builtInMultiline(t, "docker", "cri")...).expect(t, "docker",
		`{"log":"other\n","stream":"stderr","time":"`+at+`"}`,
		`{"log":"one two\n","stream":"stdout","time":"`+at+`"}`,
		`{"log":"three","stream":"stdout","time":"`+at+`"}`)
}

func TestRecordsAreJoinedByAField(t *testing.T) {
	o := BuiltInMultiline()[2]
	o.KeyContent = "msg"
	m, err := NewMultiline(o)
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewJoiner("log", m)
	if err != nil {
		t.Fatal(err)
	}
	var e emitted
	for _, text := range []string{`{"msg":"x.YException: z","n":1}`, `{"msg":"\tat a.b(C.java:1)","n":2}`, `{"other":1}`, `{"msg":5}`, `{"msg":"plain","n":3}`} {
		body, err := record.AppendFromJSON(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		j.Record(time.Unix(0, 0), epoch, body, e.add)
	}
	e.expect(t, "records", `{"msg":"x.YException: z\n\tat a.b(C.java:1)\n","n":1}`, `{"other":1}`, `{"msg":5}`, `{"msg":"plain","n":3}`)
}

func TestAMessageWaitsForItsNextLineAndNoLonger(t *testing.T) {
	o := BuiltInMultiline()[2]
	o.FlushTimeout = time.Second
	m, err := NewMultiline(o)
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewJoiner("log", m)
	if err != nil {
		t.Fatal(err)
	}
	var e emitted
	begin := time.Unix(100, 0)
	if !j.Due().IsZero() {
		t.Errorf("nothing waits, and it is due at %v", j.Due())
	}
	j.Line(begin, epoch, []byte("x.YException: z"), e.add)
	j.Line(begin.Add(500*time.Millisecond), epoch, []byte("  at a"), e.add)
	j.Expire(begin.Add(time.Second), e.add)
	e.expect(t, "before its time")
	if due := begin.Add(1500 * time.Millisecond); !j.Due().Equal(due) {
		t.Errorf("due at %v, want %v", j.Due(), due)
	}
	j.Expire(begin.Add(1500*time.Millisecond), e.add)
	e.expect(t, "at its time", `{"log":"x.YException: z\n  at a\n"}`)
	if !j.Due().IsZero() {
		t.Errorf("all was emitted, and it is due at %v", j.Due())
	}
}

func TestAMessageWithoutAnEndIsCut(t *testing.T) {
	j, err := NewJoiner("log", builtInMultiline(t, "java", "cri")...)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	measure := func(_ record.Time, body []byte) {
		b, err := record.ParseBody(nil, body)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := record.Text(b[b.Index("log")].Value)
		sizes = append(sizes, len(text))
	}
	line := []byte("\tat " + strings.Repeat("x", 60<<10))
	j.Line(time.Unix(0, 0), epoch, []byte("x.YException: z"), measure)
	for range 100 {
		j.Line(time.Unix(0, 0), epoch, line, measure)
	}
	j.Flush(measure)
	if len(sizes) != 3 || slices.Max(sizes) > JoinBytesMax+len(line) {
		t.Errorf("by bytes: %d", sizes)
	}
	sizes = nil
	j.Line(time.Unix(0, 0), epoch, []byte("x.YException: z"), measure)
	for range JoinLinesMax {
		j.Line(time.Unix(0, 0), epoch, []byte("\tat x"), measure)
	}
	j.Flush(measure)
	if len(sizes) != 2 || sizes[1] != len("\tat x\n") {
		t.Errorf("by lines: %d", sizes)
	}
	sizes = nil
	for i := range joinGroupsMax * 2 {
		o := fmt.Sprintf(`2020-01-02T03:04:05.5Z stdout P %d`, i)
		j.Line(time.Unix(0, 0), epoch, []byte(o), measure)
	}
	if j.Flush(measure); len(sizes) != 1 {
		t.Errorf("partial lines of one stream: %d records", len(sizes))
	}
}

func TestMultilineSettingsThatAreNoneAreRefused(t *testing.T) {
	for _, row := range []struct {
		o    MultilineOptions
		want string
	}{
		{MultilineOptions{Name: "m"}, "start_state"},
		{MultilineOptions{Type: "glob"}, `"glob"`},
		{MultilineOptions{Rules: []Rule{{"start_state", "(", "x"}}}, "regular expression"},
		{MultilineOptions{Rules: []Rule{{"start_state", "a", "x"}}}, `"x"`},
		{MultilineOptions{Rules: []Rule{{"cont", "a", "cont"}}}, "start_state"},
		{MultilineOptions{Type: "equal", Match: "F", Parser: &criParser}, "key_content"},
		{MultilineOptions{Rules: []Rule{{"start_state", "a", "start_state"}}, Parser: &Options{Name: "p"}}, "parser p"},
		{MultilineOptions{Rules: []Rule{{"start_state", "a", "start_state"}}, FlushTimeout: -1}, "flush_timeout"},
	} {
		if _, err := NewMultiline(row.o); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.o, err, row.want)
		}
	}
	if _, err := NewJoiner("log"); err == nil {
		t.Error("a joiner without parsers was made")
	}
}

// FuzzJoin: no byte of a line is lost or comes twice, whatever the lines are.
func FuzzJoin(f *testing.F) {
	f.Add("a panic: x\n\ngoroutine 1 [running]:\nmain.f()\n\t/x.go\nb")
	f.Add("Traceback (most recent call last):\n  File \"x\"\nE: x\nxError:\n at x")
	parsers := builtInMultiline(f, "java", "python", "go", "ruby")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "\r", "")
		j, err := NewJoiner("log", parsers...)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		emit := func(_ record.Time, body []byte) {
			b, err := record.ParseBody(nil, body)
			if err != nil || len(b) != 1 {
				t.Fatalf("%x: %v", body, err)
			}
			text, _ := record.Text(b[0].Value)
			got.Write(text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			j.Line(time.Unix(0, 0), epoch, []byte(line), emit)
		}
		if j.Flush(emit); got.String() != text+"\n" {
			t.Fatalf("%q became %q", text, got.String())
		}
	})
}
