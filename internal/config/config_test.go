package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// loadFiles loads a configuration from flags, environment and files by path.
func loadFiles(t testing.TB, args, environ []string, files map[string]string) (Config, Report, error) {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(flags, environ, func(name string) ([]byte, error) {
		content, ok := files[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(content), nil
	})
}

// load does so with a configuration file, if there is anything in it.
func load(t testing.TB, args, environ []string, file string) (Config, Report, error) {
	t.Helper()
	if file != "" {
		args = append([]string{"-c", "reprise.yaml"}, args...)
	}
	return loadFiles(t, args, environ, map[string]string{"reprise.yaml": file})
}

func (r Report) of(name string) Value {
	i := slices.IndexFunc(r.Values, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return Value{}
	}
	return r.Values[i]
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	want := Config{
		Listening: Listening{
			Listener: Listener{Host: "127.0.0.1", Port: 7890}, TCP: true, AdminListener: Listener{Host: "127.0.0.1", Port: 8901},
			ShutdownTimeout: 10 * time.Second,
		},
		Limits: Limits{
			BodyBytesMax: 64 << 20, InflightBytesMax: 256 << 20, UploadRate: 4 << 10, JQMemory: 512 << 20,
			MaxConnections: 1 << 16, MaxPerAddress: 1 << 14, MaxStreams: 1 << 16, MaxQueues: 10_000, MetricsQueues: 200,
		},
		Holders: Holders{
			TCPUserTimeout: 30 * time.Second, HeartbeatInterval: 3 * time.Second, ReattachWindow: 30 * job.Second, IdempotencyWindow: job.Hour,
		},
		Storage: Storage{
			RootDir: "./reprise-root", Sync: SyncAlways, SyncInterval: 100 * time.Millisecond,
			CacheBytes: 256_000_000, DiskReserve: DiskReserve{Bytes: 256 << 20},
		},
		Policies: Policies{Retry: job.DefaultRetry(), RetainDone: rule.RetainRecent, RetainDead: 7 * job.Day},
		Logging:  Logging{LogFormat: LogAuto, LogLevel: slog.LevelInfo},
		Contents: Contents{Grid: grid.Config{HeartbeatInterval: 5 * job.Second, LostAfter: 15 * job.Second, TaskBytesMax: 1 << 20}},
	}
	cfg, report, err := load(t, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got  %+v\nwant %+v", cfg, want)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	for _, v := range report.Values {
		if v.Origin.From != FromDefault {
			t.Errorf("%s comes from %s", v.Name, v.Origin)
		}
	}
}

func TestDefaultsDoNotShareTheirCurve(t *testing.T) {
	Default().Retry.Curve.Base = 1
	if Default().Retry.Curve.Base != 15*job.Second {
		t.Error("a change of one default configuration is seen in the next")
	}
}

func TestPrecedence(t *testing.T) {
	const file = "server:\n  port: 4\n"
	for _, c := range []struct {
		name    string
		args    []string
		environ []string
		file    string
		want    int
		origin  string
	}{
		{"nobody says anything", nil, nil, "", 7890, "default"},
		{"the file", nil, nil, file, 4, "file reprise.yaml:2"},
		{"Zizq's variable beats the file", nil, []string{"ZIZQ_PORT=3"}, file, 3, "environment ZIZQ_PORT"},
		{"our variable beats Zizq's", nil, []string{"ZIZQ_PORT=3", "REPRISE_PORT=2"}, file, 2, "environment REPRISE_PORT"},
		{"a flag beats all", []string{"--port=1"}, []string{"REPRISE_PORT=2"}, file, 1, "flag --port"},
		{"the last of two flags counts", []string{"--port=1", "--port", "5"}, nil, "", 5, "flag --port"},
		{"an empty variable is not set", nil, []string{"REPRISE_PORT="}, file, 4, "file reprise.yaml:2"},
		{"Kubernetes' variable is ignored", nil, []string{"REPRISE_PORT=tcp://10.0.0.1:7890"}, file, 4, "file reprise.yaml:2"},
		{"and does not hide Zizq's", nil, []string{"REPRISE_PORT=udp://10.0.0.1:7890", "ZIZQ_PORT=3"}, file, 3, "environment ZIZQ_PORT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, report, err := load(t, c.args, c.environ, c.file)
			if err != nil {
				t.Fatal(err)
			}
			if v := report.of("port"); cfg.Port != c.want || v.Origin.String() != c.origin || v.Value != fmt.Sprint(c.want) {
				t.Errorf("port %d, reported as %+v", cfg.Port, v)
			}
		})
	}
}

