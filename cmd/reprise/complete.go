package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// Names that the server has. A command declares of what kind its arguments and the values
// of its flags are (complete, completeFlag). When a shell completes them, the server is
// asked; if it does not answer at once, nothing is offered, and nothing is said. When a
// command fails by a name that is not known, it tells which was meant (adviseNames).

const (
	completionWait = 500 * time.Millisecond
	completionMost = 100 // names are offered
)

// kind is a kind of names.
type kind struct {
	list string // the command that shows those there are, NAME being the argument before; "" = none

	// names tells those there are, each with what it is (may be ""), as far as they are
	// asked for. args are the arguments that stand before.
	names func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[string, string]
}

// files are no names of the server: the shell completes them itself.
var files = kind{}

// complete declares of what kinds the arguments of a command are. The last one is also
// that of all further arguments if more is true. It comes after RunE is set.
func complete(cmd *cobra.Command, more bool, kinds ...kind) {
	adviseNames(cmd, kinds)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		at := len(args)
		if more {
			at = min(at, len(kinds)-1)
		}
		if at >= len(kinds) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if kinds[at].names == nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return offer(cmd, kinds[at], args, args[at:], "", part)
	}
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
	const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	cl, err := connectionOf(cmd).client(client.Options{Timeout: completionWait, RetryFor: -1})
	if err != nil {
		return nil, how
	}
	defer cl.Close()
	ctx := cmd.Context()
	if ctx == nil { // a command that is only completed has none
		ctx = context.Background()
	}
	ctx, stop := context.WithTimeout(ctx, completionWait)
	defer stop()
	for name, about := range k.names(ctx, cl, args) {
		if printable(name) != name || !strings.HasPrefix(name, part) || slices.Contains(given, name) {
			continue
		}
		list = append(list, cobra.CompletionWithDesc(before+name, printable(about)))
		if len(list) == completionMost {
			break
		}
	}
	return list, how
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

// oneOf are names that need no server.
func oneOf(words ...string) kind {
	return kind{"", func(context.Context, *client.Client, []string) iter.Seq2[string, string] {
		return each(words, nil, func(w string) (string, string) { return w, "" })
	}}
}

// each tells the names of a list, none if it could not be read.
func each[T any](list []T, err error, name func(T) (string, string)) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if err != nil {
			return
		}
		for _, x := range list {
			if !yield(name(x)) {
				return
			}
		}
	}
}

// newest tells the first names of a list that is read page by page.
func newest[T any](rows iter.Seq2[T, error], name func(T) (string, string)) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for x, err := range rows {
			if err != nil || !yield(name(x)) {
				return
			}
		}
	}
}

var queues = kind{"reprise queue list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Queues(ctx)
	return each(list, err, func(name string) (string, string) { return name, "" })
}}

// queueGroups are the groups of a queue that stand aside.
var queueGroups = kind{"", func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[string, string] {
	if len(args) == 0 {
		return each[string](nil, nil, nil)
	}
	list, err := cl.Asides(ctx, args[0])
	return each(list, err, func(a wire.Aside) (string, string) { return a.Group, "" })
}}

var jobIDs = kind{"reprise jobs list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	return newest(cl.List(ctx, client.Filter{Newest: true, PageSize: completionMost}), func(j wire.Job) (string, string) {
		return j.ID, j.Queue + " " + j.Type + " " + j.Status
	})
}}

var deadIDs = kind{"reprise dead list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	return newest(cl.Dead(ctx, wire.DeadFilter{}, true, completionMost), func(j wire.DeadJob) (string, string) {
		return j.ID, j.Queue + " " + j.Type + " " + clip(lastError(&j), 40)
	})
}}

var fingerprints = kind{"reprise dead groups", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	return newest(cl.DeadGroups(ctx, client.GroupFilter{Muted: "any", PageSize: completionMost}), func(g wire.DeadGroup) (string, string) {
		return g.Fingerprint, fmt.Sprintf("%d × %s", g.Count, diedOf(&g))
	})
}}

var replays = kind{"reprise dead runs", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Replays(ctx, completionMost)
	return each(list, err, func(r wire.Replay) (string, string) { return r.ID, r.Action + " " + r.Status })
}}

var inboxes = kind{"reprise inbox list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Inboxes(ctx)
	return each(list, err, func(x wire.Inbox) (string, string) { return x.Name, "" })
}}

// messages are those of the inbox that is the first argument, the newest first.
var messages = kind{"reprise inbox list NAME", func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[string, string] {
	page, err := cl.Messages(ctx, args[0], client.MessageFilter{Desc: true, Limit: completionMost})
	if err != nil {
		return each[wire.InboxMessage](nil, err, nil)
	}
	return each(page.Messages, nil, func(m wire.InboxMessage) (string, string) {
		if m.MessageID != "" {
			return m.MessageID, m.Type + " " + m.Status
		}
		return m.ID, m.Type + " " + m.Status
	})
}}

// inboxGroups are those with unfinished messages.
var inboxGroups = kind{"reprise inbox groups NAME", func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[string, string] {
	if len(args) == 0 {
		return each[string](nil, nil, nil)
	}
	page, err := cl.InboxGroups(ctx, args[0], "", completionMost)
	if err != nil {
		return each[wire.InboxGroup](nil, err, nil)
	}
	return each(page.Groups, nil, func(g wire.InboxGroup) (string, string) { return g.Group, g.State })
}}

var sessions = kind{"reprise grid sessions", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Sessions(ctx)
	return each(list, err, func(s wire.Session) (string, string) { return s.ID, s.State })
}}

var engines = kind{"reprise grid engines", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Engines(ctx)
	return each(list, err, func(e wire.Engine) (string, string) { return e.ID, e.State + " on " + e.Host })
}}

var budgets = kind{"reprise budgets list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Budgets(ctx)
	return each(list, err, func(b wire.BudgetState) (string, string) { return b.Key, bound(&b.Budget) })
}}

var crons = kind{"reprise cron list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Crons(ctx)
	return each(list, err, func(name string) (string, string) { return name, "" })
}}

// cronEntries are those of the group that is the first argument.
var cronEntries = kind{"reprise cron show NAME", func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[string, string] {
	g, err := cl.Cron(ctx, args[0])
	if err != nil {
		return each[wire.CronEntry](nil, err, nil)
	}
	return each(g.Entries, nil, func(e wire.CronEntry) (string, string) { return e.Name, e.Expression })
}}

var tokens = kind{"reprise token list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Tokens(ctx)
	return each(list, err, func(t wire.Token) (string, string) { return t.Name, strings.Join(t.Scopes, ", ") })
}}

var locks = kind{"reprise lock list", func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[string, string] {
	list, err := cl.Locks(ctx)
	return each(list, err, func(l wire.Lock) (string, string) { return l.Name, l.Status + ", " + l.LockedBy })
}}
