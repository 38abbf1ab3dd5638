package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/backup"
	"github.com/reprisehq/reprise/internal/server"
)

func newBackupCommand() *cobra.Command {
	var out string
	cmd := verb{
		use:   "backup --out FILE",
		short: "Copy everything a running server keeps into a file",
		long: `Copy everything a running server keeps into a file. Work goes on meanwhile, and
everything that was accepted before the backup began is in it.

The file is there whole or not at all: what comes is checked to its end mark,
written to disk and only then given its name. A file that exists is refused.`,
		example: `  reprise backup --out reprise-$(date +%F).tar.gz
  reprise restore reprise-2026-03-01.tar.gz --root-dir ./restored`,
		do: func(c *call) error {
			if out == "" {
				return usagef("where to? Give a file with --out")
			}
			m, size, err := backup.Save(out, func() (io.ReadCloser, error) { return c.cl.Backup(c.Context()) })
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s MiB, %s of %s MiB, version %s, format %d\n",
				out, mebibytes(size), plural(int64(m.Files), "file"), mebibytes(m.Bytes), m.Version, m.Format)
			return nil
		},
	}.command()
	cmd.Flags().StringVarP(&out, "out", "f", "", "file to write")
	must(cmd.MarkFlagFilename("out", "gz"))
	return cmd
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }

func newRestoreCommand() *cobra.Command {
	var dir string
	var acceptLoss bool
	cmd := &cobra.Command{
		Use:   "restore FILE|DAMAGED-DIR --root-dir DIR",
		Short: "Unpack a backup, or what can be read of a damaged directory, into a new directory",
		Long: `Unpack a backup into a new or empty directory, without a server, and open it
once to see that it is sound. Then start a server on that directory.

What was accepted after the backup was made is not in it, and what was finished
after it is in it as unfinished: that work runs again.

With a data directory instead of a file, take what can be read of it, for those
without a backup: its server must be stopped, and it is not changed. It says how
many jobs came over and what could not be read. Jobs whose row or payload cannot
be read are dead in queue "damaged" after the start. If anything is lost, the
exit code is 1 unless --accept-loss is given; what came over is there anyway.
Only where tokens may be lost, and none came over, it writes nothing without it.`,
		Example: `  reprise restore reprise-2026-03-01.tar.gz --root-dir ./restored
  reprise serve --root-dir ./restored
  reprise restore ./damaged-root --root-dir ./saved --accept-loss`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s takes one file or directory", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return usagef("where to? Give a directory with --root-dir")
			}
			info, err := os.Stat(args[0])
			if err != nil {
				return err
			}
			server.Private()
			if info.IsDir() {
				return salvage(cmd, args[0], dir, acceptLoss)
			}
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			r, err := server.Restore(cmd.Context(), f, dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "restored into %s: a backup of %s by version %s; jobs: %s\nStart it with: reprise serve --root-dir %s\n",
				dir, r.Made().Local().Format(forPeople), r.Version, statuses(r.Jobs), dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "root-dir", "", "new or empty directory to restore into")
	cmd.Flags().BoolVar(&acceptLoss, "accept-loss", false, "with a damaged directory: exit code 0 though something is lost, perhaps all tokens")
	must(cmd.MarkFlagDirname("root-dir"))
	return cmd
}

// statuses tells how many jobs there are of each.
func statuses(jobs map[string]int64) string {
	var counts []string
	for status, n := range jobs {
		counts = append(counts, thousands(n)+" "+status)
	}
	slices.Sort(counts)
	if counts == nil {
		return "none"
	}
	return strings.Join(counts, ", ")
}

const lossesShown = 20

// salvage takes what can be read of a damaged directory.
func salvage(cmd *cobra.Command, from, dir string, acceptLoss bool) error {
	r, err := server.Salvage(cmd.Context(), from, dir, acceptLoss)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	was := "how many there were is not known, as the server was not stopped properly"
	if r.Was >= 0 {
		was = fmt.Sprintf("there were %s when the server was stopped", thousands(r.Was))
	}
	fmt.Fprintf(out, "saved into %s what can be read of %s\njobs: %s came over; %s\n", dir, from, thousands(r.Salvaged.Jobs), was)
	fmt.Fprintf(out, "of these %s can be used (%s), and %s will be dead in queue \"damaged\"\n", thousands(r.Salvaged.Jobs-r.Aside), statuses(r.Jobs), thousands(r.Aside))
	for i, lost := range r.Lost {
		if i == lossesShown {
			fmt.Fprintf(out, "not read: and %s more\n", thousands(int64(len(r.Lost)-i)))
			break
		}
		fmt.Fprintf(out, "not read: %s\n", lost)
	}
	if r.Rows {
		fmt.Fprintln(out, "tokens or settings may be missing: look at `reprise token list` and `reprise queue list` before you start it for others")
	}
	fmt.Fprintf(out, "Start it with: reprise serve --root-dir %s\n", dir)
	if missing := r.Was - r.Salvaged.Jobs; r.Was >= 0 && missing > 0 {
		err = fmt.Errorf("lost: %s", plural(missing, "job"))
	} else if len(r.Lost) > 0 {
		err = errors.New("something could not be read, as told above")
	}
	if err == nil || acceptLoss {
		return nil
	}
	return fmt.Errorf("%w; %s is there all the same: start it, or look for a backup; with --accept-loss the exit code is 0", err, dir)
}

func newCompactCommand() *cobra.Command {
	return verb{
		use:   "compact",
		short: "Give the disk space of deleted jobs back now",
		long: `Make a running server rewrite its database, so that the space of what was
deleted comes back now. The server does so by itself over time; after a large
delete this is sooner. Work goes on meanwhile, slower, and it needs free space.`,
		example: `  reprise compact
  reprise compact --url http://10.0.0.5:7890`,
		do: func(c *call) error {
			return c.done(c.cl.Compact(c.Context()), "compacted")
		},
	}.command()
}
