package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/examples"
	"github.com/reprisehq/reprise/internal/demo"
)

func newDemoCommand() *cobra.Command {
	var file string
	var keep, asJSON bool
	var seed uint64
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what Reprise does, on a server of its own",
		Long: `Show what Reprise does, with real processes and real sockets, in about half a
minute:

  1. start a server on a fresh directory
  2. enqueue 1,200 webhook events through its API
  3. deliver them with "reprise work --http" to a receiver that is down for some
     seconds, slow for some, and answers 429 and 500 part of the time
  4. kill the server with SIGKILL in the middle, and start it again
  5. compare what the server counts with what the receiver saw

It fails if an event was lost. The directory is removed in the end.`,
		Example: `  reprise demo
  reprise demo --seed 7                 # another bad day
  reprise demo --file my-events.ndjson  # lines with a field "id"
  reprise demo --keep                   # leaves the data and the logs to look at`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return runDemo(ctx, cmd, file, seed, keep, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "NDJSON file with the events; each needs a field id (default: the one of examples/)")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of what the receiver does")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the directory with the data and the logs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the account as JSON; progress goes to standard error")
	return cmd
}

func runDemo(ctx context.Context, cmd *cobra.Command, file string, seed uint64, keep, asJSON bool) (err error) {
	var events io.Reader = bytes.NewReader(examples.Webhooks)
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("reading the events: %w", err)
		}
		defer func() { _ = f.Close() }()
		events = f
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program to start: %w", err)
	}
	dir, remove, err := demo.NewDir("")
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	told := out
	if asJSON {
		told = cmd.ErrOrStderr()
	}
	if keep {
		defer fmt.Fprintf(told, "Data and logs are in %s\n", dir)
	} else {
		defer func() { err = errors.Join(err, remove()) }()
	}
	screen, _ := told.(*os.File)
	report, err := demo.Run(ctx, demo.Options{
		Program: self, Events: events, Dir: dir, Seed: seed, Out: told, Live: screen != nil && isTerminal(screen),
	})
	if err != nil {
		return err
	}
	if asJSON {
		err = jsonLine(out, report)
	} else {
		fmt.Fprintln(out)
		err = report.Print(out)
	}
	return errors.Join(err, report.Err())
}
