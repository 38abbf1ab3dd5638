package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestFileRefusals(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"is not YAML", "a: 1\n b: 2\n", []string{"reprise.yaml:1: is not YAML: mapping value is not allowed in this context"}},
		{"an open bracket", "server: [\n", []string{"reprise.yaml:1: is not YAML: sequence end token ']' not found"}},
		{"no keys", "7890\n", []string{"reprise.yaml:1: must be keys with values, not a single value"}},
		{"a list", "- server\n", []string{"reprise.yaml:1: must be keys with values, not a list"}},
		{"two documents", "server: {port: 1}\n---\nserver: {port: 2}\n", []string{"reprise.yaml:3: only one document is read"}},
		{"too large", "#" + strings.Repeat("x", fileBytesMax), []string{"reprise.yaml: is larger than 1MiB"}},
		{"too deep", strings.Repeat("[", depthMax+1), []string{"reprise.yaml: has more than 64 open brackets"}},
		{
			"unknown keys", "prot: 1\nserver:\n  Port: 1\n  log-level: info\n  colour: red\nstor:\nretension: {dead: 1d}\nretention: {deed: 1d}\n",
			[]string{
				"reprise.yaml:1: prot: unknown key; did you mean server.port?",
				"reprise.yaml:3: server.Port: unknown key; did you mean server.port?",
				"reprise.yaml:4: server.log-level: unknown key; did you mean server.log_level?",
				"reprise.yaml:5: server.colour: unknown key; known here: host, port, ",
				"reprise.yaml:6: stor: unknown key; did you mean store?",
				"reprise.yaml:7: retension: unknown key; did you mean retention?",
				"reprise.yaml:8: retention.deed: unknown key; did you mean retention.dead?",
			},
		},
		{
			"keys of another section", "server: {sync: os}\nsync: os\n",
			[]string{"server.sync: unknown key; did you mean store.sync?", "reprise.yaml:2: sync: unknown key; did you mean store.sync?"},
		},
		{"a path as a key", "server.port: 1\n", []string{"reprise.yaml:1: server.port: unknown key; write each part of it on a line of its own"}},
		{"twice", "server:\n  port: 1\n  port: 2\n", []string{"reprise.yaml:3: server.port: is there twice, first on line 2"}},
		{"an empty key", "\"\": 1\n", []string{"reprise.yaml:1: a key is empty"}},
		{
			"no value, many values", "server:\n  port:\n  host: [a, b]\n  allow_host: [[a]]\nstore: {sync: {mode: os}}\n",
			[]string{
				"reprise.yaml:2: server.port: has no value; remove the line to use the default",
				"reprise.yaml:3: server.host: must be a single value, not a list",
				"reprise.yaml:4: server.allow_host: each entry must be a single value, not a list",
				"reprise.yaml:5: store.sync: must be a single value, not keys",
			},
		},
		{"a heading with a value", "server: 7890\n", []string{"reprise.yaml:1: server: must have keys, not a single value"}},
		{
			"what YAML has beyond values", "server:\n  port: &p 1\n  host: !!str x\n  <<: {a: 1}\nstore: {sync: *p}\n? retry\n: 1\n",
			[]string{
				"reprise.yaml:2: server.port: YAML's anchor is not read here",
				"reprise.yaml:3: server.host: YAML's tag is not read here",
				"reprise.yaml:4: server: the key must be a name",
				"reprise.yaml:5: store.sync: YAML's alias is not read here",
				"reprise.yaml:6: the key must be a name",
			},
		},
		{
			"references to nothing", "server:\n  host: ${env:GONE}\n  root_dir: ${file:gone}\n  port: ${GONE}\n  log_level: \"${env:\"\n  log_format: ${env:}\n",
			[]string{
				"reprise.yaml:2: server.host: ${env:GONE}: the environment has no such variable",
				"reprise.yaml:3: server.root_dir: ${file:gone}: open gone: file does not exist",
				`reprise.yaml:4: server.port: "${GONE}": use ${env:NAME} or ${file:PATH}`,
				"reprise.yaml:5: server.log_level: ${ is not closed",
				`reprise.yaml:6: server.log_format: "${env:}": use ${env:NAME}`,
			},
		},
		{
			"a policy", "retry:\n  limit: lots\n  rule: []\n  curve:\n    kind: uniform\n    base: 1h\n    cap: 1s\n    step: 3\n  loss_limit: 0\n",
			[]string{
				`reprise.yaml:2: retry.limit: limit "lots"`,
				"reprise.yaml:3: retry.rule: unknown key",
				"reprise.yaml:7: retry.curve.cap: ",
				"reprise.yaml:8: retry.curve.step: ",
				"reprise.yaml:9: retry.loss_limit: ",
			},
		},
		{"a policy that is none", "retry: 25\n", []string{"reprise.yaml:1: retry: it must be an object with keys, not 25"}},
		{"a list that is wrong inside", "retry:\n  curve: {kind: list, delays: [1s, soon]}\n", []string{`reprise.yaml:2: retry.curve.delays[1]: duration "soon"`}},
		{
			"rules that are wrong inside",
			"retry:\n  rules:\n    - {when: {status: 429}, do: retry}\n    - when:\n        status: [500, 6x]\n        message: (\n      do: dead\nqueues:\n  mail:\n    retry:\n      rules: [{do: release}]\n",
			[]string{
				"reprise.yaml:5: retry.rules[1].when.status[1]: 6x must be a number",
				"reprise.yaml:6: retry.rules[1].when.message: error parsing regexp",
				"reprise.yaml:11: queues.mail.retry.rules[0].delay: must be given",
			},
		},
		{"queues without names", "queues: [mail]\n", []string{"reprise.yaml:1: queues: must be names of queues with their settings, not a list"}},
		{
			"queues", "queues:\n  \"a,b\": {}\n  'x*': {}\n  mail: {orde: none, concurrency: -1, paused: maybe, max_jobs: 1.5, max_bytes: big}\n" +
				"  news: {on_dead: die, front_order: fifo, late_ok: always, on_full: drop, run_timeout: -1s, retention: {completed: soon}}\n" +
				"  strict:\n    order: strict\n    concurrency: 2\n  more: strict\n  list: {order: [strict]}\n  empty: {order: }\n",
			[]string{
				"reprise.yaml:2: queues.a,b: the name must not contain ','",
				"reprise.yaml:3: queues.x*: the name must not contain '*' (reserved)",
				"reprise.yaml:4: queues.mail.orde: unknown key; did you mean order?",
				`queues.mail.paused: "maybe" must be true or false`,
				`queues.mail.concurrency: "-1" must be a whole number from 0 to `,
				`queues.mail.max_jobs: "1.5" must be a whole number`,
				`queues.mail.max_bytes: "big" must be a number of bytes or a size`,
				`queues.news.on_dead: "die" must be one of skip, block, park`,
				`queues.news.front_order: "fifo" must be one of by_seq, lifo`,
				`queues.news.late_ok: "always" must be one of until_terminal, never`,
				`queues.news.on_full: "drop" must be one of reject, drop_oldest`,
				`queues.news.run_timeout: duration "-1s": a wait cannot be negative`,
				`queues.news.retention.completed: duration "soon"`,
				"reprise.yaml:8: queues.strict.concurrency: order strict means concurrency 1",
				"reprise.yaml:9: queues.more: must have keys, not a single value",
				"reprise.yaml:10: queues.list.order: must be a single value, not a list",
				"reprise.yaml:11: queues.empty.order: has no value; remove the line to use the default",
			},
		},
		{"a long value", "server: {log_level: " + long + "}\n", []string{`"` + long[:64] + `..." must be one of`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := load(t, nil, nil, c.file)
			wantProblems(t, err, c.want)
		})
	}
}