func TestEverySettingHasEveryWay(t *testing.T) {
	values := map[string]string{
		"config": "reprise.yaml", "host": "::1", "port": "1234", "insecure": "true", "allow-host": "a.example,b.example",
		"tcp": "false", "unix": "/run/r.sock", "behind-tls-proxy": "true", "max-connections": "99", "max-connections-per-address": "9", "max-streams": "999",
		"tls-cert": "cert.pem", "tls-key": "key.pem", "tls-client-ca": "ca.pem",
		"admin": "true", "admin-host": "::1", "admin-port": "4321", "admin-tls-cert": "cert.pem", "admin-tls-key": "key.pem", "admin-tls-client-ca": "ca.pem",
		"tcp-user-timeout": "1m",
		"pprof":            "true", "guard": "true", "strict": "true", "null": "true", "shutdown-timeout": "5s", "body-max": "1MiB", "max-inflight-bytes": "1GiB",
		"min-upload-rate": "1KiB", "memory-limit": "2GiB", "jq-memory": "100MiB",
		"global-in-flight-limit": "1024", "max-queues": "7", "metrics-queues": "9", "heartbeat-interval": "250ms", "reattach-window": "1m",
		"idempotency-window": "1d", "root-dir": "/data", "sync": "interval", "sync-interval": "20ms", "cache-size": "1GB",
		"disk-reserve": "2%", "default-retry-limit": "unlimited", "default-backoff-exponent": "2.5",
		"default-backoff-base": "12.5s", "default-backoff-jitter": "1s", "backoff-count": "including",
		"secrets-dir": "/run/secrets", "default-completed-job-retention": "1h", "default-dead-job-retention": "30d", "log-format": "json", "log-level": "debug",
		"egress-allow": "*.example.com:443,10.0.0.0/8",
	}
	var args, environ []string
	for _, s := range settings {
		value, ok := values[s.name]
		if !ok {
			t.Fatalf("the test has no value for %s", s.name)
		}
		args = append(args, "--"+s.name+"="+value)
		environ = append(environ, env(envZizqs, s.name)+"="+value)
	}
	const file = `
server: {host: "::1", port: 1234, insecure: yes, allow_host: [a.example, b.example], tls_cert: cert.pem,
  tcp: no, unix: /run/r.sock, behind_tls_proxy: yes, max_connections: 99, max_connections_per_address: 9, max_streams: 999,
  tls_key: key.pem, tls_client_ca: ca.pem, admin: true, admin_host: "::1", admin_port: 4321, admin_tls_cert: cert.pem, admin_tls_key: key.pem, admin_tls_client_ca: ca.pem,
  tcp_user_timeout: 60s, pprof: on, guard: on, strict: on, shutdown_timeout: 5s, body_max: 1MiB,
  min_upload_rate: 1KiB, memory_limit: 2GiB, jq_memory: 100MiB,
  max_inflight_bytes: 1GiB, global_in_flight_limit: 1024, max_queues: 7, metrics_queues: 9, heartbeat_interval: 250, reattach_window: 1m,
  idempotency_window: P1D, root_dir: /data, backoff_count: including, log_format: json, log_level: debug}
store: {sync: interval, sync_interval: 20ms, cache_size: 1GB, disk_reserve: 2%}
retry: {limit: unlimited, curve: {kind: polynomial, exponent: 2.5, base: 12.5s, jitter: 1s}}
retention: {completed: 1h, dead: 30d}
egress: {allow: ["*.example.com:443", 10.0.0.0/8], secrets_dir: /run/secrets}
`
	byFlag, _, err := loadFiles(t, args, nil, map[string]string{"reprise.yaml": ""})
	if err != nil {
		t.Fatal(err)
	}
	byEnv, _, err := loadFiles(t, nil, environ, map[string]string{"reprise.yaml": ""})
	if err != nil {
		t.Fatal(err)
	}
	byFile, report, err := load(t, []string{"--null"}, nil, file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(byFlag, byEnv) || !reflect.DeepEqual(byFlag, byFile) {
		t.Errorf("flags %+v\nenvironment %+v\nfile %+v", byFlag, byEnv, byFile)
	}
	for name, value := range values {
		v := report.of(name)
		if v.Value != value || v.Origin.From == FromDefault {
			t.Errorf("%s is reported as %+v, want %s", name, v, value)
		}
	}
	doc, err := os.ReadFile(configDoc)
	if err != nil {
		t.Fatal(err)
	}
	_, defaults, err := load(t, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if s.hidden {
			continue
		}
		row := fmt.Sprintf("--%s` | %s | %s | %s |", s.name, code(s.yaml), strings.ReplaceAll(s.kind, "|", `\|`), code(s.def))
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/config.md has no row %s", row)
		}
		if got := defaults.of(s.name).Value; got != s.def {
			t.Errorf("%s is %q by default, and is said to be %q", s.name, got, s.def)
		}
	}
}

