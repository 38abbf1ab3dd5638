package config

import (
	"log/slog"
	"slices"
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
	field

	name     string // of the flag; --name
	letter   string // -l
	yaml     string // path in the file; "" = not in the file
	section  string // of --help and docs/config.md
	def      string // as a person would write it; "" = see help
	help     string // one line, for --help
	more     string // for docs/config.md: what zero means, what to beware of
	hidden   bool
	reloaded bool // a reload changes it; all that reloadable parts look at
	also     []also
}

// one is a setting with one value, of a kind, kept at a place. In the file it
// has its name below the heading of its section.
func one[T any](name, def string, k notation.Kind[T], at func(*Config) *T, help string, more ...string) setting {
	return setting{name: name, def: def, field: of(k, at), help: help, more: strings.Join(more, "")}
}

// many is a setting with any number of values.
func many(name string, k notation.Kind[string], at func(*Config) *[]string, help, more string) setting {
	return setting{name: name, field: listOf(k, at), help: help, more: more}
}

// ofCurve is a setting of the default curve, which has a value only while
// that is a polynomial.
func ofCurve[T any](name, def string, k notation.Kind[T], at func(*job.Curve) *T, help, more string) setting {
	s := one(name, def, k, func(c *Config) *T { return at(c.Retry.Curve) }, help, more)
	show := s.show
	s.show = func(c *Config) string {
		if c.Retry.Curve == nil || c.Retry.Curve.Kind != job.CurvePolynomial {
			return notThere
		}
		return show(c)
	}
	return s
}

// notThere is shown for what the chosen curve does not have.
const notThere = "-"

func (s setting) at(yaml string) setting      { s.yaml = yaml; return s }
func (s setting) notInFile() setting          { return s.at(notThere) }
func (s setting) short(letter string) setting { s.letter = letter; return s }
func (s setting) hide() setting               { s.hidden = true; return s }
func (s setting) reloads() setting            { s.reloaded = true; return s }

// alias is another name, with words of its own.
func (s setting) alias(name string, words map[string]string) setting {
	s.also = append(s.also, also{name, words})
	return s
}

// section gives settings the title and the heading in the file that they share.
func section(title, heading string, list ...setting) []setting {
	for i := range list {
		switch s := &list[i]; s.yaml {
		case "":
			s.yaml = join(heading, strings.ReplaceAll(s.name, "-", "_"))
		case notThere:
			s.yaml = ""
		}
		list[i].section = title
	}
	return list
}

