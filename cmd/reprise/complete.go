package main

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
)

// Names that the server has. A command declares of what kind its arguments and the values
// of its flags are (verb.args, completeFlag). When a shell completes them, the server is
// asked; if it does not answer at once, nothing is offered, and nothing is said. When a
// command fails by a name that is not known, it tells which was meant (adviseName).

const (
	completionWait = 500 * time.Millisecond
	completionMost = 100 // names are offered
)

// kind is a kind of names: a noun, words, or files.
type kind interface {
	// told tells what an argument is that is one, and the command that lists them; either
	// may be "".
	told() (single, lister string)

	// names tells those there are, each with what it is (may be ""), as far as they are
	// asked for. args are the arguments that stand before.
	names(ctx context.Context, cl *client.Client, args []string) iter.Seq2[string, string]
}

// words are names that need no server; none = any text.
type words []string

func (words) told() (single, lister string) { return "", "" }

func (w words) names(context.Context, *client.Client, []string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, word := range w {
			if !yield(word, "") {
				return
			}
		}
	}
}

// files are no names of the server: the shell completes them itself.
type files struct{ words }

func (files) told() (single, lister string) { return "a file", "" }

// complete offers names for the next argument.
func (v verb) complete(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	at := len(args)
	if v.repeat {
		at = min(at, len(v.args)-1)
	}
	if at >= len(v.args) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if _, is := v.args[at].(files); is {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return offer(cmd, v.args[at], args, args[at:], "", part)
}

// completeFlag declares of what kind the value of a flag is, or its values if it takes
// several with commas.
func completeFlag(cmd *cobra.Command, name string, k kind) {
	must(cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if at := strings.LastIndexByte(part, ','); at >= 0 && cmd.Flags().Lookup(name).Value.Type() == "stringSlice" {
			before, part = part[:at+1], part[at+1:]
		}
		return offer(cmd, k, args, strings.Split(before, ","), before, part)
	}))
}

// offer gives the names that begin with part, without those that were given, and with
// before in front of each.
func offer(cmd *cobra.Command, k kind, args, given []string, before, part string) (list []string, _ cobra.ShellCompDirective) {
	for name, about := range asked(cmd, k, args) {
		if printable(name) != name || !strings.HasPrefix(name, part) || slices.Contains(given, name) {
			continue
		}
		list = append(list, cobra.CompletionWithDesc(before+name, printable(about)))
		if len(list) == completionMost {
			break
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// asked are the names of a kind that the server has now, as far as it tells at once.
func asked(cmd *cobra.Command, k kind, args []string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		cl, err := connectionOf(cmd).client(client.Options{Timeout: completionWait, RetryFor: -1})
		if err != nil {
			return
		}
		defer cl.Close()
		ctx := cmd.Context()
		if ctx == nil { // a command that is only completed has none
			ctx = context.Background()
		}
		ctx, stop := context.WithTimeout(ctx, completionWait)
		defer stop()
		k.names(ctx, cl, args)(yield)
	}
}

// connectionOf is what the flags of a command say of its connection.
func connectionOf(cmd *cobra.Command) *connection {
	said := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return &connection{
		url: said("url"), secret: said("token"), secretFile: said("token-file"),
		tls: tlsFiles{ca: said("tls-ca"), cert: said("tls-cert"), key: said("tls-key")},
	}
}
