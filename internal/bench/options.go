package bench

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options say what to measure. Default gives every field a value; Validate
// reports all that is wrong at once.
type Options struct {
	// Phases to run, in the order of PhaseNames whatever the order here.
	Phases []string
	// Window is the length of each timed phase. A tenth of it, at most a
	// second, runs before it and is not counted.
	Window time.Duration
	// Jobs is the size of a backlog: of drain, backlog, memory and restart.
	// The storm takes a tenth of it.
	Jobs int64
	// Connections of the singles phase.
	Connections int
	// Streams of the idle phase.
	Streams int
	// Payload is the size of each job's payload in bytes of JSON.
	Payload int
	// Pairs is how often singles and backlog alternate between the two servers
	// they compare.
	Pairs int
	// Repeat runs each phase so many times, each on a fresh server and
	// directory.
	Repeat int
	// Rate in jobs a second makes singles an open loop, and is the rate of the
	// latency phase. 0: closed loop, and LatencyRate.
	Rate float64
	// Sync is handed to the server: always, interval or os.
	Sync string
	// URL of a running server. Empty: the bench starts its own, from Executable.
	URL string
	// Token is sent with every request to URL.
	Token string
	// TLS is for an https URL: own authorities, a certificate of the client.
	// nil: the authorities of the system.
	TLS *tls.Config
	// Executable is the program whose serve command is started.
	Executable string
	// ServerArgs are further arguments for it.
	ServerArgs []string
	// RootDir is where data directories are made and removed again. Empty: the
	// current directory.
	RootDir string
}

// LatencyRate is the rate of the latency phase unless Options.Rate is set.
const LatencyRate = 200

// Default returns the options of a full run.
func Default() Options {
	return Options{
		Phases:      PhaseNames(),
		Window:      10 * time.Second,
		Jobs:        1_000_000,
		Connections: 64,
		Streams:     10_000,
		Payload:     128,
		Pairs:       5,
		Repeat:      1,
		Sync:        "always",
	}
}

// Limits that keep a slip of the keyboard from filling a disk.
const (
	jobsMin        = 100
	jobsMax        = 100_000_000
	connectionsMax = 10_000
	streamsMax     = 25_000 // of one address to another there are about 28,000
	payloadMax     = 1 << 20
	timesMax       = 100
	rateMax        = 200_000
	windowMax      = time.Hour
)

// Validate reports every option that cannot be used.
func (o Options) Validate() error {
	var wrong []error
	refuse := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	refuse(len(o.Phases) > 0, "phases: none named; choose from %s", strings.Join(PhaseNames(), ","))
	for _, name := range o.Phases {
		refuse(slices.Contains(PhaseNames(), name), "phases: there is no phase %q; choose from %s",
			name, strings.Join(PhaseNames(), ","))
	}
	refuse(o.Window > 0 && o.Window <= windowMax, "seconds: %v is not between 0 and an hour", o.Window)
	refuse(o.Jobs >= jobsMin && o.Jobs <= jobsMax, "jobs: %d is not between %d and %d", o.Jobs, jobsMin, jobsMax)
	refuse(o.Connections >= 1 && o.Connections <= connectionsMax,
		"connections: %d is not between 1 and %d", o.Connections, connectionsMax)
	refuse(o.Streams >= 1 && o.Streams <= streamsMax,
		"streams: %d is not between 1 and %d", o.Streams, streamsMax)
	refuse(o.Payload >= payloadBytesMin && o.Payload <= payloadMax,
		"payload: %d is not between %d and %d bytes", o.Payload, payloadBytesMin, payloadMax)
	refuse(o.Pairs >= 1 && o.Pairs <= timesMax, "pairs: %d is not between 1 and %d", o.Pairs, timesMax)
	refuse(o.Repeat >= 1 && o.Repeat <= timesMax, "repeat: %d is not between 1 and %d", o.Repeat, timesMax)
	refuse(o.Rate >= 0 && o.Rate <= rateMax, "rate: %v is not between 0 and %d a second", o.Rate, rateMax)
	refuse(slices.Contains([]string{"always", "interval", "os"}, o.Sync),
		"sync: %q is none of always, interval, os", o.Sync)
	if o.URL != "" {
		u, err := url.Parse(o.URL)
		refuse(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Trim(u.Path, "/") == "",
			"url: %q is not of the form http://HOST:PORT or https://HOST:PORT", o.URL)
	}
	refuse(strings.Trim(o.Token, tokenLetters) == "", "token: it must hold letters, digits, _ - and . only")
	refuse(o.URL != "" || o.Executable != "", "neither a URL nor a program to start is given")
	return errors.Join(wrong...)
}

const tokenLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

// warmUp is the time before each measured window.
func (o Options) warmUp() time.Duration { return min(time.Second, o.Window/10) }
