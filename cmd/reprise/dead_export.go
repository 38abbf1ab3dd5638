package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
)

func newDeadExportCommand() *cobra.Command {
	var conn connection
	var filter deadFilter
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write dead jobs as JSON, one a line, with payload and latest error",
		Example: `  reprise dead export > dead.ndjson
  reprise dead export --queue mail --since 1d | jq -r '[.id, .error.message] | @tsv'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filter.read(time.Now()); err != nil {
				return err
			}
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			body, err := cl.ExportDead(cmd.Context(), filter.DeadFilter)
			if err != nil {
				return advise(err, cl)
			}
			defer func() { _ = body.Close() }()
			p := newProgress(cmd.ErrOrStderr())
			defer p.hide()
			lines := &lineCounter{to: cmd.OutOrStdout(), show: func(n int64) { p.show(plural(n, "job") + " written") }}
			if _, err := io.Copy(lines, body); err != nil {
				return fmt.Errorf("the export broke off after %s: %w", plural(lines.n, "job"), err)
			}
			return nil
		},
	}
	conn.register(cmd)
	filter.register(cmd)
	return cmd
}

// lineCounter counts the lines that pass.
type lineCounter struct {
	to   io.Writer
	n    int64
	show func(n int64)
}

func (c *lineCounter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(bytes.Count(b[:n], []byte{'\n'}))
	c.show(c.n)
	return n, err
}
