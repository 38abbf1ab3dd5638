package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/server"
)

func newPipelineCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pipeline -c FILE",
		Short: "Run a configuration of Fluent Bit",
		Long: `Run a configuration of Fluent Bit, in its classic format or in YAML, as it is.

Records go from inputs through filters to outputs. What waits for an output is
on disk (Storage.path, else ./reprise-root), also over restarts, and what an
output refuses for good is among the dead jobs, to look at and to replay. The
API listens on 127.0.0.1:7890, as "reprise serve" does; its settings are
environment variables here, such as REPRISE_PORT.

Flags are those of Fluent Bit:
  -c FILE      the configuration
  -D           look at it, tell what is wrong, start nothing (--dry-run)
  -i, -F, -o   an input, a filter, an output: its name, or NAME://HOST:PORT/PATH
  -p KEY=VALUE a property of the one before it; -t TAG, -m MATCH
  -f SECONDS   Flush; -R FILE Parsers_File; -b FOLDER storage.path
  -H           HTTP_Server on; -L, -P its address and port
  -v, -q       log more, log nothing
  -w FOLDER    work in this folder
  -V           print the version

A configuration that cannot run is refused with all that is wrong with it, each
with its file and line. --dry-run looks at it and starts nothing.`,
		Example: `  reprise pipeline -c fluent-bit.conf
  reprise pipeline -c fluent-bit.conf --dry-run
  reprise pipeline -i dummy -p rate=10 -o stdout -m '*'
  tail -F app.log | reprise pipeline -i stdin -o http://127.0.0.1:8080/logs`,
		DisableFlagParsing: true, // they are those of another program
		Args:               cobra.ArbitraryArgs,
		RunE:               runPipeline,
	}
}

func runPipeline(cmd *cobra.Command, args []string) error {
	var r fluentconf.Report
	flags := fluentconf.ReadArguments(args, &r)
	if flags.Help || len(args) == 0 {
		return cmd.Help()
	}
	if err := r.Err(); err != nil {
		return usagef("%v", err)
	}
	if flags.Version {
		fmt.Fprintln(cmd.OutOrStdout(), "reprise", thisBuild().Version)
		return nil
	}
	if flags.Schema {
		return usagef("-J is not here; docs/pipeline.md lists all plugins, and --dry-run tells what is wrong with a property")
	}
	if flags.Workdir != "" {
		if err := os.Chdir(flags.Workdir); err != nil {
			return fmt.Errorf("-w: %w", err)
		}
	}
	none := &cobra.Command{}
	config.AddFlags(none.Flags())
	cfg, report, err := config.Load(none.Flags(), os.Environ(), os.ReadFile)
	if err != nil {
		return err
	}
	p := config.Pipeline{Name: config.PipelineName(flags.File), Path: flags.File, Flags: flags, Ends: true}
	c := server.ReadPipeline(cfg, p, slog.New(slog.DiscardHandler), &r)
	if flags.DryRun {
		return dryRun(cmd.ErrOrStderr(), &r)
	}
	if err := r.Err(); err != nil {
		return err
	}
	server.Private()
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	if path := c.Service.Text("storage.path"); path != "" {
		cfg.RootDir = path
	}
	if c.Service.Has("log_level") {
		cfg.LogLevel = levelOf(c.Service.Text("log_level"))
	}
	cfg.Pipelines = append(cfg.Pipelines, p)
	again := make(chan struct{}, 1)
	defer onHangup(again)()
	cfg.Reload = config.Reload{Signal: again, Load: func() (config.Config, config.Report, error) { return cfg, config.Report{}, nil }}
	cfg.Log = server.NewLogger(cfg, cmd.ErrOrStderr(), os.Stderr, isTerminal(os.Stderr))
	report.Tell(ctx, cfg.Log)
	return server.Run(ctx, cfg)
}

// dryRun tells what there is to tell, as the original does: what is wrong, or one line.
func dryRun(w io.Writer, r *fluentconf.Report) error {
	for _, n := range r.Notices() {
		fmt.Fprintf(w, "%s: notice: %s\n", n.At, n.Text)
	}
	if err := r.Err(); err != nil {
		return errors.New("the configuration cannot run:\n" + err.Error())
	}
	fmt.Fprintln(w, "configuration test is successful")
	return nil
}

// levelOf is Log_Level in our words.
func levelOf(name string) slog.Level {
	switch strings.ToLower(name) {
	case "off":
		return slog.LevelError + 4
	case "error":
		return slog.LevelError
	case "warn", "warning":
		return slog.LevelWarn
	case "debug", "trace":
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
