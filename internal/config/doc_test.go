package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
)

var update = flag.Bool("update", false, "write docs/config.md anew")

const configDoc = "../../docs/config.md"

func TestDocsConfigIsFresh(t *testing.T) {
	want := configMarkdown()
	if *update {
		if err := os.WriteFile(configDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(configDoc)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/config.md is stale; run: go test ./internal/config -run TestDocsConfigIsFresh -update")
	}
}

// The file that docs/config.md shows is one that a server starts with.
func TestDocumentedFileLoads(t *testing.T) {
	cfg, report, err := load(t, nil, []string{"SECRET_HOST=queue.example"}, exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Queues) != 3 || len(cfg.Types) != 1 || cfg.Doors[job.DoorJobs] == nil || len(report.Notices) != 0 {
		t.Errorf("queues %v, notices %v", cfg.Queues, report.Notices)
	}
}

const exampleFile = `server:
  port: 7890
  root_dir: /var/lib/reprise
  allow_host: [queue.internal, "${env:SECRET_HOST}"]
  log_format: json

store:
  sync: always
  disk_reserve: 2%

retry:                    # where nobody more specific says anything
  limit: 25
  curve: {kind: polynomial, base: 15s, exponent: 4, jitter: 30s}
  rules:                  # the first that matches decides
    - {when: {error_type: ValidationError}, do: dead}
    - {when: {message: "(?i)lock .* not free"}, do: release, delay: 2s}
    - {when: {status: [429, 503]}, do: hold, delay: 30s}

retention:
  completed: 10m
  dead: 7d

doors:                    # what goes before it, and before each other:
  jobs: {retry: {loss_limit: 10}}

queues:
  mail:
    retry: {limit: 10, curve: {kind: exponential, unit: 1s, cap: 1h}}
    run_timeout: 30s
  ledger:
    order: strict
    on_dead: block
    max_jobs: 1000000
    on_full: reject
    retention: {completed: 1d}
  hooks:
    max_running: 200
    group_breaker: {consecutive: 5}
    group_rate: {per_second: 20}
    retry_budget: {}
    fair_share: {weights: {gold: 3}}

types:
  invoice.send:
    retry: {limit: 5}

grid:                     # sessions of tasks on engines
  profile: modern
  defaults: {max_retries: 5}
  services:
    pricing: {task_max_time: 50s, on_timeout: reschedule}

crons:
  nightly:
    timezone: Europe/Berlin
    entries:
      - name: report
        expression: 0 3 * * MON-FRI
        job: {type: report, queue: reports, payload: {of: yesterday}}
`

// configMarkdown writes docs/config.md from the tables of settings.
func configMarkdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from the lists of settings; do not edit.
     go test ./internal/config -run TestDocsConfigIsFresh -update -->

Every setting of the server can be given in three ways. The first that says something wins:

1. a flag of ` + "`reprise serve`" + `: ` + "`--sync-interval 20ms`" + `
2. an environment variable: ` + "`REPRISE_SYNC_INTERVAL=20ms`" + `, the flag's name in capitals with ` + "`_`" + ` for ` + "`-`" + `; if it is not
   set or empty, the same with ` + "`ZIZQ_`" + `
3. the YAML file named by ` + "`-c`" + `, ` + "`--config`" + ` or ` + "`REPRISE_CONFIG`" + `

` + "`reprise config`" + ` takes the same flags and shows every value in effect and where it came from;
` + "`reprise config --check`" + ` tells everything that is wrong and exits with 1.

**Durations** are written ` + "`250ms`, `12.5s`, `1m30s`, `7d`, `PT6S`" + ` or as a bare number of milliseconds.
Below ` + "`grid`, `inboxes` and `cluster`" + `, whose originals count some spans in seconds, a bare number is refused: a unit is never guessed.
**Sizes** are written ` + "`64MiB`" + ` (1024 × 1024), ` + "`100MB`" + ` (1000 × 1000) or as a bare number of bytes.
`)
	title := ""
	for _, s := range settings {
		if s.section != title {
			title = s.section
			fmt.Fprintf(&b, "\n## %s\n\n| Flag | In the file | Kind | Default | Meaning |\n| --- | --- | --- | --- | --- |\n", title)
		}
		if s.hidden {
			continue
		}
		flag := "--" + s.name
		if s.letter != "" {
			flag = "-" + s.letter + ", " + flag
		}
		meaning := capital(s.help) + "."
		if s.more != "" {
			meaning += " " + s.more
		}
		row(&b, code(flag), code(s.yaml), s.kind, code(s.def), meaning)
	}
	fmt.Fprintf(&b, `
## The file

`+"```yaml\n%s```"+`

Unknown keys are refused, with the line and the name that was probably meant. So are keys without a value, keys that are
there twice, anchors, aliases and tags. A heading without keys below it is fine.

A value may refer to a secret that is kept elsewhere: `+"`${env:NAME}`"+` stands for an environment variable,
`+"`${file:PATH}`"+` for what is in a file, without the line break at its end (a relative path starts at the directory of
the configuration file). What a reference stands for is not shown by `+"`reprise config`"+`. `+"`$${`"+` is `+"`${`"+` itself.

`+"`crons.NAME`"+` is a cron group in the shape of [PUT /crons/{group}](protocol/operators.md#cron), applied at each start. Entries and groups that
the file does not name stay as they are; see [cron.md](cron.md).

`+"`pipelines`"+` is a list of [configurations of Fluent Bit](pipeline.md) that the server runs, each as `+"`{file: fluent-bit.conf, name: edge}`"+`. A relative path
starts at the directory of the configuration file; the name is by default that of the file without its ending, and no two may have the same.

`+"`auth.tokens.NAME`"+` is a token of the API: `+"`secret`, `scopes` and, if it is for some queues only, `queues`"+`. See
[security.md](security.md#tokens). Of its secret only a hash is kept, and nothing is shown.

`+"`retry`"+` has the keys `+"`limit`, `max_age`, `place`, `curve`, `rules` and `loss_limit`"+`. It stands, from the most to the least
specific, on a job, under `+"`types.NAME`"+` for the jobs of a type, under `+"`queues.NAME`"+`, under `+"`doors.jobs`"+` for all that came in over the
jobs API, and on the server. `+"`doors.grid`"+` is for the tasks of sessions and `+"`doors.inbox`"+` for the messages of inboxes: a session says its limits and its curve
itself, an inbox its limit and its curve, so of these a door decides the rest, such as the rules. Key by key the most specific that gives one wins; a curve and the rules are replaced whole.
[GET /jobs/{id}/explain](protocol/jobs.md#get-jobsidexplain) tells what came of it for a job. What rules are is in
[the protocol](protocol/jobs.md#rules).

### Queues

Under `+"`queues.NAME`"+`. A queue that is not in the file has the defaults, and needs no entry to be used.

At each start a queue that is in the file gets all of its settings from there, and the defaults for what the file does not say of
it. What is changed while the server runs, by `+"`reprise queue set`"+` or the API, holds at once, and for such a queue until the next
start; for a queue that is not in the file it holds until it is changed again. Holds and forced breakers are no settings: they survive a
start in any case.

What comes over the API keeps no server from starting. A queue of the file that is an inbox or a session stays one: an inbox keeps its `+"`order`"+`, `+"`concurrency`"+`,
`+"`on_dead`"+`, `+"`retry`"+`, `+"`fair_share`"+` and `+"`on_full`"+`, and of a session the file sets `+"`paused`"+`, `+"`late_ok`"+`, `+"`max_jobs`"+` and `+"`max_bytes`"+` only. A queue with open
grouped jobs keeps its `+"`order`"+` and `+"`concurrency`"+` where the file would change its `+"`order`"+`, until a start or reload without such jobs. A warning in the log names the queue, the reason and
what was not taken (`+"`not_taken`"+`).

| Key | Kind | Default | Meaning |
| --- | --- | --- | --- |
`, exampleFile)
	for _, s := range jobs.QueueSettings {
		row(&b, code(s.Name), s.Kind, code(s.Show(job.NewQueue(""))), capital(s.Help)+".")
	}
	b.WriteString(`
From ` + "`max_running`" + ` on, the words, what may be left out, the defaults and the bounds are those of the API, where spans are whole
numbers of milliseconds: [Protection](protocol/operators.md#protection). [protection.md](protection.md) tells when to use which.
`)
	b.WriteString(`
### The grid

Under ` + "`grid`" + `, for [sessions of tasks on engines](grid.md). It is read at each start. A session keeps the options that were resolved when it
was opened.

| Key | Kind | Default | Meaning |
| --- | --- | --- | --- |
`)
	for _, s := range grid.BrokerSettings {
		row(&b, code(s.Name), s.Shape, code(s.Default), capital(s.Help)+".")
	}
	row(&b, code("defaults"), "keys", "", "Options of every session that neither the session nor its service type names: [Options](grid.md#options).")
	row(&b, code("services"), "keys", "", "Names of service types, each with the options of its sessions. A session may name only a service that stands here.")
	b.WriteString("\n## Flags of Zizq\n\nA start written for Zizq works unchanged. These flags, and their variables, are accepted and mean nothing here: ")
	var ignored, variables []string
	for _, f := range foreigners {
		switch {
		case f.only:
			variables = append(variables, code(env(envZizqs, f.name)))
		case f.name != "enqueue-commit-mode":
			ignored = append(ignored, code("--"+f.name))
		}
	}
	fmt.Fprintf(&b, "%s; and the variables %s.\n", strings.Join(ignored, ", "), strings.Join(variables, ", "))
	b.WriteString("\n`--enqueue-commit-mode fsync` makes `sync` `always` if it would be `os` through `--default-commit-mode`.\n")
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
