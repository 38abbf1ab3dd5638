package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/wire"
)

func newJobsProgressCommand() *cobra.Command {
	var lease, text, checkpoint string
	var fraction float64
	cmd := verb{
		use:   "progress [ID]",
		short: "Tell how far the run of a job has come, from inside the command that runs it",
		long: `Tell how far the run of a job has come. A command that "reprise work --exec"
started needs to name neither the job nor its lease: both are in its environment
(REPRISE_ID, REPRISE_LEASE).

A checkpoint is on disk when this command returns; the next attempt at the job
finds it in REPRISE_CHECKPOINT. The command fails if the attempt does not
count any more, for example because the job was cancelled.`,
		example: `  reprise jobs progress --fraction 0.25 --text 'page 10 of 40'
  reprise jobs progress --checkpoint '{"page": 10}'`,
		args: []kind{jobs}, optional: 1,
		do: func(c *call) error {
			id, token := os.Getenv("REPRISE_ID"), cmp.Or(lease, os.Getenv("REPRISE_LEASE"))
			if len(c.args) > 0 {
				id = c.args[0]
			}
			if id == "" || token == "" {
				return usagef("%s needs a job and its lease: run it inside \"reprise work --exec\", or name ID and --lease", c.CommandPath())
			}
			p := wire.Progress{Text: text}
			if c.Flags().Changed("fraction") {
				p.Fraction = &fraction
			}
			if checkpoint != "" {
				if p.Checkpoint = json.RawMessage(checkpoint); !json.Valid(p.Checkpoint) {
					return usagef("--checkpoint is not JSON; a text needs its quotes, as in '\"page 10\"'")
				}
			}
			return c.cl.Report(c.Context(), id, token, p)
		},
	}.command()
	cmd.Flags().StringVar(&lease, "lease", "", "token of the delivery (default $REPRISE_LEASE)")
	cmd.Flags().Float64Var(&fraction, "fraction", 0, "share of the run that is done, 0 to 1")
	cmd.Flags().StringVar(&text, "text", "", "how far it is, in words")
	cmd.Flags().StringVar(&checkpoint, "checkpoint", "", "JSON that the next attempt gets")
	return cmd
}

// progressOf is what the worker of a job told of its run.
func progressOf(j *wire.Job, now time.Time) string {
	p := j.Progress
	if p == nil {
		return ""
	}
	var parts []string
	if p.Fraction != nil {
		parts = append(parts, fmt.Sprintf("%.0f %%", *p.Fraction*100))
	}
	if p.Text != "" {
		parts = append(parts, printable(p.Text))
	}
	if len(p.Checkpoint) > 0 {
		parts = append(parts, "checkpoint "+printable(clip(string(p.Checkpoint), 60)))
	}
	return strings.Join(append(parts, "told "+moment(p.At, now)), ", ")
}
