package parser

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/record"
)

// readTable reads sections: a heading, then lines of key and value.
func readTable(text string) (*Table, *fluentconf.Report) {
	var sections []*fluentconf.Section
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		at := fluentconf.Place{File: "p.conf", Line: i + 1}
		if kind, ok := strings.CutPrefix(line, "["); ok {
			sections = append(sections, &fluentconf.Section{Kind: strings.ToLower(strings.TrimSuffix(kind, "]")), At: at})
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		s := sections[len(sections)-1]
		s.Entries = append(s.Entries, fluentconf.Entry{Key: strings.ToLower(key), Value: strings.TrimSpace(value), At: at})
	}
	var r fluentconf.Report
	return ReadTable(sections, &r), &r
}

func TestParsersOfAConfiguration(t *testing.T) {
	table, r := readTable(`
[PARSER]
  Name        mine
  Format      Regex
  Regex       ^(?<t>[^ ]*) (?<n>\d*+) (?<e>.*)$
  Time_Key    t
  Time_Format %Y-%m-%d %H:%M:%S.%L
  Time_Format %s
  Time_Keep   On
  Time_Strict Off
  Time_Offset +0100
  Types       n:integer
  Skip_Empty_Values Off
[PARSER]
  Name        docker
  Format      json
  Decode_Field_As escaped log do_next
  Decode_Field_As json log
[MULTILINE_PARSER]
  name          m
  type          regex
  parser        late
  key_content   log
  flush_timeout 1500
  rule          "start_state" "/^a "b" c/"   "cont"
  rule          "cont"        "/^\s/"  "cont"
[PARSER]
  Name   late
  Format json
[PARSER]
  Name   late
  Format logfmt`)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	notices := r.Notices()
	if len(notices) != 3 || !strings.Contains(notices[0].String(), "p.conf:1: parser mine: the regular expression") ||
		!strings.Contains(notices[1].String(), "p.conf:7: time_format was set before") || !strings.Contains(notices[2].String(), "late was defined before") {
		t.Errorf("%v", notices)
	}
	mine, err := table.Parser("mine")
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := mine.Parse(nil, []byte("x 5 "), epoch)
	if got := string(record.AppendJSON(nil, out, false)); got != `{"t":"x","n":5,"e":""}` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	docker, err := table.Parser("docker")
	if err != nil {
		t.Fatal(err)
	}
	out, _, err = docker.Parse(nil, []byte(`{"log":"{\\\"a\\\":1}"}`), epoch)
	if got := string(record.AppendJSON(nil, out, false)); got != `{"log":{"a":1}}` || err != nil {
		t.Errorf("a definition takes the place of what is built in: %s, %v", got, err)
	}
	m, err := table.Multiline("m")
	if err != nil || m.FlushTimeout() != 1500*time.Millisecond {
		t.Fatal(m, err)
	}
	joinLines(t, "{\"log\":\"a \\\"b\\\" c\"}\n{\"log\":\" d\"}", m).expect(t, "rules", `{"log":"a \"b\" c\n d\n"}`)
	for _, name := range []string{"cri", "nginx", "syslog-rfc5424"} {
		if _, err := table.Parser(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := table.Multiline("java"); err != nil {
		t.Error(err)
	}
	_, err = table.Parser("nginz")
	_, err2 := table.Multiline("jawa")
	if err == nil || err2 == nil || !strings.Contains(err.Error(), "nginx") || !strings.Contains(err2.Error(), "java") {
		t.Errorf("%v; %v", err, err2)
	}
}

func TestAllThatIsWrongWithParsersIsTold(t *testing.T) {
	table, r := readTable(`
[PARSER]
  Name x
  Format xml
  Time_Keep maybe
  Tyme_Key t
[PARSER]
  Format json
[MULTILINE_PARSER]
  name m
  type regex
  parser none
  rule "a" "b"
  flush_timeout soon
[MULTILINE_PARSER]
  name n
  type regex
[PARSER]
  Name y
  Format xml`)
	var got []string
	for _, p := range r.Problems() {
		got = append(got, p.String())
	}
	want := []string{
		`p.conf:4: time_keep: "maybe" must be on or off`, `p.conf:5: [PARSER] has no setting "tyme_key"`, "p.conf:6: [PARSER] has no name",
		`p.conf:11: parser: there is no parser "none"`, `p.conf:12: rule:`, "p.conf:13: flush_timeout:", "p.conf:14: multiline parser n: no rule has the state start_state",
		`p.conf:17: parser y: format "xml"`,
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if _, err := table.Parser("x"); err == nil {
		t.Error("a parser with problems is there")
	}
}

func TestRulesInYAML(t *testing.T) {
	entry := func(key, value string) fluentconf.Entry { return fluentconf.Entry{Key: key, Value: value} }
	rule := &fluentconf.Section{Kind: "rules", Entries: []fluentconf.Entry{entry("state", "start_state"), entry("regex", "/^a/"), entry("next_state", "start_state")}}
	var r fluentconf.Report
	table := ReadTable([]*fluentconf.Section{
		{Kind: "multiline_parser", Entries: []fluentconf.Entry{entry("name", "m")}, Inner: []*fluentconf.Section{rule}},
		{Kind: "multiline_parser", Entries: []fluentconf.Entry{entry("name", "n")}, Inner: []*fluentconf.Section{{Kind: "ruls"}}},
	}, &r)
	if _, err := table.Multiline("m"); err != nil {
		t.Error(err)
	}
	if problems := r.Problems(); len(problems) != 1 || !strings.Contains(problems[0].Text, "rules") {
		t.Errorf("%v", problems)
	}
}

func TestRulesOfOneLine(t *testing.T) {
	for text, want := range map[string]Rule{
		`"a" "/b c/" "d"`:             {"a", "/b c/", "d"},
		`"a, b"  "/x "y" \"z/i"  "d"`: {"a, b", `/x "y" \"z/i`, "d"},
		`"a" "/b/"`:                   {},
		`a "/b/" "c"`:                 {},
		`"a" /b/ "c"`:                 {},
		`"a" "/b/" c`:                 {},
		`"a" "b`:                      {},
		`"`:                           {},
		``:                            {},
	} {
		if got, ok := ruleWords(text); got != want || ok != (want != Rule{}) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
