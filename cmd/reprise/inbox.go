package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newInboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "Send to inboxes, look at what they hold, and put it right",
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
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newInboxListCommand(), newInboxShowCommand(), newInboxSendCommand(), newInboxGroupsCommand(),
		newInboxActCommand("pause", "Stop a message, a group, some messages or the whole inbox"),
		newInboxActCommand("resume", "Go on with what was paused"),
		newInboxActCommand("retry", "Try again now what waits for its next try or is exhausted"),
		newInboxActCommand("skip", "Give up a message, or the head of a group, so that the group goes on"),
		newInboxActCommand("delete", "Delete messages"),
		newInboxEditCommand(), newInboxSetCommand(), newInboxRemoveCommand(), newInboxPreviewCommand())
	return cmd
}

// inboxCommand is a command about one inbox, whose name is its first argument,
// and up to more arguments.
func inboxCommand(cmd *cobra.Command, least, most int, run func(cmd *cobra.Command, cl *client.Client, args []string) error) *cobra.Command {
	var conn connection
	conn.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("it is used as: %s", cmd.UseLine())
		}
		cl, err := conn.operator()
		if err != nil {
			return err
		}
		return advise(run(cmd, cl, args), cl)
	}
	complete(cmd, false, []kind{inboxes, messages}[:most]...)
	return cmd
}

// messageFlags choose messages of an inbox.
type messageFlags struct {
	client.MessageFilter
	group string
	cmd   *cobra.Command
}

func (f *messageFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().StringSliceVarP(&f.Statuses, "status", "s", nil, "only messages in these states: "+strings.Join(wire.InboxStatuses, ", "))
	cmd.Flags().StringSliceVarP(&f.Types, "type", "t", nil, "only messages of these types")
	cmd.Flags().StringVarP(&f.group, "group", "g", "", "only messages of this group")
	completeFlag(cmd, "status", oneOf(wire.InboxStatuses...))
	completeFlag(cmd, "group", inboxGroups)
}

// read puts together what the flags say.
func (f *messageFlags) read() client.MessageFilter {
	if f.cmd.Flags().Changed("group") {
		f.Group = &f.group
	}
	return f.MessageFilter
}

func newInboxListCommand() *cobra.Command {
	var asJSON bool
	var f messageFlags
	cmd := inboxCommand(&cobra.Command{
		Use: "list [NAME]", Short: "List the inboxes, or the messages of one",
		Example: `  reprise inbox list
  reprise inbox list reservations --status blocking,retrying
  reprise inbox list reservations --group order-7 --json`,
	}, 0, 1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		if len(args) == 0 {
			return listInboxes(cmd, cl, asJSON)
		}
		return listMessages(cmd, cl, args[0], f.read(), asJSON)
	})
	f.register(cmd)
	cmd.Flags().IntVarP(&f.Limit, "limit", "n", 50, "messages at most")
	cmd.Flags().BoolVar(&f.Desc, "newest", false, "newest first")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each")
	return cmd
}

