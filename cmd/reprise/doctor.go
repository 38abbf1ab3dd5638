package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/server"
)

func newDoctorCommand() *cobra.Command {
	var url string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a server depends on, and say what to do",
		Long: `Check what a server depends on: the configuration, the data directory and its
disk, every record of the store if no server uses it, the clock, the limits of
the system, the certificate, and who is at the address. What is not well comes
with what to do.

Takes the flags of "reprise serve" and changes nothing. The exit code is 1 if a
check fails; warnings do not count.`,
		Example: `  reprise doctor
  reprise doctor --root-dir /var/lib/reprise
  reprise doctor -c reprise.yaml --url http://127.0.0.1:7890 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			var peer *server.Peer
			if url != "" {
				cl, err := (&connection{url: url}).client(client.Options{Timeout: 3 * time.Second})
				if err != nil {
					return err
				}
				peer = &server.Peer{URL: cl.URL(), Ready: cl.Ready}
			}
			cfg, _, err := config.Load(cmd.Flags(), os.Environ(), os.ReadFile)
			found := server.Doctor(cmd.Context(), cfg, err, peer)
			show := found.Write
			if asJSON {
				show = found.WriteJSON
			}
			return errors.Join(show(cmd.OutOrStdout()), found.Err())
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&url, "url", "", "server to ask, instead of looking at the port; for https with $"+envCA+", $"+envCert+" and $"+envKey)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Annotations = map[string]string{serverFlags: ""}
	helpInSections(cmd)
	return cmd
}

func newHealthCommand() *cobra.Command {
	const patience = 3 * time.Second
	var ready bool
	cmd := verb{
		use:   "health",
		short: "Ask a server whether it lives; for health checks of containers",
		example: `  reprise health
  reprise health --ready --url http://127.0.0.1:7890`,
		options: client.Options{Timeout: patience},
		do: func(c *call) error {
			ask, word := c.cl.Health, "alive"
			if ready {
				ask, word = c.cl.Ready, "ready"
			}
			ctx, cancel := context.WithTimeout(c.Context(), patience)
			defer cancel()
			return c.done(ask(ctx), "%s", word)
		},
	}.command()
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether it takes work in, too")
	return cmd
}
