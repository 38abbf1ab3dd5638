package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newInboxCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "inbox",
		Short: "Send to inboxes, look at their messages, and repair what is stuck",
		Long: `An inbox stores messages and delivers them in order per group, such as the
messages of one order, once their receiver is ready. docs/inbox.md explains it.

A message is in one of these states:
  in_progress  waits, and no error of it was noted
  delivering   is with its receiver
  retrying     failed, and waits for its next try
  paused       an operator stopped it
  blocking     exhausted, and its group does not go on without it
  dead         given up: skipped, expired, or exhausted with onExhausted skip
  delivered    done; stays only as long as the retention says`,
		Example: `  reprise inbox list
  reprise inbox groups reservations --state blocked
  reprise inbox retry reservations --group order-7`,
	}, newInboxListCommand(), newInboxShowCommand(), newInboxSendCommand(), newInboxGroupsCommand(),
		newInboxActCommand(inboxPause), newInboxActCommand(inboxResume), newInboxActCommand(inboxRetry), newInboxActCommand(inboxSkip), newInboxActCommand(inboxDelete),
		newInboxEditCommand(), newInboxSetCommand(), newInboxRemoveCommand(), newInboxPreviewCommand())
}

var inboxes = &noun[wire.Inbox]{
	single: "the name of an inbox", lister: "reprise inbox list",
	read: all((*client.Client).Inboxes),
	name: func(x *wire.Inbox) (string, string) { return x.Name, "" },

	none:  "no inbox; \"reprise inbox set NAME -f FILE\" makes one",
	heads: []string{"INBOX", "WAIT", "DELIVERING", "RETRYING", "PAUSED", "BLOCKING", "DEAD", "GROUPS", "BLOCKED", "STATE"},
	row: func(t *table, x *wire.Inbox) {
		m := &x.Messages
		t.row(x.Name, whole(m.InProgress), whole(m.Delivering), whole(m.Retrying), whole(m.Paused), whole(m.Blocking), whole(m.Dead),
			whole(x.Groups.Total), whole(x.Groups.Blocked), inboxState(x))
	},
}

// messages are those of the inbox that is the first argument, the newest first.
var messages = &noun[wire.InboxMessage]{
	lister: "reprise inbox list NAME", within: true,
	read: func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[wire.InboxMessage, error] {
		return cl.Messages(ctx, args[0], client.MessageFilter{Desc: true, Limit: completionMost})
	},
	name: func(m *wire.InboxMessage) (string, string) { return cmp.Or(m.MessageID, m.ID), m.Type + " " + m.Status },

	none:  "no such message",
	heads: []string{"ID", "MESSAGE", "GROUP", "STATUS", "ATTEMPTS", "RECEIVED", "NEXT DUE"},
	row: func(t *table, m *wire.InboxMessage) {
		status := m.Status
		if m.Reason != "" {
			status += ", " + m.Reason
		}
		t.row(m.ID, orDash(m.MessageID), m.Group, status, strconv.Itoa(m.Attempts), ago(m.Received), dueIn(m.NextDue))
	},
}

// inboxGroups are those with unfinished messages.
var inboxGroups = &noun[wire.InboxGroup]{
	lister: "reprise inbox groups NAME", within: true,
	read: func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[wire.InboxGroup, error] {
		return cl.InboxGroups(ctx, args[0], completionMost)
	},
	name: func(g *wire.InboxGroup) (string, string) { return g.Group, g.State },

	none:  "no such group has unfinished messages",
	heads: []string{"GROUP", "STATE", "MESSAGES", "HEAD", "ATTEMPTS", "NEXT DUE"},
	row: func(t *table, g *wire.InboxGroup) {
		head, attempts, due := "-", "-", "-"
		if h := g.Head; h != nil {
			head, attempts, due = cmp.Or(h.MessageID, h.ID), strconv.Itoa(h.Attempts), dueIn(h.NextDue)
		}
		t.row(g.Group, g.State, whole(g.Messages), head, attempts, due)
	},
}

// messageFlags choose messages of an inbox.
type messageFlags struct {
	client.MessageFilter
	group string
}

func (f *messageFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.Statuses, "status", "s", nil, "only messages in these states: "+strings.Join(wire.InboxStatuses, ", "))
	cmd.Flags().StringSliceVarP(&f.Types, "type", "t", nil, "only messages of these types")
	cmd.Flags().StringVarP(&f.group, "group", "g", "", "only messages of this group")
	completeFlag(cmd, "status", words(wire.InboxStatuses))
	completeFlag(cmd, "group", inboxGroups)
}

