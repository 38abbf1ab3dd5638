package fluent

import (
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/job"
)

// The examples of the seed, as they stand there: without indentation.
const (
	seedScheduler = `[SERVICE]
Flush 5
Daemon off
Log_Level debug
scheduler.base 3
scheduler.cap 30
`
	seedRetries = `[OUTPUT]
Name http
Host 192.168.5.6
Port 8080
Retry_Limit False
[OUTPUT]
Name es
Host 192.168.5.20
Port 9200
Logstash_Format On
Retry_Limit 5
`
)

// load reads files, the first of which is the main one.
func load(t *testing.T, files ...string) (*Config, *fluentconf.Report) {
	t.Helper()
	names := map[string]string{}
	for i := 0; i < len(files); i += 2 {
		names[files[i]] = files[i+1]
	}
	from := fluentconf.Source{
		Read: func(path string, _ int64) ([]byte, string, error) {
			if text, is := names[path]; is {
				return []byte(text), path, nil
			}
			return nil, "", fs.ErrNotExist
		},
		Glob:   func(string) ([]string, error) { return nil, nil },
		Lookup: func(string) (string, bool) { return "", false },
	}
	var r fluentconf.Report
	c := Load(Options{
		Name: "p", Path: files[0], From: from, Stdin: strings.NewReader(""), Stdout: io.Discard, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, &r)
	return c, &r
}

func problems(r *fluentconf.Report) (text string) {
	for _, p := range r.Problems() {
		text += p.String() + "\n"
	}
	return text
}

func notices(r *fluentconf.Report) (text string) {
	for _, p := range r.Notices() {
		text += p.String() + "\n"
	}
	return text
}

func TestTheSeedsSchedulerIsReadAsItStands(t *testing.T) {
	c, r := load(t, "seed.conf", seedScheduler)
	if text := problems(r); text != "" {
		t.Fatal(text)
	}
	if c.Flush != 5*job.Second || c.Base != 3*job.Second || c.Cap != 30*job.Second {
		t.Errorf("flush %d, base %d, cap %d", c.Flush, c.Base, c.Cap)
	}
	if text := notices(r); !strings.Contains(text, "there is no input") {
		t.Errorf("notices: %s", text)
	}
}

func TestTheSeedsRetriesAreReadAsTheyStand(t *testing.T) {
	c, r := load(t, "seed.conf", seedRetries)
	if text := problems(r); text != "" {
		t.Fatal(text)
	}
	if len(c.Outputs) != 2 || c.Outputs[0].Limit != job.Unlimited() || c.Outputs[1].Limit != job.LimitOf(5) {
		t.Fatalf("%+v", c.Outputs)
	}
	if text := notices(r); !strings.Contains(text, "output http.0 has no Match: it gets all records") || strings.Count(text, "Match") != 2 {
		t.Errorf("notices: %s", text)
	}
}

func TestAllThatIsWrongIsToldAtOnce(t *testing.T) {
	_, r := load(t, "f.conf", `[SERVICE]
    Flush 1
    Flash 2
[INPUT]
    Name tail
    Paht /var/log/x
[INPUT]
    Name systemd_
[FILTER]
    Name grep
    Match *
    Regex onlyakey
[OUTPUT]
    Name http
    Match *
    Port 99999
    Retry_Limit 3x
[OUTPUT]
    Name s3
    Match *
[OUTPUT]
    Name http
    Match *
    Alias a
[OUTPUT]
    Name http
    Match *
    Alias a
`)
	text := problems(r)
	for _, want := range []string{
		"f.conf:6", "path", "f.conf:8", `f.conf:9: filter grep: regex "onlyakey"`, "f.conf:16", "f.conf:17", "f.conf:19", "the output s3 of Fluent Bit is not here", `the name "a" is taken`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not told in\n%s", want, text)
		}
	}
	if text := notices(r); !strings.Contains(text, "f.conf:3") {
		t.Errorf("the unknown key of the service is not told: %s", text)
	}
}

func TestFiltersMatchAndParsersAreFound(t *testing.T) {
	c, r := load(t, "f.conf", `[SERVICE]
    Parsers_File p.conf
[INPUT]
    Name tail
    Path /var/log/x
    Parser mine
    Mem_Buf_Limit 5M
[FILTER]
    Name parser
    Match a.*
    Key_Name log
    Parser json
[OUTPUT]
    Name http
    Match_Regex ^b
    storage.total_limit_size 10M
    Workers 3
`, "p.conf", `[PARSER]
    Name mine
    Format regex
    Regex ^(?<a>\w+) (?<b>\w+)$
`)
	if text := problems(r); text != "" {
		t.Fatal(text)
	}
	if text := notices(r); text != "" {
		t.Errorf("notices: %s", text)
	}
	if f := c.Filters[0]; !f.Fits("a.b") || f.Fits("b") {
		t.Error("the filter does not match as it says")
	}
	if o := c.Outputs[0]; !o.Fits("bcd") || o.Fits("ab") || o.Most != 10_000_000 || o.Lanes != 3*lanesOfWorker {
		t.Errorf("the output: %+v", o)
	}
	if in := c.Inputs[0]; in.Name != "tail.0" || in.Most != 0 {
		t.Errorf("the input: %+v", in)
	}
	_, r = load(t, "f.conf", "[INPUT]\n    Name tail\n    Path x\n    Parser mien\n    storage.type memory\n    Mem_Buf_Limit 5M\n")
	if text := problems(r); !strings.Contains(text, "mien") || !strings.Contains(text, "f.conf:4") {
		t.Errorf("a parser that is not there: %s", text)
	}
}

