package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// newInboxActCommand is a command for one action of the server.
func newInboxActCommand(action, short string) *cobra.Command {
	var f messageFlags
	var all, outOfOrder bool
	cmd := inboxCommand(&cobra.Command{
		Use: action + " NAME [MESSAGE]", Short: short,
		Long: short + `.

With a message it is about that one; with --status or --type about all messages
that fit, of --group if that is given; with --group alone about the group` + map[string]string{
			"retry": ",\nof which its head is tried", "skip": ",\nof which its head is given up",
		}[action] + `;
else about the whole inbox.`,
		Example: "  reprise inbox " + action + " reservations m17\n  reprise inbox " + action + " reservations --group order-7",
	}, 1, 2, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		chosen := f.read()
		act := wire.InboxAct{Action: action, Group: chosen.Group, Statuses: chosen.Statuses, Types: chosen.Types, All: all, AllowOutOfOrder: outOfOrder}
		if len(args) > 1 {
			act.Message = args[1]
		}
		done, err := cl.ActOnInbox(cmd.Context(), args[0], act)
		if err != nil {
			return err
		}
		what := "message"
		switch {
		case act.Message == "" && len(act.Statuses)+len(act.Types) == 0 && act.Group != nil && action != "delete":
			if what = "group"; action == "retry" || action == "skip" {
				what = "head"
			}
		case all && action == "skip":
			what = "head"
		case act.Message == "" && len(act.Statuses)+len(act.Types) == 0 && act.Group == nil && (action == "pause" || action == "resume"):
			what = "inbox"
		}
		verb := map[string]string{"pause": "paused", "resume": "resumed", "retry": "to be tried now", "skip": "skipped", "delete": "deleted"}[action]
		text := plural(done.Changed, what) + " " + verb
		if done.Changed != 1 && what == "inbox" {
			text = "nothing changed"
		}
		if done.Refused > 0 {
			text += fmt.Sprintf("; %d could not be, in their state", done.Refused)
		}
		fmt.Fprintln(cmd.OutOrStdout(), text)
		return nil
	})
	f.register(cmd)
	switch action {
	case "delete":
		cmd.Flags().BoolVar(&all, "all", false, "every message of the inbox")
	case "skip":
		cmd.Flags().BoolVar(&all, "all", false, "the head of each group of the inbox")
	}
	if action == "retry" {
		cmd.Flags().BoolVar(&outOfOrder, "allow-out-of-order", false, "also a message whose ordered group went on without it")
	}
	return cmd
}

func newInboxEditCommand() *cobra.Command {
	var payload, due, expires string
	var f messageFlags
	cmd := inboxCommand(&cobra.Command{
		Use: "edit NAME [MESSAGE]", Short: "Change the payload or the dates of a message, or the dates of several",
		Long: `Change the payload, the next due time or the expiry of a message that is not
being delivered; with --group alone, of the head of that group. A dead or
blocking one takes a payload, and is tried again with it. Its group stays what
it was when it came in.

With --status or --type the dates of all messages that fit, of --group if that
is given; else those of the whole inbox. Finished ones stay as they are.`,
		Example: `  reprise inbox edit reservations m17 --payload '{"orderId": 8}'
  reprise inbox edit reservations m17 --due 2026-12-01T08:00:00Z
  reprise inbox edit reservations --status retrying --due 2026-12-01T08:00:00Z`,
	}, 1, 2, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		edit, err := editOf(cmd, payload, due, expires)
		if err != nil {
			return err
		}
		if len(args) == 1 {
			chosen := f.read()
			done, err := cl.ActOnInbox(cmd.Context(), args[0], wire.InboxAct{
				Action: "edit", Group: chosen.Group, Statuses: chosen.Statuses, Types: chosen.Types, InboxEdit: edit,
			})
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), plural(done.Changed, "message")+" changed")
			}
			return err
		}
		m, err := cl.EditMessage(cmd.Context(), args[0], args[1], edit)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "message %s is changed; it is %s\n", printable(args[1]), m.Status)
		return nil
	})
	f.register(cmd)
	cmd.Flags().StringVarP(&payload, "payload", "p", "", "new payload: JSON, or - for standard input")
	cmd.Flags().StringVar(&due, "due", "", "when it is tried next, such as 2026-12-01T08:00:00Z")
	cmd.Flags().StringVar(&expires, "expires", "", "not delivered from then on")
	return cmd
}

// editOf is what the flags of an edit say.
func editOf(cmd *cobra.Command, payload, due, expires string) (edit wire.InboxEdit, err error) {
	if payload != "" {
		if edit.Payload, err = payloadText(cmd, payload); err != nil {
			return edit, err
		}
	}
	for _, date := range []struct {
		flag, text string
		into       **int64
	}{{"due", due, &edit.NextDue}, {"expires", expires, &edit.ExpiresAt}} {
		if date.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, date.text)
		if err != nil {
			return edit, usagef("--%s %s: write it as 2026-12-01T08:00:00Z", date.flag, date.text)
		}
		*date.into = new(at.UnixMilli())
	}
	if edit.Payload == nil && edit.NextDue == nil && edit.ExpiresAt == nil {
		return edit, usagef("say what is to change: --payload, --due or --expires")
	}
	return edit, nil
}
