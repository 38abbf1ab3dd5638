package server

import (
	"log/slog"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/wire"
)

// setting is one thing a person can decide about the server. Flags, the
// environment, the file, `reprise config` and docs/config.md all come from
// this declaration.
type setting struct {
	name    string // of the flag; --name
	short   string // -s
	yaml    string // path in the file; "" = not in the file
	section string
	def     string // as a person would write it; "" = see help
	help    string // one line, for --help
	more    string // for docs/config.md: what zero means, what to beware of
	hidden  bool
	also    []also
	field   field
}

// also is another name for a setting, with words of its own.
type also struct {
	name  string
	words map[string]string
}

// env is the environment variable of a setting, with a prefix.
func env(prefix, name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// The prefixes of environment variables, the stronger first.
const (
	envOurs     = "REPRISE_"
	envZizqs    = "ZIZQ_"
	envLibrarys = "CORRELATE_" // of the library that inboxes come from
)

// The sections of --help and docs/config.md, in this order.
const (
	sectionListen  = "Listening"
	sectionLimits  = "Limits"
	sectionHolders = "Workers and clients"
	sectionStore   = "Storage"
	sectionRetry   = "Retry and retention defaults"
	sectionLog     = "Logging"
	sectionTargets = "Targets"
)

var sections = []string{sectionListen, sectionLimits, sectionHolders, sectionStore, sectionRetry, sectionTargets, sectionLog}

var settings = []setting{
	{
		name: "config", short: "c", section: sectionListen,
		help:  "configuration file, YAML",
		more:  "Flags and environment win over it. See [The file](#the-file).",
		field: of(path, func(c *Config) *string { return &c.File }),
	},
	{
		name: "host", yaml: "server.host", section: sectionListen, def: "127.0.0.1",
		help: "address or name to listen on, without a port",
		more: "Beyond loopback the server wants tokens (or certificates of clients) and TLS, else it refuses to start unless " +
			"`insecure` is given. A name other than `localhost` counts as beyond loopback. See [security.md](security.md).",
		field: of(host, func(c *Config) *string { return &c.Host }),
	},
	{
		name: "port", yaml: "server.port", section: sectionListen, def: "7890",
		help: "TCP port to listen on; 0 = one that is free",
		more: "The log line `listening` tells the real port. A value such as `tcp://10.0.0.1:7890` in the environment, " +
			"which Kubernetes sets for a service named reprise, is ignored.",
		field: of(notation.Whole(0, 65535), func(c *Config) *int { return &c.Port }),
	},
	{
		name: "tcp", yaml: "server.tcp", section: sectionListen, def: "true",
		help:  "listen on host and port; false = only on the unix socket",
		field: of(notation.YesNo, func(c *Config) *bool { return &c.TCP }),
	},
	{
		name: "unix", yaml: "server.unix", section: sectionListen,
		help: "socket of the file system to listen on too",
		more: "Only the user of the server may connect to it. A socket that nobody answers at is replaced. " +
			"Clients give `unix:///run/reprise.sock` as the address.",
		field: of(path, func(c *Config) *string { return &c.Unix }),
	},
	{
		name: "behind-tls-proxy", yaml: "server.behind_tls_proxy", section: sectionListen, def: "false",
		help: "a proxy in front of the server speaks TLS, and others reach the server through it",
		more: "Then the server needs no TLS of its own, and wants tokens on loopback too. The proxy passes `Host` on, which " +
			"`allow-host` names. Nothing a proxy says about its clients is believed.",
		field: of(notation.YesNo, func(c *Config) *bool { return &c.BehindTLSProxy }),
	},
	{
		name: "insecure", yaml: "server.insecure", section: sectionListen, def: "false",
		help:  "listen beyond loopback without tokens and TLS",
		more:  "Danger: everybody who can connect can read, change and delete all work.",
		field: of(notation.YesNo, func(c *Config) *bool { return &c.Insecure }),
	},
	{
		name: "allow-host", yaml: "server.allow_host", section: sectionListen,
		help: "further host name to accept in a Host header; may be repeated",
		more: "Loopback names and the address listened on are always accepted. Any other Host is refused, so that " +
			"a web page cannot reach a local server by a name of its own.",
		field: listOf(host, func(c *Config) *[]string { return &c.AllowHost }),
	},
	{
		name: "strict", yaml: "server.strict", section: sectionListen, def: "false",
		help: "refuse bodies with members that no call knows, which are most often misspelt",
		more: "Otherwise such a member is ignored, as Zizq does: the answer has the header `Reprise-Warning`, and it is logged once. " +
			"A request asks for it with `Prefer: handling=strict`; the Go client and the command line do.",
		field: of(notation.YesNo, func(c *Config) *bool { return &c.Strict }),
	},
	{
		name: "guard", yaml: "server.guard", section: sectionListen, def: "false",
		help: "refuse to delete everything unless the request says all=true",
		more: "`DELETE /jobs` then wants a filter or `?all=true`, `DELETE /crons` and `POST /reset` want `?all=true`. " +
			"With tokens it is always so.",
		field: of(notation.YesNo, func(c *Config) *bool { return &c.Guard }),
	},
	{
		name: "tls-cert", yaml: "server.tls_cert", section: sectionListen,
		help:  "certificate of the server, PEM, with its chain; makes the listener speak TLS",
		more:  "`reprise tls init` makes one. TLS 1.2 or newer; HTTP/2 and HTTP/1.1 as the client chooses. Needs `tls-key`.",
		field: of(path, func(c *Config) *string { return &c.TLSCert }),
	},
	{
		name: "tls-key", yaml: "server.tls_key", section: sectionListen,
		help:  "private key of the certificate, PEM",
		field: of(path, func(c *Config) *string { return &c.TLSKey }),
	},
	{
		name: "tls-client-ca", yaml: "server.tls_client_ca", section: sectionListen,
		help:  "authorities of clients, PEM: a client needs a certificate of one of them",
		more:  "With TLS only. Without it everybody who can connect is let in.",
		field: of(path, func(c *Config) *string { return &c.TLSClientCA }),
	},
	{
		name: "admin", yaml: "server.admin", section: sectionListen, def: "false",
		help: "listen on admin-host and admin-port too, as Zizq does, for its commands top, backup and compact",
		more: "It is on where another setting that begins with `admin-` is given, or any flag or variable that only Zizq has; `--no-admin` wins over all. The listener has " +
			"`GET /events` (a WebSocket), `POST /backup` and `POST /compact`, which the primary listener has as well: see [jobs.md](jobs.md#zizq-top).",
		also:  []also{{"no-admin", map[string]string{"true": "false", "false": "true"}}},
		field: of(notation.YesNo, func(c *Config) *bool { return &c.Admin }),
	},
	{
		name: "admin-host", yaml: "server.admin_host", section: sectionListen, def: "127.0.0.1",
		help:  "address or name of the admin listener",
		more:  "Beyond loopback as `host`.",
		field: of(host, func(c *Config) *string { return &c.AdminHost }),
	},
	{
		name: "admin-port", yaml: "server.admin_port", section: sectionListen, def: "8901",
		help:  "TCP port of the admin listener; 0 = one that is free",
		field: of(notation.Whole(0, 65535), func(c *Config) *int { return &c.AdminPort }),
	},
	{
		name: "admin-tls-cert", yaml: "server.admin_tls_cert", section: sectionListen,
		help:  "certificate of the admin listener, PEM, with its chain; makes it speak TLS",
		more:  "Needs `admin-tls-key`. The primary listener has files of its own.",
		field: of(path, func(c *Config) *string { return &c.AdminTLSCert }),
	},
	{
		name: "admin-tls-key", yaml: "server.admin_tls_key", section: sectionListen,
		help:  "private key of that certificate, PEM",
		field: of(path, func(c *Config) *string { return &c.AdminTLSKey }),
	},
	{
		name: "admin-tls-client-ca", yaml: "server.admin_tls_client_ca", section: sectionListen,
		help:  "authorities of clients of the admin listener, PEM: a client needs a certificate of one of them",
		more:  "With `admin-tls-cert` only.",
		field: of(path, func(c *Config) *string { return &c.AdminTLSClientCA }),
	},
	{
		name: "pprof", yaml: "server.pprof", section: sectionListen, def: "false",
		help:  "serve Go profiles under /debug/pprof/, on loopback only",
		more:  "Refused together with a host beyond loopback.",
		field: of(notation.YesNo, func(c *Config) *bool { return &c.Pprof }),
	},
	{
		name: "null", section: sectionListen, def: "false", hidden: true,
		help:  "accept work and forget it, for measuring the server without a store",
		field: of(notation.YesNo, func(c *Config) *bool { return &c.Null }),
	},
	{
		name: "shutdown-timeout", yaml: "server.shutdown_timeout", section: sectionListen, def: "10s",
		help:  "time for requests at work to finish when the server stops",
		more:  "At least 1s. What takes longer is cut off. A second SIGINT or SIGTERM ends the process without waiting.",
		field: of(span(job.Second, job.Hour), func(c *Config) *time.Duration { return &c.ShutdownTimeout }),
	},

	{
		name: "body-max", yaml: "server.body_max", section: sectionLimits, def: notation.ShowSize(wire.BodyBytesMax),
		help:  "largest request body",
		more:  "A larger one is refused. A compressed one counts as what it inflates to.",
		field: of(notation.Size(1<<10, 2<<30), func(c *Config) *int64 { return &c.BodyBytesMax }),
	},
	{
		name: "max-inflight-bytes", yaml: "server.max_inflight_bytes", section: sectionLimits, def: "256MiB",
		help: "bytes of all request bodies at work together, and of all answers on their way",
		more: "This is memory; a batch counts 1 KiB for each of its jobs, too. One token, or one address where nobody has a token, has half of it at most. " +
			"A request that does not fit is refused and may be repeated; what workers say about their jobs always finds room. " +
			"At least `body-max`. See [Memory](operations.md#memory).",
		field: of(notation.Size(1<<10, notation.BytesMost), func(c *Config) *int64 { return &c.InflightBytesMax }),
	},
	{
		name: "min-upload-rate", yaml: "server.min_upload_rate", section: sectionLimits, def: "4KiB",
		help:  "bytes per second that a large request body must bring; 0 = any number",
		more:  "Ten times as much has to come in each 10 seconds, else the request is refused with 408. Bodies of up to 4 KiB have no such limit.",
		field: of(notation.Size(0, 1<<30), func(c *Config) *int64 { return &c.UploadRate }),
	},
	{
		name: "memory-limit", yaml: "server.memory_limit", section: sectionLimits, def: "0",
		help: "memory that the server tries to stay below; 0 = what GOMEMLIMIT says",
		more: "The nearer it comes to it, the more processor time goes into collecting garbage. It is no wall: what is needed at one moment is had. " +
			"A good value is 90 % of what the container or machine has for it. Processes that evaluate jq are not part of it.",
		field: of(notation.Size(0, notation.BytesMost), func(c *Config) *int64 { return &c.MemoryLimit }),
	},
	{
		name: "jq-memory", yaml: "server.jq_memory", section: sectionLimits, def: "512MiB",
		help:  "memory of each process that evaluates jq expressions; one that takes more is ended, and its expression refused",
		more:  "There are as many such processes as processors and two, and only while expressions are evaluated. At least 64 MiB.",
		field: of(notation.Size(64<<20, notation.BytesMost), func(c *Config) *int64 { return &c.JQMemory }),
	},
	{
		name: "max-connections", yaml: "server.max_connections", section: sectionLimits, def: "65536",
		help:  "most connections open at once",
		more:  "One more is answered 503, or closed if it speaks TLS. Each costs a file descriptor and some 10 KiB.",
		field: of(notation.Whole(1, 1<<24), func(c *Config) *int { return &c.MaxConnections }),
	},
	{
		name: "max-connections-per-address", yaml: "server.max_connections_per_address", section: sectionLimits, def: "16384",
		help:  "most connections from one address",
		more:  "Behind a proxy all have one address. A unix socket has none, and this does not count there.",
		field: of(notation.Whole(1, 1<<24), func(c *Config) *int { return &c.MaxPerAddress }),
	},
	{
		name: "max-streams", yaml: "server.max_streams", section: sectionLimits, def: "65536",
		help:  "most take streams and long polls open at once, over all connections",
		more:  "One more is answered 503. HTTP/2 carries up to 4,096 on one connection.",
		field: of(notation.Whole(1, 1<<24), func(c *Config) *int { return &c.MaxStreams }),
	},
	{
		name: "global-in-flight-limit", short: "l", yaml: "server.global_in_flight_limit", section: sectionLimits, def: "0",
		help:  "most jobs leased at the same time, over all queues; 0 = no limit",
		more:  "Zizq's default is 1024.",
		field: of(notation.Whole(0, 1<<31-1), func(c *Config) *int { return &c.GlobalInFlightLimit }),
	},
	{
		name: "max-queues", yaml: "server.max_queues", section: sectionLimits, def: "10000",
		help:  "most queues; a job or settings for one more are refused",
		more:  "Each costs memory while it has jobs or settings. Names made from ids or dates belong into `group`.",
		field: of(notation.Whole(1, 1_000_000), func(c *Config) *int { return &c.MaxQueues }),
	},
	{
		name: "metrics-queues", yaml: "server.metrics_queues", section: sectionLimits, def: "200",
		help:  "queues that /metrics tells of by name; all others are told of together",
		more:  "The others are `_other`. The first so many, those that have jobs at the start before others. Each is about 75 time series.",
		field: of(notation.Whole(1, 10_000), func(c *Config) *int { return &c.MetricsQueues }),
	},

	{
		name: "heartbeat-interval", yaml: "server.heartbeat_interval", section: sectionHolders, def: "3s",
		help:  "time between two heartbeats on an idle take stream",
		more:  "A connection that went away unnoticed is found by writing to it, so a longer interval finds it later.",
		field: of(span(10, job.Hour), func(c *Config) *time.Duration { return &c.HeartbeatInterval }),
	},
	{
		name: "tcp-user-timeout", yaml: "server.tcp_user_timeout", section: sectionHolders, def: "30s",
		help: "time after which a peer that acknowledges nothing of what was sent is gone; 0 = as the system does",
		more: "On Linux. Its take streams end, and their jobs go back. A worker that is stopped in a debugger is such a peer " +
			"as soon as more is sent than its buffers hold.",
		field: of(span(0, job.Hour), func(c *Config) *time.Duration { return &c.TCPUserTimeout }),
	},
	{
		name: "reattach-window", yaml: "server.reattach_window", section: sectionHolders, def: "30s",
		help: "time for a named worker to come back before its jobs are given to others",
		more: "Counts from a disconnect and from a restart of the server. 0 = at once. " +
			"Make it longer than a restart of the workers takes, or that runs their jobs twice.",
		field: of(notation.Millis(0, job.Day), func(c *Config) *job.Millis { return &c.ReattachWindow }),
	},
	{
		name: "idempotency-window", yaml: "server.idempotency_window", section: sectionHolders, def: "1h",
		help:  "how long an Idempotency-Key is remembered",
		more:  "A repeat after it is new work. Make it longer than your clients go on repeating; each key stays on disk until then.",
		field: of(notation.Millis(job.Second, 365*job.Day), func(c *Config) *job.Millis { return &c.IdempotencyWindow }),
	},

	{
		name: "root-dir", yaml: "server.root_dir", section: sectionStore, def: "./reprise-root",
		help:  "directory where everything is kept; created if it is missing",
		more:  "Relative to where the process starts. One server at a time.",
		field: of(path, func(c *Config) *string { return &c.RootDir }),
	},
	{
		name: "sync", yaml: "store.sync", section: sectionStore, def: "always",
		help: "when an answer means that the work is on disk",
		more: "`always`: before every answer. `interval`: at most `sync-interval` of answered work is lost by a power cut. " +
			"`os`: the operating system decides. None of them loses answered work when only the process dies. " +
			"Zizq's `--default-commit-mode` is accepted: `fsync` is `always`, `buffered` is `os`.",
		field: of(notation.Words(SyncAlways, SyncInterval, SyncOS), func(c *Config) *Sync { return &c.Sync }),
		also:  []also{{"default-commit-mode", map[string]string{"buffered": "os", "fsync": "always"}}},
	},
	{
		name: "sync-interval", yaml: "store.sync_interval", section: sectionStore, def: "100ms",
		help:  "time between two syncs with sync interval",
		more:  "The most that a power cut can take. Means nothing with another `sync`.",
		field: of(span(1, job.Minute), func(c *Config) *time.Duration { return &c.SyncInterval }),
	},
	{
		name: "cache-size", yaml: "store.cache_size", section: sectionStore, def: "256MB",
		help:  "memory for blocks read from disk",
		more:  "Beside it the server keeps a small record of every unfinished job in memory.",
		field: of(notation.Size(1<<20, notation.BytesMost), func(c *Config) *int64 { return &c.CacheBytes }),
	},
	{
		name: "disk-reserve", yaml: "store.disk_reserve", section: sectionStore, def: "256MiB",
		help: "disk space kept free, as a size or a percentage; below it enqueues are refused with 503",
		more: "Settles and takes go on, because they free space. " +
			"Danger: with 0 the disk can fill up until nothing can be written.",
		field: of(reserve, func(c *Config) *DiskReserve { return &c.DiskReserve }),
	},

	{
		name: "default-retry-limit", section: sectionRetry, def: job.DefaultRetry().Limit.String(),
		help:  "retries after the first attempt",
		more:  "In the file: `retry.limit`. `none` = the first failure is fatal.",
		field: of(limit, func(c *Config) *job.Limit { return &c.Retry.Limit }),
	},
	{
		name: "default-backoff-exponent", section: sectionRetry, def: exponent.Show(job.DefaultRetry().Curve.Exponent),
		help: "exponent of the default polynomial backoff",
		more: "In the file: `retry.curve`. The three `default-backoff-*` settings go together: all or none, " +
			"counting flags, environment and the keys of a polynomial `retry.curve` in the file together. It may be negative. " +
			"Given as flags or in the environment they replace a curve of another kind.",
		field: curveField(exponent, func(c *job.Curve) *float64 { return &c.Exponent }),
	},
	{
		name: "default-backoff-base", section: sectionRetry, def: job.DefaultRetry().Curve.Base.String(),
		help:  "base of the default polynomial backoff",
		more:  "Goes together with `default-backoff-exponent`.",
		field: curveField(notation.Millis(0, job.MaxMillis), func(c *job.Curve) *job.Millis { return &c.Base }),
	},
	{
		name: "default-backoff-jitter", section: sectionRetry, def: job.DefaultRetry().Curve.Spread.String(),
		help:  "jitter of the default polynomial backoff",
		more:  "Goes together with `default-backoff-exponent`.",
		field: curveField(notation.Millis(0, job.MaxMillis), func(c *job.Curve) *job.Millis { return &c.Spread }),
	},
	{
		name: "backoff-count", yaml: "server.backoff_count", section: sectionRetry, def: "previous",
		help: "what polynomial backoff counts: attempts before the failed one, or including it",
		more: "For every polynomial curve that names no `count`, here, in queues and in a job's `backoff`. " +
			"`including` is what Zizq 0.6.1 and later do.",
		field: of(notation.Enum(job.CountPrevious, job.CountIncluding), func(c *Config) *job.Count { return &c.BackoffCount }),
	},
	{
		name: "default-completed-job-retention", yaml: "retention.completed", section: sectionRetry, def: "recent",
		help: "how long finished jobs are kept; 0 = they leave at once, recent = a few stay for an hour",
		more: "`recent` keeps 50 finished jobs of each queue for an hour and 50 more for a minute; see jobs.md. With any flag or variable that only Zizq has, the default is `0`, as there. " +
			"Danger: at 10,000 jobs a second, one day is 864 million jobs.",
		field: of(orRecent(notation.Millis(0, job.MaxMillis)), func(c *Config) *job.Millis { return &c.RetainDone }),
	},
	{
		name: "default-dead-job-retention", yaml: "retention.dead", section: sectionRetry, def: "7d",
		help:  "how long dead jobs are kept; 0 = they leave at once and are only counted",
		more:  "After it nobody can look at them or run them again.",
		field: of(notation.Millis(0, job.MaxMillis), func(c *Config) *job.Millis { return &c.RetainDead }),
	},

	{
		name: "egress-allow", yaml: "egress.allow", section: sectionTargets,
		help: "name, address or range that a target set over the API may have; may be repeated",
		more: "`hooks.example.com`, `*.example.com`, `*`, `10.1.2.3` or `10.0.0.0/8`, with `:PORT` or without; `none` = nothing. Without any, " +
			"the targets in the file are what is allowed. A pattern reaches public addresses only. Link-local and metadata addresses are " +
			"never called. See [security.md](security.md#targets).",
		field: listOf(egressLine, func(c *Config) *[]string { return &c.EgressAllow }),
	},
	{
		name: "secrets-dir", yaml: "egress.secrets_dir", section: sectionTargets,
		help: "directory of secrets that headers of a target set over the API may name, as ${file:NAME}",
		more: "Whoever may set a target can send any file of it to whatever `egress.allow` allows, so keep nothing else there. A file is read when the target is set " +
			"and when the server starts; what is stored is its name. See [security.md](security.md#targets).",
		field: of(path, func(c *Config) *string { return &c.SecretsDir }),
	},
	{
		name: "log-format", yaml: "server.log_format", section: sectionLog, def: "auto",
		help:  "how log lines look; auto = pretty on a terminal, else compact",
		more:  "`json` goes to standard output, the others to standard error.",
		field: of(notation.Words(LogAuto, LogPretty, LogCompact, LogJSON), func(c *Config) *LogFormat { return &c.LogFormat }),
	},
	{
		name: "log-level", yaml: "server.log_level", section: sectionLog, def: "info",
		help:  "least important lines to write",
		more:  "No line is written per job or per request at `info`. Above `info` the line `listening` is missing too.",
		field: of(level, func(c *Config) *slog.Level { return &c.LogLevel }),
	},
}

// notThere is shown for what the chosen curve does not have.
const notThere = "-"

// curveField is a field of the default curve, which has a value only while
// the curve is a polynomial.
func curveField[T any](k notation.Kind[T], at func(*job.Curve) *T) field {
	f := of(k, func(c *Config) *T { return at(c.Retry.Curve) })
	show := f.show
	f.show = func(c *Config) string {
		if c.Retry.Curve == nil || c.Retry.Curve.Kind != job.CurvePolynomial {
			return notThere
		}
		return show(c)
	}
	return f
}

// foreign is a setting of Zizq that means nothing here, so that a start
// written for Zizq works unchanged.
type foreign struct {
	name   string
	short  string
	isBool bool
	only   bool // in the environment only
}

var foreigners = []foreign{
	{name: "license-key", short: "k"},
	{name: "license-key-check-interval"},
	{name: "enqueue-commit-mode"}, // but see (*loader).commitMode
	{name: "enqueue-batch-size"},
	{name: "complete-batch-size"},
	{name: "reaper-check-interval"},
	{name: "max-budgets"},
	{name: "log-to-disk", isBool: true},
	{name: "log-dir"},
	{name: "log-rotation"},
	{name: "log-max-size"},
	{name: "log-max-files"},
	{name: "log-filter", only: true},
	{name: "data-table-size", only: true},
	{name: "index-table-size", only: true},
	{name: "journal-size", only: true},
	{name: "l0-threshold", only: true},
	{name: "auto-compact-threshold", only: true},
	{name: "scheduler-batch-size", only: true},
}