func TestFilesThatSayNothing(t *testing.T) {
	for _, file := range []string{"\n", "# nothing\n", "---\n", "server:\n#  port: 1\nretry:\nqueues:\n", "{}\n"} {
		cfg, _, err := load(t, nil, nil, file)
		cfg.File = ""
		if err != nil || !reflect.DeepEqual(cfg, Default()) {
			t.Errorf("%q: %v, %+v", file, err, cfg)
		}
	}
}

func TestQueues(t *testing.T) {
	cfg, report, err := load(t, nil, nil, `
queues:
  news:
  mail:
    order: start
    concurrency: 4
    on_dead: park
    front_order: lifo
    paused: true
    retry: {limit: none, curve: {kind: immediate}}
    late_ok: never
    require_token: true
    non_idempotent: true
    max_jobs: 10
    max_bytes: 1KiB
    on_full: drop_oldest
    run_timeout: 1m
    start_timeout: 500
    retention: {completed: 0, dead: 1d}
  1: {order: strict, concurrency: 1}
`)
	if err != nil {
		t.Fatal(err)
	}
	one := job.NewQueue("1")
	one.Order, one.Concurrency = job.OrderStrict, 1
	want := []*job.Queue{one, {
		Name: "mail", Order: job.OrderStart, Concurrency: 4, OnDead: job.DeadPark, FrontOrder: job.FrontLIFO, Paused: true,
		Retry:       job.Retry{Limit: job.LimitOf(0), Place: job.PlaceFront, Curve: &job.Curve{Kind: job.CurveImmediate}},
		LateOKNever: true, RequireToken: true, NonIdempotent: true, MaxJobs: 10, MaxBytes: 1024, OnFull: job.FullDropOldest,
		RunTimeout: job.Minute, StartTimeout: 500, RetainDone: 0, RetainDead: job.Day,
	}, job.NewQueue("news")}
	if !reflect.DeepEqual(cfg.Queues, want) {
		for i := range want {
			t.Errorf("got  %+v\nwant %+v", *cfg.Queues[i], *want[i])
		}
	}
	v := report.of("queues.mail.start_timeout")
	if v.Value != "500ms" || v.Origin.String() != "file reprise.yaml:18" {
		t.Errorf("reported as %+v", v)
	}
	if report.of("queues.news.order").Name != "" {
		t.Error("a default of a queue is reported as if somebody had chosen it")
	}
}

