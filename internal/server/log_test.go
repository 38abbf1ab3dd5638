package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/reprisehq/reprise/internal/config"
)

func newTestLogger(format config.LogFormat, l slog.Level, terminal bool) (log *slog.Logger, stdout, stderr *bytes.Buffer) {
	cfg := config.Default()
	cfg.LogFormat, cfg.LogLevel = format, l
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return NewLogger(cfg, stdout, stderr, terminal), stdout, stderr
}

// What the harnesses of Zizq's clients look for on standard output.
func TestListeningLineIsTheOneHarnessesWaitFor(t *testing.T) {
	log, stdout, stderr := newTestLogger(config.LogJSON, slog.LevelInfo, true)
	listening(log, "primary", "127.0.0.1:7890", "http")
	if stderr.Len() > 0 {
		t.Errorf("standard error got %q", stderr)
	}
	raw := stdout.String()
	if strings.Count(raw, "\n") != 1 || !strings.HasSuffix(raw, "}\n") || !strings.Contains(raw, `"api":"primary"`) {
		t.Errorf("raw line %q", raw)
	}
	var line struct {
		Timestamp time.Time
		Level     string
		Fields    map[string]string
		Target    string
	}
	if err := json.Unmarshal([]byte(raw), &line); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"message": "listening", "api": "primary", "addr": "127.0.0.1:7890", "scheme": "http"}
	if line.Level != "INFO" || line.Target == "" || fmt.Sprint(line.Fields) != fmt.Sprint(want) || time.Since(line.Timestamp) > time.Hour {
		t.Errorf("%+v", line)
	}
}

func TestFormats(t *testing.T) {
	const stamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`
	for _, c := range []struct {
		name           string
		format         config.LogFormat
		terminal       bool
		stdout, stderr string
	}{
		{
			"json", config.LogJSON, true,
			`{"timestamp":"` + stamp + `","level":"WARN","fields":{"message":"slow \\"disk\\"\\n","took":1500000000,"error":"no <space>"},"target":"reprise"}` + "\n", "",
		},
		{"compact", config.LogCompact, false, "", stamp + ` WARN  slow "disk"\\n took=1.5s error="no <space>"` + "\n"},
		{"auto in a file", config.LogAuto, false, "", stamp + ` WARN  slow "disk"\\n took=1.5s error="no <space>"` + "\n"},
		{"pretty in a file", config.LogPretty, false, "", `\d\d:\d\d:\d\d\.\d{3} WARN  slow "disk"\\n  took=1.5s error="no <space>"` + "\n"},
		{
			"auto on a terminal", config.LogAuto, true, "",
			"Reprise " + regexp.QuoteMeta(Version) + "\n" +
				`\x1b\[2m\d\d:\d\d:\d\d\.\d{3}\x1b\[0m \x1b\[33mWARN \x1b\[0m slow "disk"\\n  \x1b\[2mtook=1.5s error="no <space>"\x1b\[0m` + "\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, stdout, stderr := newTestLogger(c.format, slog.LevelInfo, c.terminal)
			log.Debug("not written")
			log.Warn("slow \"disk\"\n", "took", 1500*time.Millisecond, "error", errors.New("no <space>"))
			if got := stdout.String(); !regexp.MustCompile("^" + c.stdout + "$").MatchString(got) {
				t.Errorf("standard output got %q", got)
			}
			if got := stderr.String(); !regexp.MustCompile("^" + c.stderr + "$").MatchString(got) {
				t.Errorf("standard error got %q", got)
			}
		})
	}
}

func TestListeningForPeople(t *testing.T) {
	for _, c := range []struct {
		format   config.LogFormat
		level    slog.Level
		terminal bool
		want     string
	}{
		{config.LogAuto, slog.LevelError, true, "^Reprise \\S+\nListening on http://127.0.0.1:80 \\(primary\\)\n$"},
		{config.LogCompact, slog.LevelInfo, true, "^Reprise \\S+\nListening on http://127.0.0.1:80 \\(primary\\)\n$"},
		{config.LogCompact, slog.LevelInfo, false, "^\\S+ INFO  listening api=primary addr=127.0.0.1:80 scheme=http\n$"},
		{config.LogCompact, slog.LevelWarn, false, "^$"},
	} {
		log, _, stderr := newTestLogger(c.format, c.level, c.terminal)
		listening(log.With("pid", 1).WithGroup("x"), "primary", "127.0.0.1:80", "http")
		if c.terminal || c.level > slog.LevelInfo {
			if !regexp.MustCompile(c.want).MatchString(stderr.String()) {
				t.Errorf("%s: %q", c.format, stderr)
			}
			continue
		}
		stderr.Reset()
		listening(log, "primary", "127.0.0.1:80", "http")
		if !regexp.MustCompile(c.want).MatchString(stderr.String()) {
			t.Errorf("%s: %q", c.format, stderr)
		}
	}
}

func TestLevels(t *testing.T) {
	log, stdout, _ := newTestLogger(config.LogJSON, config.LevelTrace, false)
	for _, l := range []slog.Level{config.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, slog.LevelError + 4, config.LevelTrace - 1} {
		log.Log(t.Context(), l, "x")
	}
	var got []string
	for line := range strings.Lines(stdout.String()) {
		var parsed struct{ Level string }
		if err := json.Unmarshal([]byte(line), &parsed); err != nil {
			t.Fatal(err)
		}
		got = append(got, parsed.Level)
	}
	if strings.Join(got, " ") != "TRACE DEBUG INFO WARN ERROR ERROR" {
		t.Errorf("%v", got)
	}
}

// The standard library's own test of handlers, on the JSON shape.
func TestHandlerKeepsTheRulesOfSlog(t *testing.T) {
	var stdout *bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		var log *slog.Logger
		log, stdout, _ = newTestLogger(config.LogJSON, slog.LevelInfo, false)
		return log.Handler()
	}, func(t *testing.T) map[string]any {
		var line struct {
			Timestamp *string
			Level     string
			Fields    map[string]any
		}
		if err := json.Unmarshal(stdout.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		flat := line.Fields
		flat[slog.LevelKey], flat[slog.MessageKey] = line.Level, flat["message"]
		if line.Timestamp != nil {
			flat[slog.TimeKey] = *line.Timestamp
		}
		return flat
	})
}

func TestLinesOfManyGoroutinesStayWhole(t *testing.T) {
	log, stdout, _ := newTestLogger(config.LogJSON, slog.LevelInfo, false)
	var all sync.WaitGroup
	for g := range 8 {
		own := log.With("g", g)
		all.Go(func() {
			for range 50 {
				own.Info("line", "text", strings.Repeat("x", 100))
			}
		})
	}
	all.Wait()
	lines := 0
	for line := range strings.Lines(stdout.String()) {
		if lines++; !json.Valid([]byte(line)) {
			t.Errorf("%q", line)
		}
	}
	if lines != 400 {
		t.Errorf("%d lines", lines)
	}
}

func TestReportTellsItsNoticesAtTheirLevel(t *testing.T) {
	log, _, stderr := newTestLogger(config.LogCompact, slog.LevelInfo, false)
	config.Report{Notices: []config.Notice{{Level: slog.LevelDebug, Text: "quiet"}, {Level: slog.LevelWarn, Text: "loud"}}}.Tell(t.Context(), log)
	if got := stderr.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "WARN  configuration notice=loud") {
		t.Errorf("%q", got)
	}
}
