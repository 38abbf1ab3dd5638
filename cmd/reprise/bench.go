package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/bench"
)

// benchFlags are the flags that need more than to be stored in an option.
type benchFlags struct {
	conn    connection // its token and certificates
	options bench.Options
	seconds float64
	json    string
}

// newBenchCommand is "reprise bench": flags in, bench.Run, report out.
func newBenchCommand() *cobra.Command {
	f := benchFlags{options: bench.Default()}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server and check that it loses nothing",
		Long:  benchHelp(),
		Example: `  # everything, about nine minutes
  reprise bench

  # how much of a request is the store: five turns each with and without one
  reprise bench --phases singles --pairs 5

  # a quick look while changing code
  reprise bench --phases bulk,drain --seconds 3 --jobs 200000

  # what the disk costs: the same without waiting for it
  reprise bench --phases singles,steady --sync os

  # open loop: 5,000 enqueues a second whatever the answers take
  reprise bench --phases singles,latency --rate 5000

  # another server that speaks the same protocol, result for a script
  reprise bench --url http://127.0.0.1:7890 --json - | jq '.figures[] | {phase, name, median}'`,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd)
		},
	}
	f.register(cmd)
	cmd.AddCommand(newBenchPipelineCommand())
	completeFlag(cmd, "sync", words{"always", "interval", "os"})
	completeFlag(cmd, "phases", words(bench.PhaseNames()))
	return cmd
}

func benchHelp() string {
	var b strings.Builder
	b.WriteString(`Measure a Reprise server from outside, over HTTP, and verify while measuring
that every accepted job is there, delivered once, and completed once. A count
that is wrong fails the run.

The bench starts its own servers, on fresh directories that it removes again,
and a server without a store to compare with. With --url it measures a server
that is running; what needs a process of its own is then skipped. Load generator
and server share the machine, so the report says what each of them used of it.

Phases:
`)
	for _, name := range bench.PhaseNames() {
		about := wrap(bench.PhaseAbout(name), helpWidth-12)
		fmt.Fprintf(&b, "  %-9s %s\n", name, strings.Join(about, "\n            "))
	}
	b.WriteString(`
Ctrl-C stops the servers and prints what was measured so far.`)
	return b.String()
}

func (f *benchFlags) register(cmd *cobra.Command) {
	o, flags := &f.options, cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.Phases, "phases", o.Phases, "phases to run, separated by commas")
	flags.Lookup("phases").DefValue = "all"
	flags.Float64Var(&f.seconds, "seconds", o.Window.Seconds(), "length of each timed phase; a tenth of it, at most 1 s, warms up before")
	flags.Int64Var(&o.Jobs, "jobs", o.Jobs, "size of a backlog (drain, backlog, memory, restart; storm takes a tenth)")
	flags.IntVar(&o.Connections, "connections", o.Connections, "connections of the singles phase")
	flags.IntVar(&o.Streams, "streams", o.Streams, "take streams of the idle phase")
	flags.IntVar(&o.Payload, "payload", o.Payload, "bytes of each job's payload")
	flags.Float64Var(&o.Rate, "rate", o.Rate, fmt.Sprintf("jobs/s of an open loop, for singles and latency (0: closed loop, latency at %d)", bench.LatencyRate))
	flags.IntVar(&o.Pairs, "pairs", o.Pairs, "turns of singles and backlog between the servers they compare")
	flags.IntVar(&o.Repeat, "repeat", o.Repeat, "runs of each phase; the table has their median, least and greatest")
	flags.StringVar(&o.Sync, "sync", o.Sync, "when the server answers: always (on disk), interval or os")
	markConnection(flags, func() {
		flags.StringVar(&o.URL, "url", o.URL, "measure a running server instead of starting one")
		f.conn.registerToken(cmd)
		f.conn.tls.register(flags)
	})
	flags.StringVar(&o.RootDir, "root-dir", o.RootDir, "where data directories are made (default: the current directory, as /tmp may be in memory)")
	flags.StringArrayVar(&o.ServerArgs, "server-arg", nil, "a further argument for the servers that are started (repeatable)")
	flags.StringVar(&f.json, "json", "", "also write the report as JSON to this file; - prints it instead of the table")
}

func (f *benchFlags) run(cmd *cobra.Command) error {
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	f.options.Window = time.Duration(f.seconds * float64(time.Second))
	if f.options.URL == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding the server to start: %w", err)
		}
		f.options.Executable = self
	} else {
		token, err := f.conn.token()
		if err != nil {
			return err
		}
		f.options.Token = token
		if f.options.TLS, err = f.conn.tls.load(); err != nil {
			return err
		}
		f.conn.url = f.options.URL
		cl, err := f.conn.client(client.Options{RetryFor: -1})
		if err != nil {
			return err
		}
		if _, err := cl.Version(ctx); err != nil { // before all else, in words
			return advise(err, cl)
		}
	}
	report, err := bench.Run(ctx, f.options, cmd.ErrOrStderr())
	if report == nil {
		return err
	}
	return errors.Join(err, f.write(report, cmd.OutOrStdout()))
}

// write prints the table, and the JSON where it was asked for; only one of
// them goes to standard output.
func (f *benchFlags) write(report *bench.Report, stdout io.Writer) error {
	switch f.json {
	case "":
		return report.Print(stdout)
	case "-":
		return report.WriteJSON(stdout)
	}
	file, err := os.Create(f.json)
	if err != nil {
		return errors.Join(err, report.Print(stdout))
	}
	return errors.Join(report.WriteJSON(file), file.Close(), report.Print(stdout))
}
