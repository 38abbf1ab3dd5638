// Package config holds everything a person can decide about a server: what each
// setting is called in a flag, in the environment and in the file, what it may be,
// and what it is by default. It decides nothing, and starts nothing.
package config

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/internal/part/cron"
)

// Config is everything a person can decide about a server. Use Default or
// Load: most zero values are not defaults.
//
// The list settings names each for flags, environment and file, with its
// default, its bounds and what to beware of; docs/config.md is generated from
// it. Here stands what the code needs to know.
type Config struct {
	File string // the configuration file that was read; "" = none

	Listening
	Limits
	Holders
	Storage
	Policies
	Targeting
	Logging
	Contents

	Tokens []job.Credential // of the API, beside those in the store
	Reload Reload           // no setting: how it is read again, which nobody need offer
}

// Listening is what is listened on and for whom.
type Listening struct {
	Listener
	TCP            bool     // listen on Host and Port
	Unix           string   // also on this socket of the file system; "" = on none
	BehindTLSProxy bool     // a proxy in front speaks TLS, and others reach the server through it
	Insecure       bool     // listen beyond loopback without tokens and TLS
	AllowHost      []string // further names accepted in a Host header, lower case
	Strict         bool     // members that a call does not know are refused
	Guard          bool     // everything is deleted only when the request says so; with tokens always
	Pprof          bool     // serve profiles; only on loopback
	Null           bool     // accept work and forget it; for measuring only

	Admin         bool // Zizq's admin listener; see AsAdmin
	AdminListener Listener

	ShutdownTimeout time.Duration // for requests at work when the server stops
}

// Listener is an address that is listened on.
type Listener struct {
	Host string // without a port; a name other than localhost is not loopback
	Port int    // 0 = one that is free
	TLSFiles
}

// TLSFiles are in PEM; see TLS, MutualTLS and Certificates.
type TLSFiles struct {
	TLSCert     string // "" = plain HTTP
	TLSKey      string
	TLSClientCA string // "" = clients need no certificate
}

// Limits are how much the server takes.
type Limits struct {
	BodyBytesMax        int64 // of one request, after inflation
	InflightBytesMax    int64 // of all requests at work; at least BodyBytesMax
	UploadRate          int64 // bytes per second; 0 = any
	MemoryLimit         int64 // 0 = as the environment says
	JQMemory            int64 // of each process that evaluates jq
	MaxConnections      int   // open at once
	MaxPerAddress       int   // of them from one address
	MaxStreams          int   // take streams and long polls
	GlobalInFlightLimit int   // jobs leased at once; 0 = no limit
	MaxQueues           int
	MetricsQueues       int // measured by name; the others together
}

// Holders is how workers and clients are treated.
type Holders struct {
	HeartbeatInterval time.Duration // between two signs of life on an idle take stream
	TCPUserTimeout    time.Duration // a peer that takes nothing so long is gone; 0 = the system decides
	ReattachWindow    job.Millis    // a named holder lapses so long after it went away; 0 = at once
	IdempotencyWindow job.Millis    // how long a receipt outlives its job
}

// Storage is where work is kept.
type Storage struct {
	RootDir      string
	Sync         Sync
	SyncInterval time.Duration // with mode interval: the most that a power cut can take
	CacheBytes   int64         // block cache of the store
	DiskReserve  DiskReserve   // below it enqueues are refused
}

// Policies are how failed work runs again and how long finished work is kept, where neither
// job nor queue says anything.
type Policies struct {
	Retry        job.Retry // complete: only MaxAge may be unset, which is no limit; Curve is not nil
	BackoffCount job.Count // of polynomial curves that name none, and of the jobs door's `backoff`
	RetainDone   job.Millis
	RetainDead   job.Millis

	Types map[string]*job.Retry // of the jobs of a type, where the job says nothing
	Doors [job.Doors]*job.Retry // of those that came through a door
}

// Targeting is what the server calls. See Egress.
type Targeting struct {
	SecretsDir  string   // files that targets of the API may refer to; "" = none
	EgressAllow []string // lines of connect.ParseEgress, or "none"; none = Targets
	Targets     []string // addresses that the file itself names to deliver to
}

// Logging is what the server says.
type Logging struct {
	LogFormat LogFormat
	LogLevel  slog.Level
	Log       *slog.Logger // where to; no setting, `reprise serve` puts what NewLogger returns here
}

// Contents are what the file names beside settings. They are applied at each
// start; what it does not name stays as it is.
type Contents struct {
	Queues  []*job.Queue   // with settings of their own, by name; the others have defaults
	Crons   []cron.Setting // groups, by name
	Grid    grid.Config    // what the broker decides about sessions and engines
	Inboxes []inbox.Named  // by name
	Cluster Cluster

	Pipelines []Pipeline // in their order; names differ
}

// Reload is how a running server is told to read its configuration again.
type Reload struct {
	Signal <-chan struct{}                // each time it shall
	Load   func() (Config, Report, error) // as the first time
}

