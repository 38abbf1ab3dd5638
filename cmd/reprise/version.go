package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/server"
)

// build is what "reprise version --json" prints.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Server   string `json:"server,omitempty"` // version of the server that was asked
}

func newVersionCommand() *cobra.Command {
	var conn connection
	var ask, asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and of a server",
		Example: `  reprise version
  reprise version --server           # also ask the server at --url
  reprise version --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if ask {
				cl, err := conn.client(client.Options{})
				if err != nil {
					return err
				}
				v, err := cl.Version(cmd.Context())
				if err != nil {
					return advise(err, cl)
				}
				if b.Server = v.Reprise; b.Server == "" {
					b.Server = v.Version + " (not Reprise)"
				}
			}
			if asJSON {
				return jsonLine(cmd.OutOrStdout(), b)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "reprise %s (%s, %s)\n", b.Version, b.Go, b.Platform)
			if b.Commit != "" {
				fmt.Fprintf(out, "commit %s%s\n", b.Commit, map[bool]string{true: ", with changes"}[b.Modified])
			}
			if b.Server != "" {
				fmt.Fprintf(out, "server %s\n", printable(b.Server))
			}
			return nil
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&ask, "server", false, "ask the server for its version too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	return cmd
}

func thisBuild() build {
	b := build{Version: server.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
