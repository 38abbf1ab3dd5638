// Command reprise is the whole product in one binary: the server, a worker
// that needs no program of yours, and the tools to look at what goes on. This
// package turns flags into calls and answers into text. A command that calls the
// server is a verb (verb.go); what the server has is a noun (noun.go), from which
// lists, completion and advice on names come. Each noun has files of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/server"
)

func main() { os.Exit(run(newRootCommand(), os.Args[1:])) }

// run executes one command line and returns its exit code: 1 if what was asked
// for failed, 2 if it could not be understood.
func run(root *cobra.Command, args []string) int {
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return 0
	}
	if err = missingFlag(err); errors.Is(err, context.Canceled) { // only a signal does that
		err = &exitCode{exitInterrupted, errors.New("interrupted")}
	}
	if exit, ok := errors.AsType[*exitCode](err); ok {
		if exit.cause != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "reprise: %s\n", plainText(exit.cause))
		}
		return exit.code
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "reprise: %s\n", plainText(err))
	if _, ok := errors.AsType[*usageError](err); !ok {
		return 1
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Run \"%s --help\" for flags and examples.\n", cmd.CommandPath())
	return 2
}

// missingFlag gives what cobra says of a required flag that is missing our words
// and our exit code.
func missingFlag(err error) error {
	names, isOne := strings.CutPrefix(err.Error(), "required flag(s) ")
	if !isOne {
		return err
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(names, `"`), `"`)
	return usagef("--%s is missing", name)
}

func newRootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "reprise",
		Short: "A durable work queue that decides when failed work runs again",
		Long: `Reprise takes work in, hands it to workers, and keeps trying, by a policy that
is plain data, until the work is done or a person decides otherwise. Nothing
that was answered as accepted is lost.`,
		Example: `  reprise serve                                            # in one terminal
  reprise enqueue --queue mail --type hello --payload '{}'   # in another
  reprise work --queue mail --exec 'cat'                     # runs it
  reprise jobs list                                          # looks at what is left
  reprise demo                                               # shows it all, by itself`,
		SilenceErrors: true, SilenceUsage: true,
	}, newDemoCommand(), newVersionCommand())
	root.SetFlagErrorFunc(unknownFlag)
	add := func(title string, cmds ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, cmd := range cmds {
			cmd.GroupID = title
			root.AddCommand(cmd)
		}
	}
	add("Server:",
		newServeCommand(), newPipelineCommand(), newConfigCommand(), newTokenCommand(), newTLSCommand(), newBenchCommand(),
		newBackupCommand(), newRestoreCommand(), newCompactCommand(), newDoctorCommand(), newHealthCommand(),
	)
	add("Work:",
		newEnqueueCommand(), newWorkCommand(), newJobsCommand(), newDeadCommand(), newQueueCommand(), newInboxCommand(), newCronCommand(),
		newLockCommand(), newBudgetsCommand(), newPolicyCommand(), newAuditCommand(),
	)
	add("Tasks on engines:",
		newGridCommand(), newEngineCommand(),
	)
	root.Version = server.Version
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	agree(root)
	helpInSections(root)
	return root
}