func TestRetriesAreThoseOfTheFile(t *testing.T) {
	for text, want := range map[string]job.Limit{
		"": job.LimitOf(1), "Retry_Limit 7": job.LimitOf(7), "Retry_Limit no_retries": job.LimitOf(0), "Retry_Limit off": job.Unlimited(),
	} {
		c, r := load(t, "f.conf", "[OUTPUT]\n    Name http\n    Match *\n    "+text+"\n")
		if len(c.Outputs) != 1 || c.Outputs[0].Limit != want {
			t.Errorf("%q: %+v %s", text, c.Outputs, problems(r))
		}
	}
}

// A section that is refused is there: nobody is told to write one.
func TestWhatIsRefusedIsNotMissing(t *testing.T) {
	_, r := load(t, "f.conf", "[INPUT]\n    Name cpu\n[OUTPUT]\n    Name s3\n")
	if text := notices(r); text != "" || len(r.Problems()) != 2 {
		t.Errorf("%s%s", problems(r), text)
	}
}

func TestAServiceKeyWithoutEffectIsTold(t *testing.T) {
	_, r := load(t, "f.conf", "[SERVICE]\n    Flush 1\n    Log_Level debug\n    storage.path x\n    Grace 9\n[INPUT]\n    Name dummy\n[OUTPUT]\n    Name null\n    Match *\n")
	if text := notices(r); text != "f.conf:5: grace has no effect here yet\n" {
		t.Errorf("notices: %s", text)
	}
}

// What would change the records, were it left out, is refused with what to write instead.
func TestOldMultilineIsRefused(t *testing.T) {
	_, r := load(t, "f.conf", "[INPUT]\n    Name tail\n    Path x\n    Multiline on\n    Docker_Mode on\n    Docker_Mode_Flush 5\n[OUTPUT]\n    Name null\n    Match *\n")
	if text := problems(r); text != "f.conf:4: multiline is not here: name a [MULTILINE_PARSER] by multiline.parser instead\nf.conf:5: docker_mode is not here: write multiline.parser docker instead\n" {
		t.Error(text)
	}
	if text := notices(r); text != "f.conf:6: docker_mode_flush has no effect here: it belongs to docker_mode; use multiline.parser docker\n" {
		t.Error(text)
	}
}

// A script is found in the folder of the configuration, too.
func TestAScriptBesideTheConfiguration(t *testing.T) {
	_, r := load(t, "a/f.conf", "[FILTER]\n    Name lua\n    Match *\n    Script s.lua\n    Call f\n", "a/s.lua", "function f(tag, time, record) return 0, time, record end")
	if text := problems(r); text != "" {
		t.Error(text)
	}
}

// What others could send to is refused; by UDP without the advice to use TLS.
func TestWhoListensForOthersIsRefused(t *testing.T) {
	for section, want := range map[string]string{
		"Name http\n    Listen 0.0.0.0":                 "set tls on",
		"Name syslog\n    Mode udp\n    Listen 0.0.0.0": "Use Mode tcp with tls on",
		"Name syslog\n    Mode tcp\n    Listen 0.0.0.0": "set tls on",
	} {
		_, r := load(t, "f.conf", "[INPUT]\n    "+section+"\n")
		if text := problems(r); strings.Count(text, "\n") != 1 || !strings.Contains(text, want) || !strings.Contains(text, "REPRISE_INSECURE") {
			t.Errorf("%s: %s", section, text)
		}
	}
}

// A section that is nearly one that does something is a slip, and is refused.
func TestSectionsThatDoNothing(t *testing.T) {
	_, r := load(t, "f.conf", "[INPUT]\n    Name dummy\n[OUTPUTT]\n    Name null\n[STREAM_PROCESSOR]\n    Exec x\n[CUSTOM]\n    Name calyptia\n[MINE]\n    a b\n[OUTPUT]\n    Name null\n    Match *\n")
	if text := problems(r); text != "f.conf:3: there is no section \"outputt\"; did you mean output?\n"+
		"f.conf:5: there is no stream processor; send the records to one by output kafka\n" {
		t.Error(text)
	}
	if text := notices(r); text != "f.conf:7: the section \"custom\" has no effect here\nf.conf:9: the section \"mine\" has no effect here\n" {
		t.Error(text)
	}
}