// certificates are the files of a listener, whose settings have the prefix.
func certificates(prefix, whose string, of func(*Config) *TLSFiles) []setting {
	return []setting{
		one(prefix+"tls-cert", "", path, func(c *Config) *string { return &of(c).TLSCert },
			"certificate of "+whose+", PEM, with its chain; makes the listener speak TLS",
			"`reprise tls init` makes one. TLS 1.2 or newer; HTTP/2 and HTTP/1.1 as the client chooses. Needs `"+prefix+"tls-key`."),
		one(prefix+"tls-key", "", path, func(c *Config) *string { return &of(c).TLSKey },
			"private key of the certificate of "+whose+", PEM"),
		one(prefix+"tls-client-ca", "", path, func(c *Config) *string { return &of(c).TLSClientCA },
			"authorities of clients of "+whose+", PEM: a client needs a certificate of one of them",
			"With `"+prefix+"tls-cert` only. Without it everybody who can connect is let in."),
	}
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

// settings are all there are, in the order of --help and docs/config.md. To add one:
// a field of Config, and its entry here.
var settings = slices.Concat(
	section("Listening", "server", slices.Concat([]setting{
		one("config", "", path, func(c *Config) *string { return &c.File },
			"configuration file, YAML",
			"Flags and environment win over it. See [The file](#the-file).").notInFile().short("c"),
		one("host", "127.0.0.1", host, func(c *Config) *string { return &c.Host },
			"address or name to listen on, without a port",
			"Beyond loopback the server wants tokens (or certificates of clients) and TLS, else it refuses to start unless "+
				"`insecure` is given. A name other than `localhost` counts as beyond loopback. See [security.md](security.md)."),
		one("port", "7890", notation.Whole(0, 65535), func(c *Config) *int { return &c.Port },
			"TCP port to listen on; 0 = one that is free",
			"The log line `listening` tells the real port. A value such as `tcp://10.0.0.1:7890` in the environment, "+
				"which Kubernetes sets for a service named reprise, is ignored."),
		one("tcp", "true", notation.YesNo, func(c *Config) *bool { return &c.TCP },
			"listen on host and port; false = only on the unix socket"),
		one("unix", "", path, func(c *Config) *string { return &c.Unix },
			"socket of the file system to listen on too",
			"Only the user of the server may connect to it. A socket that nobody answers at is replaced. "+
				"Clients give `unix:///run/reprise.sock` as the address."),
		one("behind-tls-proxy", "false", notation.YesNo, func(c *Config) *bool { return &c.BehindTLSProxy },
			"a proxy in front of the server speaks TLS, and others reach the server through it",
			"Then the server needs no TLS of its own, and wants tokens on loopback too. The proxy passes `Host` on, which "+
				"`allow-host` names. Nothing a proxy says about its clients is believed."),
		one("insecure", "false", notation.YesNo, func(c *Config) *bool { return &c.Insecure },
			"listen beyond loopback without tokens and TLS",
			"Danger: everybody who can connect can read, change and delete all work."),
		many("allow-host", host, func(c *Config) *[]string { return &c.AllowHost },
			"further host name to accept in a Host header; may be repeated",
			"Loopback names and the address listened on are always accepted. Any other Host is refused, so that "+
				"a web page cannot reach a local server by a name of its own.").reloads(),
		one("strict", "false", notation.YesNo, func(c *Config) *bool { return &c.Strict },
			"refuse bodies with members that no call knows, which are most often misspelt",
			"Otherwise such a member is ignored, as Zizq does: the answer has the header `Reprise-Warning`, and it is logged once. "+
				"A request asks for it with `Prefer: handling=strict`; the Go client and the command line do.").reloads(),
		one("guard", "false", notation.YesNo, func(c *Config) *bool { return &c.Guard },
			"refuse to delete everything unless the request says all=true",
			"`DELETE /jobs` then wants a filter or `?all=true`, `DELETE /crons` and `POST /reset` want `?all=true`. "+
				"With tokens it is always so."),
	}, certificates("", "the server", func(c *Config) *TLSFiles { return &c.TLSFiles }), []setting{
		one("admin", "false", notation.YesNo, func(c *Config) *bool { return &c.Admin },
			"listen on admin-host and admin-port too, as Zizq does, for its commands top, backup and compact",
			"It is on where another setting that begins with `admin-` is given, or any flag or variable that only Zizq has; `--no-admin` wins over all. The listener has "+
				"`GET /events` (a WebSocket), `POST /backup` and `POST /compact`, which the primary listener has as well: see [jobs.md](jobs.md#zizq-top).").alias("no-admin", map[string]string{"true": "false", "false": "true"}),
		one("admin-host", "127.0.0.1", host, func(c *Config) *string { return &c.AdminListener.Host },
			"address or name of the admin listener",
			"Beyond loopback as `host`."),
		one("admin-port", "8901", notation.Whole(0, 65535), func(c *Config) *int { return &c.AdminListener.Port },
			"TCP port of the admin listener; 0 = one that is free"),
	}, certificates(adminPrefix, "the admin listener", func(c *Config) *TLSFiles { return &c.AdminListener.TLSFiles }), []setting{
		one("pprof", "false", notation.YesNo, func(c *Config) *bool { return &c.Pprof },
			"serve Go profiles under /debug/pprof/, on loopback only",
			"Refused together with a host beyond loopback."),
		one("null", "false", notation.YesNo, func(c *Config) *bool { return &c.Null },
			"accept work and forget it, for measuring the server without a store").notInFile().hide(),
		one("shutdown-timeout", "10s", span(job.Second, job.Hour), func(c *Config) *time.Duration { return &c.ShutdownTimeout },
			"time for requests at work to finish when the server stops",
			"At least 1s. What takes longer is cut off. A second SIGINT or SIGTERM ends the process without waiting."),
	})...),
	section("Limits", "server",
		one("body-max", notation.ShowSize(wire.BodyBytesMax), notation.Size(1<<10, 2<<30), func(c *Config) *int64 { return &c.BodyBytesMax },
			"largest request body",
			"A larger one is refused. A compressed one counts as what it inflates to."),
		one("max-inflight-bytes", "256MiB", notation.Size(1<<10, notation.BytesMost), func(c *Config) *int64 { return &c.InflightBytesMax },
			"bytes of all request bodies at work together, and of all answers on their way",
			"This is memory; a batch counts 1 KiB for each of its jobs, too. One token, or one address where nobody has a token, has half of it at most. "+
				"A request that does not fit is refused and may be repeated; what workers say about their jobs always finds room. "+
				"At least `body-max`. See [Memory](operations.md#memory)."),
		one("min-upload-rate", "4KiB", notation.Size(0, 1<<30), func(c *Config) *int64 { return &c.UploadRate },
			"bytes per second that a large request body must bring; 0 = any number",
			"Ten times as much has to come in each 10 seconds, else the request is refused with 408. Bodies of up to 4 KiB have no such limit."),
		one("memory-limit", "0", notation.Size(0, notation.BytesMost), func(c *Config) *int64 { return &c.MemoryLimit },
			"memory that the server tries to stay below; 0 = what GOMEMLIMIT says",
			"The nearer it comes to it, the more processor time goes into collecting garbage. It is no wall: what is needed at one moment is had. "+
				"A good value is 90 % of what the container or machine has for it. Processes that evaluate jq are not part of it."),
		one("jq-memory", "512MiB", notation.Size(64<<20, notation.BytesMost), func(c *Config) *int64 { return &c.JQMemory },
			"memory of each process that evaluates jq expressions; one that takes more is ended, and its expression refused",
			"There are as many such processes as processors and two, and only while expressions are evaluated. At least 64 MiB."),
		one("max-connections", "65536", notation.Whole(1, 1<<24), func(c *Config) *int { return &c.MaxConnections },
			"most connections open at once",
			"One more is answered 503, or closed if it speaks TLS. Each costs a file descriptor and some 10 KiB."),
		one("max-connections-per-address", "16384", notation.Whole(1, 1<<24), func(c *Config) *int { return &c.MaxPerAddress },
			"most connections from one address",
			"Behind a proxy all have one address. A unix socket has none, and this does not count there."),
		one("max-streams", "65536", notation.Whole(1, 1<<24), func(c *Config) *int { return &c.MaxStreams },
			"most take streams and long polls open at once, over all connections",
			"One more is answered 503. HTTP/2 carries up to 4,096 on one connection."),
		one("global-in-flight-limit", "0", notation.Whole(0, 1<<31-1), func(c *Config) *int { return &c.GlobalInFlightLimit },
			"most jobs leased at the same time, over all queues; 0 = no limit",
			"Zizq's default is 1024.").short("l").reloads(),
		one("max-queues", "10000", notation.Whole(1, 1_000_000), func(c *Config) *int { return &c.MaxQueues },
			"most queues; a job or settings for one more are refused",
			"Each costs memory while it has jobs or settings. Names made from ids or dates belong into `group`.").reloads(),
		one("metrics-queues", "200", notation.Whole(1, 10_000), func(c *Config) *int { return &c.MetricsQueues },
			"queues that /metrics tells of by name; all others are told of together",
			"The others are `_other`. The first so many, those that have jobs at the start before others. Each is about 75 time series."),
	),
	section("Workers and clients", "server",
		one("heartbeat-interval", "3s", span(10, job.Hour), func(c *Config) *time.Duration { return &c.HeartbeatInterval },
			"time between two heartbeats on an idle take stream",
			"A connection that went away unnoticed is found by writing to it, so a longer interval finds it later."),
		one("tcp-user-timeout", "30s", span(0, job.Hour), func(c *Config) *time.Duration { return &c.TCPUserTimeout },
			"time after which a peer that acknowledges nothing of what was sent is gone; 0 = as the system does",
			"On Linux. Its take streams end, and their jobs go back. A worker that is stopped in a debugger is such a peer "+
				"as soon as more is sent than its buffers hold."),
		one("reattach-window", "30s", notation.Millis(0, job.Day), func(c *Config) *job.Millis { return &c.ReattachWindow },
			"time for a named worker to come back before its jobs are given to others",
			"Counts from a disconnect and from a restart of the server. 0 = at once. "+
				"Make it longer than a restart of the workers takes, or that runs their jobs twice.").reloads(),
		one("idempotency-window", "1h", notation.Millis(job.Second, 365*job.Day), func(c *Config) *job.Millis { return &c.IdempotencyWindow },
			"how long an Idempotency-Key is remembered",
			"A repeat after it is new work. Make it longer than your clients go on repeating; each key stays on disk until then.").reloads(),
	),
	section("Storage", "store",
		one("root-dir", "./reprise-root", path, func(c *Config) *string { return &c.RootDir },
			"directory where everything is kept; created if it is missing",
			"Relative to where the process starts. One server at a time.").at("server.root_dir"),
		one("sync", "always", notation.Words(SyncAlways, SyncInterval, SyncOS), func(c *Config) *Sync { return &c.Sync },
			"when an answer means that the work is on disk",
			"`always`: before every answer. `interval`: at most `sync-interval` of answered work is lost by a power cut. "+
				"`os`: the operating system decides. None of them loses answered work when only the process dies. "+
				"Zizq's `--default-commit-mode` is accepted: `fsync` is `always`, `buffered` is `os`.").alias("default-commit-mode", map[string]string{"buffered": "os", "fsync": "always"}),
		one("sync-interval", "100ms", span(1, job.Minute), func(c *Config) *time.Duration { return &c.SyncInterval },
			"time between two syncs with sync interval",
			"The most that a power cut can take. Means nothing with another `sync`."),
		one("cache-size", "256MB", notation.Size(1<<20, notation.BytesMost), func(c *Config) *int64 { return &c.CacheBytes },
			"memory for blocks read from disk",
			"Beside it the server keeps a small record of every unfinished job in memory."),
		one("disk-reserve", "256MiB", reserve, func(c *Config) *DiskReserve { return &c.DiskReserve },
			"disk space kept free, as a size or a percentage; below it enqueues are refused with 503",
			"Settles and takes go on, because they free space. "+
				"Danger: with 0 the disk can fill up until nothing can be written.").reloads(),
	),
	section("Retry and retention defaults", "server",
		one("default-retry-limit", job.DefaultRetry().Limit.String(), limit, func(c *Config) *job.Limit { return &c.Retry.Limit },
			"retries after the first attempt",
			"In the file: `retry.limit`. `none` = the first failure is fatal.").notInFile().reloads(),
		ofCurve("default-backoff-exponent", exponent.Show(job.DefaultRetry().Curve.Exponent), exponent, func(c *job.Curve) *float64 { return &c.Exponent },
			"exponent of the default polynomial backoff",
			"In the file: `retry.curve`. The three `default-backoff-*` settings go together: all or none, "+
				"counting flags, environment and the keys of a polynomial `retry.curve` in the file together. It may be negative. "+
				"Given as flags or in the environment they replace a curve of another kind.").notInFile().reloads(),
		ofCurve("default-backoff-base", job.DefaultRetry().Curve.Base.String(), notation.Millis(0, job.MaxMillis), func(c *job.Curve) *job.Millis { return &c.Base },
			"base of the default polynomial backoff",
			"Goes together with `default-backoff-exponent`.").notInFile().reloads(),
		ofCurve("default-backoff-jitter", job.DefaultRetry().Curve.Spread.String(), notation.Millis(0, job.MaxMillis), func(c *job.Curve) *job.Millis { return &c.Spread },
			"jitter of the default polynomial backoff",
			"Goes together with `default-backoff-exponent`.").notInFile().reloads(),
		one("backoff-count", "previous", notation.Enum(job.CountPrevious, job.CountIncluding), func(c *Config) *job.Count { return &c.BackoffCount },
			"what polynomial backoff counts: attempts before the failed one, or including it",
			"For every polynomial curve that names no `count`, here, in queues and in a job's `backoff`. "+
				"`including` is what Zizq 0.6.1 and later do.").reloads(),
		one("default-completed-job-retention", "recent", orRecent(notation.Millis(0, job.MaxMillis)), func(c *Config) *job.Millis { return &c.RetainDone },
			"how long finished jobs are kept; 0 = they leave at once, recent = a few stay for an hour",
			"`recent` keeps 50 finished jobs of each queue for an hour and 50 more for a minute; see jobs.md. With any flag or variable that only Zizq has, the default is `0`, as there. "+
				"Danger: at 10,000 jobs a second, one day is 864 million jobs.").at("retention.completed").reloads(),
		one("default-dead-job-retention", "7d", notation.Millis(0, job.MaxMillis), func(c *Config) *job.Millis { return &c.RetainDead },
			"how long dead jobs are kept; 0 = they leave at once and are only counted",
			"After it nobody can look at them or run them again.").at("retention.dead").reloads(),
	),
	section("Targets", "egress",
		many("egress-allow", egressLine, func(c *Config) *[]string { return &c.EgressAllow },
			"name, address or range that a target set over the API may have; may be repeated",
			"`hooks.example.com`, `*.example.com`, `*`, `10.1.2.3` or `10.0.0.0/8`, with `:PORT` or without; `none` = nothing. Without any, "+
				"the targets in the file are what is allowed. A pattern reaches public addresses only. Link-local and metadata addresses are "+
				"never called. See [security.md](security.md#targets).").at("egress.allow"),
		one("secrets-dir", "", path, func(c *Config) *string { return &c.SecretsDir },
			"directory of secrets that headers of a target set over the API may name, as ${file:NAME}",
			"Whoever may set a target can send any file of it to whatever `egress.allow` allows, so keep nothing else there. A file is read when the target is set "+
				"and when the server starts; what is stored is its name. See [security.md](security.md#targets)."),
	),
	section("Logging", "server",
		one("log-format", "auto", notation.Words(LogAuto, LogPretty, LogCompact, LogJSON), func(c *Config) *LogFormat { return &c.LogFormat },
			"how log lines look; auto = pretty on a terminal, else compact",
			"`json` goes to standard output, the others to standard error."),
		one("log-level", "info", level, func(c *Config) *slog.Level { return &c.LogLevel },
			"least important lines to write",
			"No line is written per job or per request at `info`. Above `info` the line `listening` is missing too.").reloads(),
	),
)

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