func TestDefaultRetryFromAllSources(t *testing.T) {
	poly := func(base job.Millis, exponent float64, spread job.Millis) job.Curve {
		return job.Curve{Kind: job.CurvePolynomial, Base: base, Exponent: exponent, Spread: spread}
	}
	for _, c := range []struct {
		name  string
		args  []string
		file  string
		want  job.Curve
		limit job.Limit
	}{
		{"nothing", nil, "", poly(15_000, 4, 30_000), job.LimitOf(25)},
		{
			"flags",
			[]string{"--default-retry-limit=3", "--default-backoff-base=1s", "--default-backoff-exponent=0", "--default-backoff-jitter=0"},
			"",
			poly(1000, 0, 0), job.LimitOf(3),
		},
		{"a curve of the file has the defaults of its kind", nil, "retry: {curve: {kind: polynomial}}", poly(15_000, 4, 30_000), job.LimitOf(25)},
		{"two in the file, one in a flag", []string{"--default-backoff-base=1s"}, "retry: {curve: {kind: polynomial, exponent: -1, jitter: 0}}", poly(1000, -1, 0), job.LimitOf(25)},
		{"a negative exponent, as on the wire", []string{"--default-backoff-base=1s", "--default-backoff-exponent=-1", "--default-backoff-jitter=0"}, "", poly(1000, -1, 0), job.LimitOf(25)},
		{"the limit of the file", nil, "retry: {limit: unlimited}", poly(15_000, 4, 30_000), job.Unlimited()},
		{"a flag over the limit of the file", []string{"--default-retry-limit=none"}, "retry: {limit: 7}", poly(15_000, 4, 30_000), job.LimitOf(0)},
		{
			"the file and a flag are three together",
			[]string{"--default-backoff-base=9s"},
			"retry: {curve: {kind: polynomial, exponent: 2, jitter: 1s}}", poly(9000, 2, 1000), job.LimitOf(25),
		},
		{
			"three flags replace a curve of another kind",
			[]string{"--default-backoff-base=9s", "--default-backoff-exponent=1", "--default-backoff-jitter=0"},
			"retry: {curve: {kind: uniform}}", poly(9000, 1, 0), job.LimitOf(25),
		},
		{"another kind", nil, "retry: {curve: {kind: constant, delay: 3s}}", job.Curve{Kind: job.CurveConstant, Delay: 3000}, job.LimitOf(25)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, report, err := load(t, c.args, nil, c.file)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*cfg.Retry.Curve, c.want) || cfg.Retry.Limit != c.limit || cfg.Retry.Place != job.PlaceKeep || cfg.Retry.LossLimit != job.LimitOf(20) {
				t.Errorf("%+v, curve %+v", cfg.Retry, *cfg.Retry.Curve)
			}
			if err := cfg.Validate(); err != nil {
				t.Error(err)
			}
			var shown job.Retry
			if err := json.Unmarshal([]byte(report.of("retry").Value), &shown); err != nil || !reflect.DeepEqual(shown, cfg.Retry) {
				t.Errorf("reported as %s, %v", report.of("retry").Value, err)
			}
		})
	}
}

