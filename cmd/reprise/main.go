// Command reprise is a durable work queue that decides when failed work runs again.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "reprise", SilenceErrors: true}
	root.AddCommand(newServeCommand(), newConfigCommand(), newBenchCommand())
	if err := root.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "reprise:", err)
		os.Exit(1)
	}
}
