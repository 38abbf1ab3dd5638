package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/wire"
)

// What all commands have in common, so that none of them has to say it: --output
// beside --json, ls for list, no arguments, and help in sections of 80 columns.

// outputs are the values of --output.
var outputs = []string{outputTable, outputWide, outputJSON}

const (
	outputTable = "table" // for people, as wide as the terminal
	outputWide  = "wide"  // with whole names and further columns
	outputJSON  = "json"
)

// form is the flag --output, which sets --json of the same command.
type form struct {
	cmd    *cobra.Command
	asJSON *pflag.Flag
	value  string
}

func (o *form) String() string { return o.value }
func (o *form) Type() string   { return "form" }

func (o *form) Set(value string) error {
	if strings.Contains(value, "=") && o.cmd.Flags().Lookup("option") != nil {
		return errors.New("give options of a session with -O or --option")
	}
	if !slices.Contains(outputs, value) {
		return fmt.Errorf("there is no such output; use %s", strings.Join(outputs, ", "))
	}
	if o.value = value; value == outputWide {
		o.cmd.SetOut(plain{o.cmd.OutOrStdout()})
	}
	return o.asJSON.Value.Set(fmt.Sprint(value == outputJSON))
}

// isWide reports whether a command was asked for all it can show.
func isWide(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("output")
	return f != nil && f.Value.String() == outputWide
}

// group is a command that only has others below it.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = oneOfMine
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(below...)
	return cmd
}

// agree gives a command, and all below it, what all of them have.
func agree(cmd *cobra.Command) {
	if cmd.Name() == "list" {
		cmd.Aliases = append(cmd.Aliases, "ls")
	}
	if cmd.Args == nil && !cmd.HasSubCommands() {
		cmd.Args = noArguments
	}
	flags := cmd.Flags()
	if asJSON := flags.Lookup("json"); asJSON != nil && asJSON.Value.Type() == "bool" {
		flags.VarP(&form{cmd, asJSON, outputTable}, "output", "o", "what is printed: "+strings.Join(outputs, ", "))
		completeFlag(cmd, "output", words(outputs))
	}
	for _, below := range cmd.Commands() {
		agree(below)
	}
}

// orderFlag adds --oldest to a list that begins with the newest.
func orderFlag(cmd *cobra.Command, oldest *bool) {
	cmd.Flags().BoolVar(oldest, "oldest", false, "oldest first")
	cmd.Flags().BoolFunc("newest", "newest first, as without it", func(string) error { *oldest = false; return nil })
	must(cmd.Flags().MarkHidden("newest"))
}

// latestFlag adds --limit to a list of which the server tells the latest, in one answer.
func latestFlag(cmd *cobra.Command, latest *int, usual int) {
	cmd.Flags().IntVarP(latest, "limit", "n", usual, "show at most so many, the latest")
}

func checkLatest(latest int) error {
	if latest < 1 || latest > wire.PageLimitMax {
		return usagef("--limit must be between 1 and %d", wire.PageLimitMax)
	}
	return nil
}

// helpWidth is how wide the lines of a help text are.
const helpWidth = 80

// connectionFlags are told apart in help texts: nearly every command has them.
const connectionFlags = "connection"

// markConnection notes which of the flags that register adds are those of a connection.
func markConnection(flags *pflag.FlagSet, register func()) {
	var before []*pflag.Flag
	flags.VisitAll(func(f *pflag.Flag) { before = append(before, f) })
	register()
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(before, f) {
			must(flags.SetAnnotation(f.Name, connectionFlags, nil))
		}
	})
}

// serverFlags marks a command that takes the flags of "reprise serve".
const serverFlags = "server"

// helpInSections makes the help of a command, and of all below it, tell the settings of a
// server first, then its own flags and those of the connection behind them.
func helpInSections(root *cobra.Command) {
	cobra.AddTemplateFunc("sections", func(cmd *cobra.Command) string {
		own := config.FlagSection{Title: "Flags", Flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
		connection := config.FlagSection{Title: "Connection", Flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
		own.Flags.SortFlags, connection.Flags.SortFlags = cmd.Flags().SortFlags, false
		var settings []config.FlagSection
		if _, is := cmd.Annotations[serverFlags]; is {
			settings, own.Title = config.FlagSections(cmd.Flags()), "Other flags"
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if slices.ContainsFunc(settings, func(s config.FlagSection) bool { return s.Flags.Lookup(f.Name) != nil }) {
				return
			}
			if _, is := f.Annotations[connectionFlags]; is {
				connection.Flags.AddFlag(f)
			} else {
				own.Flags.AddFlag(f)
			}
		})
		return sections(append(settings, own, connection)...)
	})
	cobra.AddTemplateFunc("about", func(padding int, text string) string {
		return strings.Join(wrap(text, helpWidth-3-padding), "\n"+strings.Repeat(" ", 3+padding))
	})
	template := root.UsageTemplate()
	for theirs, ours := range map[string]string{
		"Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}": "{{sections . | trimTrailingWhitespaces}}",
		"{{rpad .Name .NamePadding }} {{.Short}}":                      "{{rpad .Name .NamePadding }} {{about .NamePadding .Short}}",
	} {
		if !strings.Contains(template, theirs) {
			panic("cobra's help has another template")
		}
		template = strings.ReplaceAll(template, theirs, ours)
	}
	root.SetUsageTemplate(template)
}

// wrap breaks a text into lines of at most so many characters, at its spaces.
func wrap(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func sections(list ...config.FlagSection) string {
	var b strings.Builder
	for _, s := range list {
		if s.Flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "%s:\n%s\n", s.Title, s.Flags.FlagUsagesWrapped(helpWidth))
		}
	}
	return b.String()
}

// plain hides that a writer is a terminal.
type plain struct{ io.Writer }
