package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

func newDeadMarkCommand() *cobra.Command {
	var conn connection
	var mute, pause, asJSON bool
	var note string
	cmd := &cobra.Command{
		Use:   "mark FINGERPRINT",
		Short: "Mute a group, pause its retries, or leave a note",
		Long: `Mute a group, pause its retries, or leave a note.

  --mute   it is known: "dead groups" leaves it out
  --pause  jobs that fail of it are held instead of retried, and so are those
           whose retry falls due; --pause=false lets all of them go on
  --note   for people; an empty one takes it back`,
		Example: `  reprise dead mark ede865b8574a584a --pause --note "smtp is down, ticket 4711"
  reprise dead mark ede865b8574a584a --pause=false --note ""
  reprise dead mark ede865b8574a584a --mute`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs one fingerprint, but was given %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var m wire.Mark
			given := cmd.Flags().Changed
			if given("mute") {
				m.Muted = &mute
			}
			if given("pause") {
				m.Paused = &pause
			}
			if given("note") {
				m.Note = &note
			}
			if m == (wire.Mark{}) {
				return usagef("say what shall change: --mute, --pause or --note")
			}
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			now, err := cl.Mark(cmd.Context(), args[0], m)
			if err != nil {
				return advise(err, cl)
			}
			if asJSON {
				return jsonLine(cmd.OutOrStdout(), now)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: muted %t, paused %t, note %q\n", now.Fingerprint, *now.Muted, *now.Paused, *now.Note)
			if _, err := cl.DeadGroup(cmd.Context(), args[0]); client.CodeOf(err) == wire.CodeNotFound {
				fmt.Fprintf(cmd.ErrOrStderr(), "Nothing is dead of it%s; the mark is kept for jobs to come.\n", spell.Hint(args[0], fingerprints.known(cmd, nil)))
			}
			return nil
		},
	}
	complete(cmd, false, fingerprints)
	conn.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&mute, "mute", false, "leave it out of \"dead groups\"")
	flags.BoolVar(&pause, "pause", false, "hold its jobs instead of retrying them")
	flags.StringVar(&note, "note", "", "a note for people")
	flags.BoolVar(&asJSON, "json", false, "print what is decided about it as a line of JSON")
	return cmd
}
