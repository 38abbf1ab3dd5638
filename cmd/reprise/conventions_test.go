package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f with each command there is.
func everyCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, below := range cmd.Commands() {
		everyCommand(below, f)
	}
}

// The help of each command fits a terminal of 80 columns, but for its examples, which
// are to be copied.
func TestHelpFitsATerminal(t *testing.T) {
	everyCommand(newRootCommand(), func(cmd *cobra.Command) {
		var help strings.Builder
		cmd.SetOut(&help)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(help.String()) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > helpWidth && !strings.Contains(cmd.Example, line) {
				t.Errorf("%s --help has a line of %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
	})
}

func TestEveryListIsLsAndEveryJSONIsAnOutput(t *testing.T) {
	everyCommand(newRootCommand(), func(cmd *cobra.Command) {
		if cmd.Name() == "list" && !slices.Contains(cmd.Aliases, "ls") {
			t.Errorf("%s is not ls", cmd.CommandPath())
		}
		asJSON, output := cmd.Flags().Lookup("json"), cmd.Flags().Lookup("output")
		if (asJSON == nil || asJSON.Value.Type() != "bool") != (output == nil) {
			t.Errorf("%s has only one of --json and --output", cmd.CommandPath())
		}
		if output == nil {
			return
		}
		if output.Shorthand != "o" {
			t.Errorf("%s --output is not -o", cmd.CommandPath())
		}
		for value, want := range map[string]string{"json": "true", "wide": "false", "table": "false"} {
			if err := cmd.ParseFlags([]string{"--output", value}); err != nil || asJSON.Value.String() != want {
				t.Errorf("%s --output %s: %v, and json is %s", cmd.CommandPath(), value, err, asJSON.Value)
			}
		}
		if err := cmd.ParseFlags([]string{"--output", "yaml"}); err == nil || !strings.Contains(err.Error(), "use table, wide, json") {
			t.Errorf("%s --output yaml: %v", cmd.CommandPath(), err)
		}
	})
}

// A list on a terminal loses the end of its widest cells, never whole columns; the first
// column, which says what a row is, stays.
func TestAListFitsATerminal(t *testing.T) {
	var out strings.Builder
	rows := newTable(&out, "ID", "QUEUE", "WHEN")
	rows.most = 50
	rows.row("03gq0x7k2m4v9c1d8f5h6j0a1", "a-queue-with-a-very-long-name-älter", "in 3 s")
	rows.row("03gq0x7k2m4v9c1d8f5h6j0a2", "q", "5 s ago")
	if err := rows.flush(); err != nil {
		t.Fatal(err)
	}
	want := `ID                         QUEUE           WHEN
03gq0x7k2m4v9c1d8f5h6j0a1  a-queue-with-…  in 3 s
03gq0x7k2m4v9c1d8f5h6j0a2  q               5 s ago
`
	if out.String() != want {
		t.Errorf("it is\n%s\nnot\n%s", out.String(), want)
	}
	if columns(io.Discard) != 0 {
		t.Error("what is no terminal has a width")
	}
}

// What cannot be the value of a flag is told in words for people, not in those of Go.
func TestABadValueIsToldInWords(t *testing.T) {
	everyCommand(newRootCommand(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			bad := cmd.ParseFlags([]string{"--" + f.Name + "=?"})
			if bad == nil {
				return
			}
			err := unknownFlag(cmd, bad)
			if _, ok := errors.AsType[*usageError](err); !ok || !strings.HasPrefix(err.Error(), "--"+f.Name+` "?": `) {
				t.Errorf("%s: %v", cmd.CommandPath(), err)
			}
			for _, word := range []string{"strconv", "invalid syntax", "time:", "parse", "unmarshal"} {
				if strings.Contains(err.Error(), word) {
					t.Errorf("%s: %v", cmd.CommandPath(), err)
				}
			}
		})
	})
}