func TestRulesAreReadFromTheFileAsFromTheWire(t *testing.T) {
	cfg, report, err := load(t, nil, nil, `
retry:
  rules:  # those of spec/retry.md
    - {when: {status: [429, 503]}, do: retry, respect_retry_after: true}
    - {when: {error_type: ValidationError}, do: dead}
    - {when: {message: "lock not free"}, do: release, delay: 2s}
    - when: {status: 5xx, exit_code: 64-78, timeout: true}
      do: hold
      delay: 1m
queues:
  calm: {retry: {rules: []}}
`)
	if err != nil {
		t.Fatal(err)
	}
	want, err := job.ParseRetry([]byte(`{"rules": [
		{"when": {"status": [429, 503]}, "do": "retry"}, {"when": {"error_type": ["ValidationError"]}, "do": "dead"},
		{"when": {"message": "lock not free"}, "do": "release", "delay": 2000},
		{"when": {"status": "500-599", "exit_code": ["64-78"], "timeout": true}, "do": "hold", "delay": "60s"}]}`))
	if err != nil || !reflect.DeepEqual(cfg.Retry.Rules, want.Rules) {
		t.Errorf("%+v, %v", cfg.Retry.Rules, err)
	}
	if own := cfg.Queues[0].Retry.Rules; own == nil || len(*own) != 0 {
		t.Errorf("the queue without rules has %+v", own)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	var shown job.Retry
	if err := json.Unmarshal([]byte(report.of("retry").Value), &shown); err != nil || !reflect.DeepEqual(shown, cfg.Retry) {
		t.Errorf("reported as %s, %v", report.of("retry").Value, err)
	}
}

func TestTypesAndDoorsHavePolicies(t *testing.T) {
	cfg, report, err := load(t, nil, nil, `
types:
  mail.send: {retry: {limit: 3, rules: [{when: {status: 404}, do: dead}]}}
  quiet:
doors:
  jobs:
    retry: {loss_limit: 5}
  grid: {retry: {loss_limit: 6}}
  inbox: {retry: {loss_limit: 7}}
`)
	if err != nil {
		t.Fatal(err)
	}
	for door, want := range map[job.Door]uint32{job.DoorGrid: 6, job.DoorInbox: 7} {
		if r := cfg.Doors[door]; r == nil || r.LossLimit != job.LimitOf(want) {
			t.Errorf("the policy of %s is %+v", door, r)
		}
	}
	mail, door := cfg.Types["mail.send"], cfg.Doors[job.DoorJobs]
	if mail == nil || mail.Limit != job.LimitOf(3) || len(*mail.Rules) != 1 || door == nil || door.LossLimit != job.LimitOf(5) || cfg.Types["quiet"] != nil {
		t.Errorf("%+v %+v %+v", mail, door, cfg.Types)
	}
	for name, want := range map[string]string{
		"types.mail.send.retry": `{"limit":3,"rules":[{"when":{"status":[404]},"do":"dead"}]}`, "doors.jobs.retry": `{"loss_limit":5}`,
	} {
		if v := report.of(name); v.Value != want || v.Origin.From != FromFile {
			t.Errorf("%s is reported as %+v", name, v)
		}
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	mail.MaxAge = -1
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "types.mail.send.retry: ") {
		t.Error(err)
	}
}

func TestEverythingWrongWithTypesAndDoorsIsTold(t *testing.T) {
	_, _, err := load(t, nil, nil, `types:
  "a*": {retry: {limit: 1}}
  b: {retry: {limit: -1, curve: {kind: uniform, base: 1m, cap: 1s}}}
  c: {limit: 3}
  d: 7
doors:
  pipeline: {retry: {limit: 1}}
  jobs: {retry: {rules: [{do: dead}, {do: wait}]}}
`)
	for _, want := range []string{
		":2: types.a*: the name must not contain '*'", ":3: types.b.retry.limit: ", ":3: types.b.retry.curve.cap: ",
		":4: types.c.limit: unknown key", ":5: types.d: must have keys", ":7: doors.pipeline: is no door of this version; it has jobs, grid and inbox",
		":8: doors.jobs.retry.rules[1].do: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestBackoffCountIsForCurvesThatNameNone(t *testing.T) {
	cfg, _, err := load(t, []string{"--backoff-count=including"}, nil, `
types:
  typed: {retry: {curve: {kind: polynomial}}}
queues:
  silent: {retry: {curve: {kind: polynomial}}}
  own: {retry: {curve: {kind: polynomial, count: previous}}}
  other: {retry: {curve: {kind: constant}}}
  rules:
    retry:
      rules:
        - {when: {status: 1}, do: retry, curve: {kind: polynomial}}
        - {when: {status: 2}, do: retry, curve: {kind: polynomial, count: previous}}
        - {do: retry}
`)
	if err != nil {
		t.Fatal(err)
	}
	other, own, silent := cfg.Queues[0].Retry.Curve, cfg.Queues[1].Retry.Curve, cfg.Queues[3].Retry.Curve
	if cfg.BackoffCount != job.CountIncluding || cfg.Retry.Curve.Count != job.CountIncluding ||
		cfg.Types["typed"].Curve.Count != job.CountIncluding || silent.Count != job.CountIncluding || own.Count != job.CountPrevious || other.Count != 0 {
		t.Errorf("server %s, silent %s, own %s", cfg.Retry.Curve.Count, silent.Count, own.Count)
	}
	rules := *cfg.Queues[2].Retry.Rules
	if rules[0].Curve.Count != job.CountIncluding || rules[1].Curve.Count != job.CountPrevious {
		t.Errorf("in rules %s and %s", rules[0].Curve.Count, rules[1].Curve.Count)
	}
	cfg, _, err = load(t, []string{"--backoff-count=including"}, nil, "retry: {curve: {kind: polynomial, count: previous}}")
	if err != nil || cfg.Retry.Curve.Count != job.CountPrevious {
		t.Error(cfg.Retry.Curve.Count, err)
	}
}

func TestReferences(t *testing.T) {
	files := map[string]string{
		"/etc/reprise/reprise.yaml": `
server:
  host: ${file:host}
  port: ${env:PORT}
  root_dir: /data/${env:NAME}/$${env:NAME}
  allow_host: ["${file:/run/name}"]
`,
		"/etc/reprise/host": "::1\r\n",
		"/run/name":         "queue.example\n",
	}
	cfg, report, err := loadFiles(t, []string{"-c", "/etc/reprise/reprise.yaml"}, []string{"PORT=99", "NAME=secret"}, files)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "::1" || cfg.Port != 99 || cfg.RootDir != "/data/secret/${env:NAME}" || cfg.AllowHost[0] != "queue.example" {
		t.Errorf("%+v", cfg)
	}
	for _, name := range []string{"host", "port", "root-dir", "allow-host"} {
		if v := report.of(name); v.Value != masked || v.Origin.From != FromFile {
			t.Errorf("%s is reported as %+v", name, v)
		}
	}
}

// What stands behind a reference is told nowhere: not in the report, and not
// in a problem with it.
func TestReferencesAreMasked(t *testing.T) {
	cfg, report, err := load(t, nil, []string{"A=hunter2", "B=7h"}, `
server: {port: "${env:A}", allow_host: ["${env:A}:80"]}
retry: {max_age: "${env:B}", limit: "${env:A}", curve: {kind: uniform, base: "${env:B}", cap: 1s}}
queues:
  mail: {order: "${env:A}", max_jobs: "${env:A}"}
  news: {run_timeout: "${env:B}", retry: {max_age: "${env:B}"}}
`)
	wantProblems(t, err, []string{
		"server.port: the value behind the reference is not allowed here; expected: number",
		"server.allow_host: the value behind the reference is not allowed here",
		"retry.limit: the value behind the reference is not allowed here",
		"retry.curve.cap: the value behind the reference is not allowed here",
		"queues.mail.order: the value behind the reference is not allowed here; expected: none|start|strict",
		"queues.mail.max_jobs: the value behind the reference is not allowed here; expected: number",
	})
	if news := cfg.Queues[1]; news.RunTimeout != 7*job.Hour || news.Retry.MaxAge != 7*job.Hour {
		t.Errorf("%+v", news)
	}
	b, jsonErr := json.Marshal(report)
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	var table strings.Builder
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{err.Error(), string(b), table.String()} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "7h") {
			t.Errorf("the secret is shown in: %s", text)
		}
	}
	if !strings.Contains(table.String(), "queues.news.run_timeout          file reprise.yaml:6  "+masked) {
		t.Errorf("the table is\n%s", table.String())
	}
}

