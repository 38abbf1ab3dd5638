package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
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
		Args: cobra.NoArgs,
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
			cfg, _, err := server.Load(cmd.Flags(), os.Environ(), os.ReadFile)
			found := server.Doctor(cmd.Context(), cfg, err, peer)
			show := found.Write
			if asJSON {
				show = found.WriteJSON
			}
			return errors.Join(show(cmd.OutOrStdout()), found.Err())
		},
	}
	server.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&url, "url", "", "server to ask, instead of looking at the port; for https with $"+envCA+", $"+envCert+" and $"+envKey)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	groupFlags(cmd)
	return cmd
}

func newHealthCommand() *cobra.Command {
	var conn connection
	var ready bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a server whether it lives; for health checks of containers",
		Example: `  reprise health
  reprise health --ready --url http://127.0.0.1:7890`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := conn.client(client.Options{Timeout: 3 * time.Second})
			if err != nil {
				return err
			}
			ask, word := cl.Health, "alive"
			if ready {
				ask, word = cl.Ready, "ready"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
			defer cancel()
			if err := ask(ctx); err != nil {
				return advise(err, cl)
			}
			fmt.Fprintln(cmd.OutOrStdout(), word)
			return nil
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether it takes work in, too")
	return cmd
}