// Pending is a setting that changes with the next start only.
type Pending struct{ Name, InEffect, Configured string }

// Reloaded is what is in effect behind a reload of next: of what cannot change, what was.
func Reloaded(was, next Config) (now Config, pending []Pending) {
	now = next
	for _, s := range settings {
		from, to := s.show(&was), s.show(&next)
		if s.reloaded || from == to {
			continue
		}
		pending = append(pending, Pending{s.name, from, to})
		if from != notThere {
			_ = s.set(&now, []string{from}) // as it was read before
		}
	}
	return now, pending
}

// Sync is when the store forces what it wrote onto the disk.
type Sync string

// The sync modes.
const (
	SyncAlways   Sync = "always"   // before it answers
	SyncInterval Sync = "interval" // every Config.SyncInterval
	SyncOS       Sync = "os"       // when the operating system likes to
)

// LogFormat is how a log line looks.
type LogFormat string

// The formats.
const (
	LogAuto    LogFormat = "auto" // pretty on a terminal, else compact
	LogPretty  LogFormat = "pretty"
	LogCompact LogFormat = "compact"
	LogJSON    LogFormat = "json"
)

// Default is what applies where nobody says anything.
func Default() Config {
	cfg := Config{Policies: Policies{Retry: job.DefaultRetry()}, Contents: Contents{Grid: grid.DefaultConfig()}}
	for _, s := range settings {
		if s.def == "" {
			continue
		}
		if err := s.set(&cfg, []string{s.def}); err != nil {
			panic("default of " + s.name + ": " + err.Error())
		}
	}
	return cfg
}

// contradictions are settings that are fine alone and not together. Where is
// the name of the setting to change.
func (c Config) contradictions() (ps Problems) {
	ps = c.listenerContradictions("")
	if c.Admin {
		ps = append(ps, c.AsAdmin().listenerContradictions("admin-")...)
	}
	if c.TCP && !loopback(c.Host) && c.Pprof {
		ps.add("pprof", "profiles are served on loopback only, and host is %s", c.Host)
	}
	if !c.TCP && c.Unix == "" {
		ps.add("tcp", "nothing is listened on: give --unix, or leave out --tcp=false")
	}
	if c.InflightBytesMax < c.BodyBytesMax {
		ps.add("max-inflight-bytes", "%s is below body-max %s: the largest request allowed would never get in",
			notation.ShowSize(c.InflightBytesMax), notation.ShowSize(c.BodyBytesMax))
	}
	if len(c.Queues) > c.MaxQueues {
		ps.add("max-queues", "%d, but %d queues have settings", c.MaxQueues, len(c.Queues))
	}
	if err := c.egressProblem(); err != nil {
		ps.add("egress-allow", "%s", err)
	}
	return ps
}

// AsAdmin is the configuration of Zizq's admin listener, as that of a server with
// this one only.
func (c Config) AsAdmin() Config {
	c.Listener, c.TCP, c.Unix, c.Admin = c.AdminListener, true, "", false
	return c
}

// listenerContradictions are those of a listener whose settings have the prefix.
func (c Config) listenerContradictions(prefix string) (ps Problems) {
	// Whether there is a token in the store is known when that is open (Run).
	if c.reachable(true) != nil && !c.Insecure {
		ps.add(prefix+"host", "%s", c.reachable(len(c.Tokens) > 0))
	}
	switch {
	case c.TLSCert != "" && c.TLSKey == "":
		ps.add(prefix+"tls-cert", "needs %stls-key, the private key of that certificate", prefix)
	case c.TLSKey != "" && c.TLSCert == "":
		ps.add(prefix+"tls-key", "needs %stls-cert, the certificate of that key", prefix)
	case c.TLSClientCA != "" && c.TLSCert == "":
		ps.add(prefix+"tls-client-ca", "asks for certificates of clients, which there are with TLS only; give %[1]stls-cert and %[1]stls-key too", prefix)
	}
	return ps
}

// Problems is everything that is wrong with a configuration, said at once.
type Problems []Problem

// Problem is one thing that is wrong: where, and what.
type Problem struct {
	Where string `json:"where"` // as the person wrote it: --port, REPRISE_PORT, reprise.yaml:3: server.port
	Text  string `json:"text"`

	line int // in the file; 0 = not there
}

func (p Problem) String() string {
	if p.Where == "" {
		return p.Text
	}
	return p.Where + ": " + p.Text
}

// problemsMax bounds how many problems are told; the next start tells more.
const problemsMax = 50

func (ps Problems) Error() string {
	if len(ps) == 1 {
		return "the configuration has a problem: " + ps[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the configuration has %d problems:", len(ps))
	for i, p := range ps {
		if i == problemsMax {
			fmt.Fprintf(&b, "\n  and %d more", len(ps)-i)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

func (ps *Problems) add(where, format string, args ...any) {
	*ps = append(*ps, Problem{Where: where, Text: fmt.Sprintf(format, args...)})
}

// err is nil if there is no problem.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}