// A setting of a queue means the same in the file, for `reprise queue set` and in the
// API, and docs/config.md tells of it.
func TestEverySettingOfAQueueMeansTheSameEverywhere(t *testing.T) {
	values := map[string]string{
		"paused": "yes", "order": "strict", "concurrency": "1", "on_dead": "park", "front_order": "lifo", "late_ok": "never", "require_token": "true",
		"non_idempotent": "on", "max_jobs": "10", "max_bytes": "1GiB", "on_full": "drop_oldest", "run_timeout": "1m30s", "start_timeout": "500",
		"retention.completed": "0", "retention.dead": "7d", "retry": `{"limit":3}`, "max_running": "7", "rate": "50", "group_rate": `{"per_second":2,"burst":9}`,
		"breaker": "on", "group_breaker": `{"consecutive":5}`, "retry_budget": "on", "fair_share": `{"weights":{"gold":3}}`,
	}
	doc, err := os.ReadFile(configDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range jobs.QueueSettings {
		text := values[s.Name]
		heading, leaf, isBelow := strings.Cut(s.Name, ".")
		line := heading + ": " + text
		if isBelow {
			line = heading + ": {" + leaf + ": " + text + "}"
		}
		cfg, _, err := load(t, nil, nil, "queues:\n  q:\n    "+line+"\n")
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		body, err := ReadQueueSettings(map[string]string{s.Name: text})
		if err != nil {
			t.Errorf("%s=%s: %v", s.Name, text, err)
		}
		wired, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		q := job.NewQueue("q")
		if err := jobs.ReadQueue(wired, q); err != nil || !reflect.DeepEqual(q, cfg.Queues[0]) || reflect.DeepEqual(q, job.NewQueue("q")) {
			t.Errorf("%s: the command says %s, %v, which is\n%+v, and the file\n%+v", line, wired, err, q, cfg.Queues[0])
		}
		if row := fmt.Sprintf("\n| %s | %s | %s |", code(s.Name), strings.ReplaceAll(s.Kind, "|", `\|`), code(s.Show(job.NewQueue("q")))); !strings.Contains(string(doc), row) {
			t.Errorf("docs/config.md has no row %s", row)
		}
	}
}

// Every sentence a person can be refused with. The key says which refusal it
// is; want is all of them, in order.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		environ []string
		file    string
		want    []string
	}{
		{
			"values out of bounds, told with flag and variable",
			[]string{"--port=70000", "--sync=never", "--body-max=1", "--heartbeat-interval=1ms"},
			[]string{"REPRISE_MAX_QUEUES=many", "ZIZQ_LOG_LEVEL=loud"},
			"",
			[]string{
				`--port: "70000" must be a whole number from 0 to 65535`,
				`--body-max: "1" must be from 1KiB to 2GiB`,
				`REPRISE_MAX_QUEUES: "many" must be a whole number from 1 to 1000000`,
				`--heartbeat-interval: "1ms" must be from 10ms to 1h`,
				`--sync: "never" must be one of always, interval, os`,
				`ZIZQ_LOG_LEVEL: "loud" must be one of trace, debug, info, warn, error`,
			},
		},
		{
			"hosts that are none",
			[]string{"--host=localhost:80", "--allow-host=http://x,a b,ok.example"},
			nil, "",
			[]string{
				`--host: "localhost:80" must be a host name or an IP address, without a scheme or a port`,
				`--allow-host: "http://x" must be a host name or an IP address, without a scheme or a port`,
				`"a b" must be a host name or an IP address`,
			},
		},
		{
			"a shell's home directory", nil, nil, "server:\n  root_dir: ~/queue\n",
			[]string{`reprise.yaml:2: server.root_dir: "~/queue": ~ is expanded by shells only`},
		},
		{
			"beyond loopback",
			[]string{"--host=0.0.0.0", "--pprof"},
			nil, "",
			[]string{
				"--host: 0.0.0.0 can be reached from other machines, and there is no TLS and no token: everybody who can connect could read and change all work; give tls-cert",
				"--pprof: profiles are served on loopback only, and host is 0.0.0.0",
			},
		},
		{
			"beyond loopback by a name", nil, nil, "server: {host: queue.example}\n",
			[]string{"reprise.yaml:1: server.host: queue.example can be reached from other machines"},
		},
		{
			"profiles for everybody",
			[]string{"--host=::", "--pprof", "--insecure"},
			nil, "",
			[]string{"--pprof: profiles are served on loopback only"},
		},
		{
			"a request that would never get in",
			[]string{"--body-max=1GiB"},
			nil, "",
			[]string{"max-inflight-bytes: 256MiB is below body-max 1GiB"},
		},
		{
			"more queues than allowed",
			[]string{"--max-queues=1"},
			nil, "queues: {a: , b: }\n",
			[]string{"--max-queues: 1, but 2 queues have settings"},
		},
		{
			"a certificate without its key",
			[]string{"--tls-cert=cert.pem"},
			nil, "",
			[]string{"--tls-cert: needs tls-key, the private key of that certificate"},
		},
		{
			"a key without its certificate", nil,
			[]string{"ZIZQ_TLS_KEY=key.pem"},
			"",
			[]string{"ZIZQ_TLS_KEY: needs tls-cert, the certificate of that key"},
		},
		{
			"certificates of clients without TLS", nil, nil, "server:\n  tls_client_ca: ca.pem\n",
			[]string{"reprise.yaml:2: server.tls_client_ca: asks for certificates of clients, which there are with TLS only"},
		},
		{
			"the same setting under two names",
			[]string{"--sync=os", "--default-commit-mode=fsync"},
			nil, "",
			[]string{"--default-commit-mode: is the same setting as --sync; give one of them"},
		},
		{
			"Zizq's words only under Zizq's names",
			[]string{"--default-commit-mode=always"},
			[]string{"ZIZQ_ENQUEUE_COMMIT_MODE=no"},
			"",
			[]string{
				`--default-commit-mode: "always" must be one of buffered, fsync`,
				`ZIZQ_ENQUEUE_COMMIT_MODE: "no" must be one of buffered, fsync`,
			},
		},
		{
			"one of three backoff numbers",
			[]string{"--default-backoff-base=5s"},
			nil, "",
			[]string{"--default-backoff-base: the default backoff needs exponent, base and jitter together; missing: --default-backoff-exponent, --default-backoff-jitter"},
		},
		{
			"two of three, from two sources",
			[]string{"--default-backoff-base=5s"},
			[]string{"ZIZQ_DEFAULT_BACKOFF_JITTER=1s"},
			"",
			[]string{"--default-backoff-base: the default backoff needs exponent, base and jitter together; missing: --default-backoff-exponent"},
		},
		{
			"two of three, one of them in the file",
			[]string{"--default-backoff-base=5s"},
			nil,
			"retry: {curve: {kind: polynomial, exponent: 3}}\n",
			[]string{"missing: --default-backoff-jitter"},
		},
		{
			"two of three in the file alone", nil, nil,
			"retry: {curve: {kind: polynomial, exponent: 3, base: 5s}}\n",
			[]string{"reprise.yaml:1: retry.curve: the default backoff needs exponent, base and jitter together; missing: --default-backoff-jitter"},
		},
		{
			"incomplete curves of others than the server", nil, nil,
			"types:\n  t: {retry: {curve: {kind: polynomial, base: 1s}}}\nqueues:\n  q:\n    retry:\n      rules: [{when: {status: 1}, do: retry, curve: {kind: polynomial, exponent: 2}}]\n",
			[]string{
				"reprise.yaml:2: types.t.retry.curve: a polynomial curve needs exponent, base and jitter together, or none of them; missing: exponent, jitter",
				"reprise.yaml:6: queues.q.retry.rules[0].curve: a polynomial curve needs exponent, base and jitter together, or none of them; missing: base, jitter",
			},
		},
		{
			"one of three over another curve",
			[]string{"--default-backoff-base=5s"},
			nil,
			"retry: {curve: {kind: uniform, base: 3s}}\n",
			[]string{"missing: --default-backoff-exponent, --default-backoff-jitter"},
		},
		{
			"a negative base, but an exponent may be negative",
			[]string{"--default-backoff-exponent=-1", "--default-backoff-base=-5s", "--default-backoff-jitter=1"},
			nil, "",
			[]string{
				`--default-backoff-base: duration "-5s": a wait cannot be negative`,
			},
		},
		{
			"the file's problems in its order, then the others",
			[]string{"--port=x"},
			nil,
			"queues:\n  b: {order: any}\nserver:\n  prot: 1\nstore: {sync: now}\nretry: {limit: -1}\n",
			[]string{
				`reprise.yaml:2: queues.b.order: "any" must be one of none, start, strict`,
				"reprise.yaml:4: server.prot: unknown key; did you mean server.port?",
				`reprise.yaml:5: store.sync: "now" must be one of always, interval, os`,
				"reprise.yaml:6: retry.limit: ",
				`--port: "x" must be a whole number from 0 to 65535`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := load(t, c.args, c.environ, c.file)
			wantProblems(t, err, c.want)
		})
	}
}