// FuzzConfigYAML: no file makes Load panic, and what it accepts is valid and
// is reported in words that, given as flags, mean the same.
func FuzzConfigYAML(f *testing.F) {
	for _, seed := range []string{
		exampleFile,
		protectedFile,
		"queues: {a: {rate: {per_second: 1e-9}, fair_share: {weights: {\"a\\\"]\": 2000}}}}\n",
		"server: {port: 0, host: \"::1\", allow_host: [a, b]}\nstore: {disk_reserve: 0.5%, cache_size: 1.5GiB}\n",
		"retry:\n  limit: none\n  place: back\n  curve: {kind: list, delays: [1s, 2m, P1D], jitter: ±10%}\n",
		"queues:\n  a: {order: strict, concurrency: 1, retry: {curve: {kind: immediate}}}\n  b: {paused: yes}\n",
		"server:\n  root_dir: |\n    /data\n  log_level: 'debug'\n",
		"a: &x [1, *x]\n? b\n: !!str c\n<<: {}\n---\n\"\\x00\": ${env:A}$${b}${\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		cfg, report, err := loadFiles(t, []string{"-c", "reprise.yaml"}, []string{"A=1"}, map[string]string{"reprise.yaml": string(file)})
		if err != nil {
			if err.Error() == "" || len(report.Values) == 0 {
				t.Errorf("refused without a word: %q", err)
			}
			return
		}
		if err := cfg.Validate(); err != nil {
			t.Fatalf("loaded, but %s", err)
		}
		// Policies, queues and what is masked are not flags; they stay as they are.
		shown := func(r Report, name string) string {
			if v := r.of(name).Value; v != masked && v != notThere && name != "config" {
				return v
			}
			return ""
		}
		var args []string
		for _, s := range settings {
			if v := shown(report, s.name); v != "" {
				args = append(args, "--"+s.name+"="+v)
			}
		}
		_, again, err := load(t, args, nil, "")
		if err != nil {
			t.Fatalf("what is reported is refused: %s", err)
		}
		for _, s := range settings {
			if v := shown(report, s.name); v != "" && v != shown(again, s.name) {
				t.Errorf("%s is %q, and given as a flag %q", s.name, v, shown(again, s.name))
			}
		}
	})
}
