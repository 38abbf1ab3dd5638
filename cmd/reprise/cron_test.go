package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

const nightly = `
timezone: Europe/Berlin
entries:
  - name: report
    expression: "0 3 * * MON-FRI"
    missed: skip
    job: {type: report, queue: reports, payload: {big: 9007199254740993, since: yesterday}, labels: {team: x}}
  - {name: never, expression: 0 0 30 2 *, job: {type: t, queue: reports, payload: null}}
`

func TestCronIsSetShownPausedRunAndDeleted(t *testing.T) {
	url := serverURL(t)
	file := filepath.Join(t.TempDir(), "nightly.yaml")
	if err := os.WriteFile(file, []byte(nightly), 0o600); err != nil {
		t.Fatal(err)
	}
	crons := func(args ...string) string {
		t.Helper()
		return strings.Join(strings.Fields(well(t, append(append([]string{"cron"}, args...), "--url", url)...)), " ")
	}
	says := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q lacks %q", out, w)
			}
		}
	}
	says(crons("set", "nightly", "-f", file), "cron group nightly is set; entries: 2")
	says(crons("list"), "nightly report 0 3 * * MON-FRI Europe/Berlin 20", "nightly never 0 0 30 2 * Europe/Berlin never works")
	says(crons("show", "nightly", "report"), `"payload": { "big": 9007199254740993, "since": "yesterday" }`, `"missed": "skip"`, `"next_enqueue_at": 1`)
	says(crons("show", "nightly"), `"timezone": "Europe/Berlin"`, `"name": "never"`)
	says(crons("pause", "nightly", "report"), "cron entry report of nightly is paused")
	says(crons("list"), ") paused")
	says(crons("resume", "nightly", "report"), "cron entry report of nightly is resumed")
	says(crons("pause", "nightly"), "cron group nightly is paused")
	says(crons("list"), "group paused")
	says(crons("resume", "nightly"), "cron group nightly is resumed")
	says(crons("run", "nightly", "report"), "is in queue reports (ready)")
	says(crons("delete", "nightly", "report"), "cron entry report of nightly is deleted")
	says(crons("delete", "nightly"), "cron group nightly is deleted")
	out, stderr, code := cli(t, `{"entries": []}`, "cron", "set", "empty", "-f", "-", "--url", url)
	if code != 0 {
		t.Fatal(stderr)
	}
	says(out, "entries: 0")
	says(crons("list"), "empty - - - - no entries")
}

func TestCronPreview(t *testing.T) {
	for line, want := range map[string]string{
		"30 2 * * *|--timezone|Europe/Berlin|--from|2026-03-28T00:00:00Z|-n|3": "Sat 2026-03-28 02:30:00 +01:00 CET\nSun 2026-03-29 03:00:00 +02:00 CEST\nMon 2026-03-30 02:30:00 +02:00 CEST\n",
		"0 0 30 2 *": "it never comes\n",
	} {
		if got := well(t, append([]string{"cron", "preview"}, strings.Split(line, "|")...)...); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, got, want)
		}
	}
	if got := well(t, "cron", "preview", "* * * * *"); strings.Count(got, "\n") != 5 {
		t.Error(got)
	}
}

func TestCronCommandLinesThatAreWrongSaySo(t *testing.T) {
	url := serverURL(t)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("entries:\n  - {name: a, expresion: '@daily', job: {type: t, queue: q, payload: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"cron|bogus":                            {2, "no command"},
		"cron|show":                             {2, "it is used as: reprise cron show GROUP [ENTRY]"},
		"cron|run|g":                            {2, "it is used as: reprise cron run GROUP ENTRY"},
		"cron|list|x":                           {2, "it is used as"},
		"cron|preview":                          {2, "one expression in quotes"},
		"cron|preview|*|*|*|*|*":                {2, "one expression in quotes"},
		"cron|preview|61 * * * *":               {2, `the minute "61" must be from 0 to 59`},
		"cron|preview|@daily|--timezone|Berlin": {2, `"Berlin" is not known`},
		"cron|preview|@daily|--from|x":          {2, "is no time"},
		"cron|preview|@daily|-n|0":              {2, "-n must be from 1 to 1000"},
		"cron|set|g":                            {2, "name the file with -f"},
		"cron|set|g|-f|" + bad:                  {1, `unknown field "expresion"`},
		"cron|set|g|-f|/nowhere.yaml":           {1, "no such file"},
		"cron|show|none":                        {1, "cron group 'none' not found"},
		"cron|pause|none|x":                     {1, "cron group 'none' not found"},
	} {
		args := strings.Split(line, "|")
		if want.code == 1 || len(args) > 2 && args[1] != "preview" {
			args = append(args, "--url", url)
		}
		if _, stderr, code := cli(t, "", args...); code != want.code || !strings.Contains(stderr, want.says) {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

func TestCronStatesInWords(t *testing.T) {
	yes := true
	for want, c := range map[string]struct {
		g wire.CronGroup
		e *wire.CronEntry
	}{
		"works":                          {wire.CronGroup{}, &wire.CronEntry{}},
		"paused":                         {wire.CronGroup{}, &wire.CronEntry{Paused: &yes}},
		"group paused":                   {wire.CronGroup{Paused: &yes}, &wire.CronEntry{}},
		"no entries":                     {wire.CronGroup{}, nil},
		"refused 2 times: queue is full": {wire.CronGroup{}, &wire.CronEntry{LastError: "queue is full", Failures: 2}},
	} {
		if got := cronState(&c.g, c.e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