func listInboxes(cmd *cobra.Command, cl *client.Client, asJSON bool) error {
	list, err := cl.Inboxes(cmd.Context())
	if err != nil {
		return err
	}
	t := newList(cmd.OutOrStdout(), "no inbox; \"reprise inbox set NAME -f FILE\" makes one", "INBOX", "WAIT", "DELIVERING", "RETRYING", "PAUSED", "BLOCKING", "DEAD", "GROUPS", "BLOCKED", "STATE")
	for i := range list {
		x := &list[i]
		if asJSON {
			if err := jsonLine(cmd.OutOrStdout(), x); err != nil {
				return err
			}
			continue
		}
		m := &x.Messages
		t.row(x.Name, whole(m.InProgress), whole(m.Delivering), whole(m.Retrying), whole(m.Paused), whole(m.Blocking), whole(m.Dead),
			whole(x.Groups.Total), whole(x.Groups.Blocked), inboxState(x))
	}
	if asJSON {
		return nil
	}
	return t.flush()
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

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

func listMessages(cmd *cobra.Command, cl *client.Client, inbox string, f client.MessageFilter, asJSON bool) error {
	t := newList(cmd.OutOrStdout(), "no such message", "ID", "MESSAGE", "GROUP", "STATUS", "ATTEMPTS", "RECEIVED", "NEXT DUE")
	left := f.Limit
	for left > 0 {
		f.Limit = min(left, wire.PageLimitMax)
		page, err := cl.Messages(cmd.Context(), inbox, f)
		if err != nil {
			return err
		}
		for i := range page.Messages {
			if err := messageRow(cmd.OutOrStdout(), t, &page.Messages[i], asJSON); err != nil {
				return err
			}
		}
		left -= len(page.Messages)
		if f.From = page.Next; page.Next == "" {
			break
		}
	}
	if asJSON {
		return nil
	}
	return t.flush()
}

func messageRow(w io.Writer, t *table, m *wire.InboxMessage, asJSON bool) error {
	if asJSON {
		return jsonLine(w, m)
	}
	status, due := m.Status, "-"
	if m.Reason != "" {
		status += ", " + m.Reason
	}
	now := time.Now()
	if m.NextDue > 0 {
		due = dueIn(m.NextDue, now)
	}
	t.row(m.ID, orDash(m.MessageID), m.Group, status, strconv.Itoa(m.Attempts), distance(time.UnixMilli(m.Received), now), due)
	return nil
}

// dueIn says when something is due.
func dueIn(ms int64, now time.Time) string {
	if at := time.UnixMilli(ms); at.After(now) {
		return distance(at, now)
	}
	return "now"
}

func newInboxShowCommand() *cobra.Command {
	var asJSON bool
	cmd := inboxCommand(&cobra.Command{
		Use: "show NAME [MESSAGE]", Short: "Show an inbox, or one of its messages with its latest error",
		Example: `  reprise inbox show reservations
  reprise inbox show reservations m17`,
	}, 1, 2, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		var v any
		var err error
		if len(args) == 1 {
			v, err = cl.Inbox(cmd.Context(), args[0])
		} else {
			v, err = cl.Message(cmd.Context(), args[0], args[1])
		}
		if err != nil {
			return err
		}
		if asJSON {
			return jsonLine(cmd.OutOrStdout(), v)
		}
		if m, is := v.(*wire.InboxMessage); is {
			return showMessage(cmd.OutOrStdout(), m, time.Now())
		}
		raw, err := json.MarshalIndent(v, "", "  ")
		fmt.Fprintln(cmd.OutOrStdout(), printableLines(string(raw), ""))
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	return cmd
}

func showMessage(w io.Writer, m *wire.InboxMessage, now time.Time) error {
	t := newTable(w)
	line := func(name, value string) {
		if value != "" {
			t.row(name, value)
		}
	}
	date := func(ms int64) string {
		if ms == 0 {
			return ""
		}
		return moment(ms, now)
	}
	line("id", m.ID)
	line("message", m.MessageID)
	line("group", m.Group)
	line("status", m.Status)
	line("reason", m.Reason)
	line("type", m.Type)
	line("received", date(m.Received))
	line("attempts", fmt.Sprintf("%d noted, %d inside the time to live", m.Attempts, m.Suppressed))
	line("next due", date(m.NextDue))
	line("expires", date(m.ExpiresAt))
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
	var asJSON bool
	var states []string
	var limit int
	cmd := inboxCommand(&cobra.Command{
		Use: "groups NAME", Short: "List the groups that have unfinished messages, and what stops them",
		Example: `  reprise inbox groups reservations --state blocked`,
	}, 1, 1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		t := newList(cmd.OutOrStdout(), "no such group has unfinished messages", "GROUP", "STATE", "MESSAGES", "HEAD", "ATTEMPTS", "NEXT DUE")
		from := ""
		for left := limit; left > 0; {
			page, err := cl.InboxGroups(cmd.Context(), args[0], from, min(left, wire.PageLimitMax), states...)
			if err != nil {
				return err
			}
			for i := range page.Groups {
				if err := groupRow(cmd.OutOrStdout(), t, &page.Groups[i], asJSON); err != nil {
					return err
				}
			}
			left -= len(page.Groups)
			if from = page.Next; from == "" {
				break
			}
		}
		if asJSON {
			return nil
		}
		return t.flush()
	})
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these states: "+strings.Join(wire.InboxGroupStates, ", "))
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "groups at most")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each")
	completeFlag(cmd, "state", oneOf(wire.InboxGroupStates...))
	return cmd
}

func groupRow(w io.Writer, t *table, g *wire.InboxGroup, asJSON bool) error {
	if asJSON {
		return jsonLine(w, g)
	}
	head, attempts, due := "-", "-", "-"
	if h := g.Head; h != nil {
		head, attempts = orElse(h.MessageID, h.ID), strconv.Itoa(h.Attempts)
		if h.NextDue > 0 {
			due = dueIn(h.NextDue, time.Now())
		}
	}
	t.row(g.Group, g.State, whole(g.Messages), head, attempts, due)
	return nil
}
