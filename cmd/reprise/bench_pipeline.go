package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/bench"
)

// newBenchPipelineCommand is "reprise bench pipeline".
func newBenchPipelineCommand() *cobra.Command {
	o := bench.PipelineOptions{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Measure a pipeline from a file to an HTTP server",
		Long: `Measure a pipeline: it reads a file of lines with input tail, keeps chunks on
disk, and sends them by output http as json_lines to a server in this process.
Every line must come. The processor time told is that of the pipeline alone.`,
		Example: `  reprise bench pipeline
  reprise bench pipeline --records 10000000 --dir /var/tmp
  reprise bench pipeline --json | jq .records_per_second`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Records < 1 || o.Bytes < 20 {
				return usagef("--records must be at least 1, and --bytes at least 20")
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			r, err := bench.Pipeline(ctx, o)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, r)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d records of %d bytes in %.2f s: %.0f a second, %.2f s of processor time a million, %d MB in memory at most\n",
				r.Records, o.Bytes, r.Seconds, r.PerSecond, r.CPU, r.Peak/1e6)
			if r.Delivered != r.Records {
				return fmt.Errorf("%d records came, and %d were written", r.Delivered, r.Records)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&o.Records, "records", 2_000_000, "`lines` of the file")
	cmd.Flags().IntVar(&o.Bytes, "bytes", 150, "`bytes` of a line, with its end")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "`directory` for the file and the store (default: that of the system)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