// read puts together what the flags say.
func (f *messageFlags) read(c *call) client.MessageFilter {
	if c.Flags().Changed("group") {
		f.Group = &f.group
	}
	return f.MessageFilter
}

func newInboxListCommand() *cobra.Command {
	var f messageFlags
	cmd := verb{
		use: "list [NAME]", short: "List the inboxes, or the messages of one",
		example: `  reprise inbox list
  reprise inbox list reservations --status blocking,retrying
  reprise inbox list reservations --group order-7 --json`,
		args: []kind{inboxes}, optional: 1,
		json:  "print one line of JSON for each",
		limit: 50,
		do: func(c *call) error {
			if len(c.args) == 0 {
				return inboxes.list(c, inboxes.read(c.Context(), c.cl, nil))
			}
			f.Limit = c.perPage()
			return messages.list(c, c.cl.Messages(c.Context(), c.args[0], f.read(c)))
		},
	}.command()
	f.register(cmd)
	cmd.Flags().BoolVar(&f.Desc, "newest", false, "newest first")
	return cmd
}

// inboxState says in a few words how an inbox works.
func inboxState(x *wire.Inbox) string {
	state := "works"
	switch {
	case x.Problem != "":
		return "does not deliver: " + x.Problem
	case x.Paused:
		state = "paused"
	}
	if x.Ordered {
		return state + ", ordered"
	}
	return state + ", not ordered behind a failure"
}

// dueIn says when something is due.
func dueIn(ms int64) string {
	switch at := time.UnixMilli(ms); {
	case ms <= 0:
		return "-"
	case at.After(time.Now()):
		return ago(ms)
	}
	return "now"
}

func newInboxShowCommand() *cobra.Command {
	return verb{
		use: "show NAME [MESSAGE]", short: "Show an inbox, or one of its messages with its latest error",
		example: `  reprise inbox show reservations
  reprise inbox show reservations m17`,
		args: []kind{inboxes, messages}, optional: 1,
		json: "print one line of JSON",
		do: func(c *call) error {
			if len(c.args) == 1 {
				x, err := c.cl.Inbox(c.Context(), c.args[0])
				return c.show(x, err, func(w io.Writer) error { return laidOut(w, x) })
			}
			m, err := c.cl.Message(c.Context(), c.args[0], c.args[1])
			return c.show(m, err, func(w io.Writer) error { return showMessage(w, m, time.Now()) })
		},
	}.command()
}

func showMessage(w io.Writer, m *wire.InboxMessage, now time.Time) error {
	t := newTable(w)
	t.tell("id", m.ID)
	t.tell("message", m.MessageID)
	t.tell("group", m.Group)
	t.tell("status", m.Status)
	t.tell("reason", m.Reason)
	t.tell("type", m.Type)
	t.tell("received", at(m.Received, now))
	t.tell("attempts", fmt.Sprintf("%d noted, %d inside the time to live", m.Attempts, m.Suppressed))
	t.tell("next due", at(m.NextDue, now))
	t.tell("expires", at(m.ExpiresAt, now))
	if err := t.flush(); err != nil {
		return err
	}
	if e := m.Error; e != nil {
		fmt.Fprintf(w, "error of attempt %d, %s:\n", e.Attempt, moment(e.At, now))
		fmt.Fprintln(w, printableLines(strings.TrimSpace(e.Type+" "+e.Text), "  "))
		if e.Trace != "" {
			fmt.Fprintln(w, printableLines(e.Trace, "    "))
		}
	}
	fmt.Fprintln(w, "payload:")
	fmt.Fprintln(w, printableLines(indented(m.Payload), "  "))
	return nil
}

func newInboxGroupsCommand() *cobra.Command {
	var states []string
	cmd := verb{
		use: "groups NAME", short: "List the groups that have unfinished messages, and what stops them",
		example: `  reprise inbox groups reservations --state blocked`,
		args:    []kind{inboxes},
		json:    "print one line of JSON for each",
		limit:   50,
		do: func(c *call) error {
			return inboxGroups.list(c, c.cl.InboxGroups(c.Context(), c.args[0], c.perPage(), states...))
		},
	}.command()
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these states: "+strings.Join(wire.InboxGroupStates, ", "))
	completeFlag(cmd, "state", words(wire.InboxGroupStates))
	return cmd
}