func wantProblems(t *testing.T, err error, want []string) {
	t.Helper()
	got := []string{""}
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	if one, ok := strings.CutPrefix(got[0], "the configuration has a problem: "); ok {
		got = append([]string{""}, append([]string{one}, got[1:]...)...)
	}
	got = got[1:]
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("problem %d is\n     %s\nwant %s", i, got[i], want[i])
		}
	}
}

func TestMissingFile(t *testing.T) {
	for _, c := range []struct{ arg, variable, want string }{
		{"--config=gone.yaml", "", "--config: reading the configuration: open gone.yaml: file does not exist"},
		{"--port=1", "REPRISE_CONFIG=gone.yaml", "REPRISE_CONFIG: reading the configuration: open gone.yaml"},
	} {
		_, _, err := loadFiles(t, []string{c.arg}, []string{c.variable}, nil)
		wantProblems(t, err, []string{c.want})
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var ps Problems
	for i := range 2 * problemsMax {
		ps.add("here", "%d", i)
	}
	if lines := strings.Split(ps.Error(), "\n"); len(lines) != problemsMax+2 || lines[len(lines)-1] != "  and 50 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.8.9.1": true, "::1": true, "localhost": true, "::ffff:127.0.0.1": true,
		"0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example": false, "127.1": false,
	} {
		if loopback(host) != want {
			t.Errorf("loopback(%q) is %v", host, !want)
		}
	}
}

