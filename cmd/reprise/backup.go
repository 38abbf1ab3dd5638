package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/backup"
	"github.com/reprisehq/reprise/internal/server"
)

func newBackupCommand() *cobra.Command {
	var conn connection
	var out string
	cmd := &cobra.Command{
		Use:   "backup --out FILE",
		Short: "Copy everything a running server keeps into a file",
		Long: `Copy everything a running server keeps into a file. Work goes on meanwhile, and
everything that was accepted before the backup began is in it.

The file is there whole or not at all: what comes is checked to its end mark,
written to disk and only then given its name. A file that exists is refused.`,
		Example: `  reprise backup --out reprise-$(date +%F).tar.gz
  reprise restore reprise-2026-03-01.tar.gz --root-dir ./restored`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usagef("where to? Give a file with --out")
			}
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			m, size, err := backup.Save(out, func() (io.ReadCloser, error) {
				body, err := cl.Backup(cmd.Context())
				if err != nil {
					return nil, advise(err, cl)
				}
				return body, nil
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s MiB, %s of %s MiB, version %s, format %d\n",
				out, mebibytes(size), plural(int64(m.Files), "file"), mebibytes(m.Bytes), m.Version, m.Format)
			return nil
		},
	}
	conn.register(cmd)
	cmd.Flags().StringVarP(&out, "out", "f", "", "file to write")
	must(cmd.MarkFlagFilename("out", "gz"))
	return cmd
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }

func newRestoreCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "restore FILE --root-dir DIR",
		Short: "Unpack a backup into a new directory",
		Long: `Unpack a backup into a new or empty directory, without a server, and open it
once to see that it is sound. Then start a server on that directory.

What was accepted after the backup was made is not in it, and what was finished
after it is in it as unfinished: that work runs again.`,
		Example: `  reprise restore reprise-2026-03-01.tar.gz --root-dir ./restored
  reprise serve --root-dir ./restored`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s takes one file", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return usagef("where to? Give a directory with --root-dir")
			}
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			server.Private()
			r, err := server.Restore(cmd.Context(), f, dir)
			if err != nil {
				return err
			}
			var counts []string
			for status, n := range r.Jobs {
				counts = append(counts, thousands(n)+" "+status)
			}
			slices.Sort(counts)
			if counts == nil {
				counts = []string{"none"}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "restored into %s: a backup of %s by version %s; jobs: %s\nStart it with: reprise serve --root-dir %s\n",
				dir, r.Made().Local().Format(forPeople), r.Version, strings.Join(counts, ", "), dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "root-dir", "", "new or empty directory to restore into")
	must(cmd.MarkFlagDirname("root-dir"))
	return cmd
}

func newCompactCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Give the disk space of deleted jobs back now",
		Long: `Make a running server rewrite its database, so that the space of what was
deleted comes back now. The server does so by itself over time; after a large
delete this is sooner. Work goes on meanwhile, slower, and it needs free space.`,
		Example: `  reprise compact
  reprise compact --url http://10.0.0.5:7890`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			if err := cl.Compact(cmd.Context()); err != nil {
				return advise(err, cl)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "compacted")
			return nil
		},
	}
	conn.register(cmd)
	return cmd
}
