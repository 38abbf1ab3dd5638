package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/server"
)

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start a server",
		Long: `Start a server and run until SIGINT or SIGTERM.

Work is taken in over HTTP on 127.0.0.1:7890 and kept in ./reprise-root. A stop
lets requests at work finish; a second signal ends the process at once. Nothing
that was answered as accepted is lost either way.

Every setting can be given as a flag, as an environment variable
(--sync-interval is REPRISE_SYNC_INTERVAL) or in a YAML file, the first of them
wins. The command "reprise config" with the same flags shows what would apply,
and why.`,
		Example: `  reprise serve
  reprise serve --port 0 --root-dir /var/lib/reprise
  reprise serve -c reprise.yaml --log-format json
  REPRISE_SYNC=interval reprise serve --sync-interval 20ms`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true // from here on the command line is not what is wrong
			server.Private()
			ctx, stop := untilSignal(cmd.Context())
			defer stop()

			cfg, report, err := config.Load(cmd.Flags(), os.Environ(), os.ReadFile)
			if err != nil {
				return err
			}
			again := make(chan struct{}, 1)
			defer onHangup(again)()
			cfg.Reload = config.Reload{Signal: again, Load: func() (config.Config, config.Report, error) {
				return config.Load(cmd.Flags(), os.Environ(), os.ReadFile)
			}}
			cfg.Log = server.NewLogger(cfg, os.Stdout, os.Stderr, isTerminal(os.Stderr))
			report.Tell(ctx, cfg.Log)
			return server.Run(ctx, cfg)
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Annotations = map[string]string{serverFlags: ""}
	helpInSections(cmd)
	return cmd
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends. Before it does,
// signals have their usual effect again: the second one ends the process.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals)
		end()
	}()
	return ctx, end
}

// onHangup sends on the channel at each SIGHUP, until the returned function is
// called. Two that come together are one.
func onHangup(again chan<- struct{}) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-signals:
				select {
				case again <- struct{}{}:
				default:
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(signals); close(done) }
}

// isTerminal reports whether a person probably reads what is written there.
// /dev/null is taken for a terminal too, where it does no harm.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