func TestInsecureListensAnywhereAndSaysSo(t *testing.T) {
	cfg, report, err := load(t, []string{"--host=0.0.0.0", "--insecure"}, nil, "")
	if err != nil || cfg.Host != "0.0.0.0" {
		t.Fatal(cfg.Host, err)
	}
	if len(report.Notices) != 1 || report.Notices[0].Level != slog.LevelWarn {
		t.Errorf("notices %v", report.Notices)
	}
}

func TestZizqStartsWork(t *testing.T) {
	cfg, report, err := load(t, []string{
		"--no-admin", "--admin-host", "127.0.0.1", "--admin-port=8901", "-k", "@licence", "--enqueue-batch-size=5", "--log-to-disk",
		"--log-dir=/var/log", "--reaper-check-interval=30s", "--complete-batch-size", "5", "-l", "1024", "--default-commit-mode", "fsync",
	}, []string{"ZIZQ_JOURNAL_SIZE=64MiB", "ZIZQ_ROOT_DIR=/zizq", "ZIZQ_DEFAULT_BACKOFF_BASE=1", "ZIZQ_DEFAULT_BACKOFF_EXPONENT=2", "REPRISE_DEFAULT_BACKOFF_JITTER=3"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.GlobalInFlightLimit != 1024 || cfg.RootDir != "/zizq" || cfg.Sync != SyncAlways {
		t.Errorf("%+v", cfg)
	}
	if c := *cfg.Retry.Curve; c.Base != 1 || c.Exponent != 2 || c.Spread != 3 {
		t.Errorf("curve %+v", c)
	}
	if cfg.Admin {
		t.Error("--no-admin is not heard")
	}
	if len(report.Notices) != 7 {
		t.Errorf("%d notices: %v", len(report.Notices), report.Notices)
	}
	for _, n := range report.Notices {
		if n.Level != slog.LevelDebug || strings.Contains(n.Text, "licence") {
			t.Errorf("notice %+v", n)
		}
	}
}

// docs/jobs.md, "How long a finished job is kept".
func TestFinishedJobsLeaveAtOnceAsInZizq(t *testing.T) {
	for _, c := range []struct {
		args, environ []string
		file          string
		want          job.Millis
	}{
		{want: rule.RetainRecent},
		{args: []string{"--root-dir=/q", "--log-format=json"}, environ: []string{"ZIZQ_URL=http://localhost:7890"}, want: rule.RetainRecent},
		{environ: []string{"ZIZQ_PORT=tcp://10.0.0.1:7890", "ZIZQ_BOGUS=1"}, want: rule.RetainRecent},
		{environ: []string{"ZIZQ_JOURNAL_SIZE=64MiB"}},
		{args: []string{"--no-admin"}},
		{args: []string{"--admin-port=0"}},
		{args: []string{"--admin"}, want: rule.RetainRecent},
		{args: []string{"--default-commit-mode=fsync"}},
		{environ: []string{"ZIZQ_PORT=7891"}},
		{environ: []string{"ZIZQ_PORT=7891"}, file: "retention: {completed: recent}", want: rule.RetainRecent},
		{args: []string{"--no-admin", "--default-completed-job-retention=1h"}, want: job.Hour},
		{args: []string{"--default-completed-job-retention=0"}},
	} {
		cfg, _, err := load(t, c.args, c.environ, c.file)
		if err != nil || cfg.RetainDone != c.want {
			t.Errorf("%v %v %s: %d, %v", c.args, c.environ, c.file, cfg.RetainDone, err)
		}
	}
}

func TestTheAdminListenerIsOnWhereItIsNamed(t *testing.T) {
	for _, c := range []struct {
		args, environ []string
		file          string
		on            bool
		port          int
	}{
		{nil, nil, "", false, 8901},
		{[]string{"--admin"}, nil, "", true, 8901},
		{[]string{"--admin-port=0"}, nil, "", true, 0},
		{nil, []string{"ZIZQ_ADMIN_HOST=localhost"}, "", true, 8901},
		{nil, []string{"REPRISE_ADMIN_PORT=9000"}, "", true, 9000},
		{nil, nil, "server: {admin_port: 9000}", true, 9000},
		{nil, nil, "server: {admin: true}", true, 8901},
		{[]string{"--no-admin"}, []string{"ZIZQ_ADMIN_PORT=9000"}, "", false, 9000},
		{[]string{"--no-admin=false"}, nil, "", true, 8901},
		{nil, []string{"ZIZQ_PORT=7891"}, "", true, 8901},
		{nil, []string{"ZIZQ_URL=http://localhost:7890"}, "", false, 8901},
		{[]string{"--default-commit-mode=fsync"}, nil, "", true, 8901},
		{nil, []string{"ZIZQ_NO_ADMIN=true", "ZIZQ_ADMIN_PORT=9000"}, "server: {admin: true}", false, 9000},
		{[]string{"--admin=false", "--admin-port=9000"}, nil, "", false, 9000},
	} {
		cfg, report, err := load(t, c.args, c.environ, c.file)
		if err != nil || cfg.Admin != c.on || cfg.AdminListener.Port != c.port || len(report.Notices) > 0 {
			t.Errorf("%v %v %q: on %v, port %d, %v %v", c.args, c.environ, c.file, cfg.Admin, cfg.AdminListener.Port, report.Notices, err)
		}
	}
	for want, args := range map[string][]string{
		"--admin-host: 0.0.0.0 can be reached from other machines":     {"--admin-host=0.0.0.0"},
		"--admin-tls-cert: needs admin-tls-key":                        {"--admin-tls-cert=c"},
		"--admin-tls-client-ca: asks for certificates of clients":      {"--admin-tls-client-ca=c"},
		"--no-admin: is the same setting as --admin; give one of them": {"--admin", "--no-admin"},
		`--no-admin: "maybe" must be one of false, true`:               {"--no-admin=maybe"},
		`--admin-port: "x" must be a whole number`:                     {"--admin-port=x"},
	} {
		if _, _, err := load(t, args, nil, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

func TestCommitModes(t *testing.T) {
	for _, c := range []struct {
		args    []string
		environ []string
		want    Sync
		origin  string
	}{
		{[]string{"--default-commit-mode=buffered"}, nil, SyncOS, "flag --default-commit-mode"},
		{[]string{"--default-commit-mode=fsync"}, nil, SyncAlways, "flag --default-commit-mode"},
		{nil, []string{"ZIZQ_DEFAULT_COMMIT_MODE=buffered"}, SyncOS, "environment ZIZQ_DEFAULT_COMMIT_MODE"},
		{nil, []string{"ZIZQ_DEFAULT_COMMIT_MODE=buffered", "REPRISE_SYNC=interval"}, SyncInterval, "environment REPRISE_SYNC"},
		{[]string{"--default-commit-mode=buffered"}, []string{"ZIZQ_ENQUEUE_COMMIT_MODE=fsync"}, SyncAlways, "environment ZIZQ_ENQUEUE_COMMIT_MODE"},
		{[]string{"--default-commit-mode=fsync", "--enqueue-commit-mode=buffered"}, nil, SyncAlways, "flag --default-commit-mode"},
		{[]string{"--enqueue-commit-mode=buffered"}, nil, SyncAlways, "default"},
		{[]string{"--enqueue-commit-mode=fsync", "--sync=os"}, nil, SyncOS, "flag --sync"},
	} {
		cfg, report, err := load(t, c.args, c.environ, "")
		if err != nil {
			t.Error(c.args, err)
		}
		if got := report.of("sync").Origin.String(); cfg.Sync != c.want || got != c.origin {
			t.Errorf("%v %v: sync %s from %s", c.args, c.environ, cfg.Sync, got)
		}
	}
}

func TestNearlyOurVariableIsPointedOut(t *testing.T) {
	_, report, err := load(t, nil, []string{"REPRISE_PROT=1", "REPRISE_SERVICE_HOST=10.0.0.1", "REPRISE_TOKEN=x", "REPRISE_URL=http://q", "OTHER_PROT=1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []Notice{{slog.LevelWarn, "REPRISE_PROT is no setting; did you mean REPRISE_PORT?"}}
	if !reflect.DeepEqual(report.Notices, want) {
		t.Errorf("notices %v", report.Notices)
	}
}

func TestCostlyChoicesAreTold(t *testing.T) {
	for arg, want := range map[string]string{
		"--sync=os": "sync os: a power cut", "--sync=interval": "the last 100ms of accepted work", "--null": "accepted and forgotten",
	} {
		_, report, _ := load(t, []string{arg}, nil, "")
		if len(report.Notices) != 1 || !strings.Contains(report.Notices[0].Text, want) {
			t.Errorf("%s: %v", arg, report.Notices)
		}
	}
}

func TestValidateSeesWhatLoadWouldRefuse(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"port":                 func(c *Config) { c.Port = -1 },
		"host":                 func(c *Config) { c.Host = "10.0.0.1" },
		"sync":                 func(c *Config) { c.Sync = "" },
		"max-queues":           func(c *Config) { c.MaxQueues = 0 },
		"root-dir":             func(c *Config) { c.RootDir = "~" },
		"log-format":           func(c *Config) { c.LogFormat = "loud" },
		"idempotency-window":   func(c *Config) { c.IdempotencyWindow = -5 },
		"default-backoff-base": func(c *Config) { c.Retry.Curve.Base = -5 },
		"max-inflight-bytes":   func(c *Config) { c.BodyBytesMax = 1 << 30 },
		"retry":                func(c *Config) { c.Retry.Curve = nil },
		"allow-host":           func(c *Config) { c.AllowHost = []string{"a:80"} },
	} {
		cfg := Default()
		spoil(&cfg)
		ps, _ := errors.AsType[Problems](cfg.Validate())
		if len(ps) == 0 || ps[0].Where != name {
			t.Errorf("%s: %v", name, ps)
		}
	}
}

// Whoever set up the commands of a client in the same shell did nothing wrong.
func TestVariablesOfClientsAreNoMisspeltSettings(t *testing.T) {
	environ := []string{"REPRISE_URL=http://127.0.0.1:1", "REPRISE_TOKEN=hunter2", "REPRISE_TOKEN_FILE=/t", "REPRISE_PROT=1", "REPRISE_NULL=false"}
	_, report, err := load(t, nil, environ, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Notices) != 1 || report.Notices[0].Text != "REPRISE_PROT is no setting; did you mean REPRISE_PORT?" {
		t.Errorf("notices %v", report.Notices)
	}
}
