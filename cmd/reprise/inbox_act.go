package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/wire"
)

// inboxAction is an action on messages of an inbox, as the server knows it.
type inboxAction struct {
	name, short string
	did         string // what is said of what it was done to
	head        string // what it does to the head of a group; "" = it is about all messages of one
	whole       bool   // on a whole group or inbox it counts groups or inboxes, not messages
	all         string // what --all chooses; "" = there is no such flag
	outOfOrder  bool   // has --allow-out-of-order
}

var (
	inboxPause  = inboxAction{name: "pause", short: "Stop a message, a group, some messages or the whole inbox", did: "paused", whole: true}
	inboxResume = inboxAction{name: "resume", short: "Go on with what was paused", did: "resumed", whole: true}
	inboxRetry  = inboxAction{name: "retry", short: "Try again now what waits for its next try or is exhausted", did: "to be tried now", head: "tried", outOfOrder: true}
	inboxSkip   = inboxAction{name: "skip", short: "Give up a message, or the head of a group, so that the group goes on", did: "skipped", head: "given up", all: "the head of each group of the inbox"}
	inboxDelete = inboxAction{name: "delete", short: "Delete messages", did: "deleted", all: "every message of the inbox"}
)

func newInboxActCommand(a inboxAction) *cobra.Command {
	var f messageFlags
	var everything, outOfOrder bool
	ofGroup := "group"
	if a.head != "" {
		ofGroup = "group,\nof which its head is " + a.head
	}
	cmd := verb{
		use: a.name + " NAME [MESSAGE]", short: a.short,
		long: a.short + `.

With a message it is about that one; with --status or --type about all messages
that fit, of --group if that is given; with --group alone about the ` + ofGroup + `;
otherwise about the whole inbox.`,
		example: "  reprise inbox " + a.name + " reservations m17\n  reprise inbox " + a.name + " reservations --group order-7",
		args:    []kind{inboxes, messages}, optional: 1,
		do: func(c *call) error {
			chosen := f.read(c)
			act := wire.InboxAct{
				Action: a.name, Group: chosen.Group, Statuses: chosen.Statuses, Types: chosen.Types,
				All: everything, AllowOutOfOrder: outOfOrder,
			}
			if len(c.args) > 1 {
				act.Message = c.args[1]
			}
			done, err := c.cl.ActOnInbox(c.Context(), c.args[0], act)
			if err == nil {
				c.say("%s", a.told(&act, done))
			}
			return err
		},
	}.command()
	f.register(cmd)
	if a.all != "" {
		cmd.Flags().BoolVar(&everything, "all", false, a.all)
	}
	if a.outOfOrder {
		cmd.Flags().BoolVar(&outOfOrder, "allow-out-of-order", false, "also a message whose ordered group went on without it")
	}
	return cmd
}

// told says what became of an action.
func (a *inboxAction) told(act *wire.InboxAct, done *wire.InboxActed) string {
	what := a.unit(act)
	text := plural(done.Changed, what) + " " + a.did
	if what == "inbox" && done.Changed != 1 {
		text = "nothing changed"
	}
	if done.Refused > 0 {
		text += fmt.Sprintf("; %d could not be, because of their state", done.Refused)
	}
	return text
}

// unit is what the server counted: messages, or heads, groups or inboxes.
func (a *inboxAction) unit(act *wire.InboxAct) string {
	some := act.Message != "" || len(act.Statuses)+len(act.Types) > 0
	switch {
	case a.head != "" && (!some && act.Group != nil || act.All):
		return "head"
	case a.whole && !some && act.Group != nil:
		return "group"
	case a.whole && !some:
		return "inbox"
	}
	return "message"
}

func newInboxEditCommand() *cobra.Command {
	var payload, due, expires string
	var f messageFlags
	cmd := verb{
		use: "edit NAME [MESSAGE]", short: "Change the payload or the dates of a message, or the dates of several",
		long: `Change the payload, the next due time or the expiry of a message that is not
being delivered; with --group alone, of the head of that group. A dead or
blocking one takes a payload, and is tried again with it. Its group stays what
it was when it came in.

With --status or --type the dates of all messages that fit, of --group if that
is given; else those of the whole inbox. Finished ones stay as they are.`,
		example: `  reprise inbox edit reservations m17 --payload '{"orderId": 8}'
  reprise inbox edit reservations m17 --due 2026-12-01T08:00:00Z
  reprise inbox edit reservations --status retrying --due 2026-12-01T08:00:00Z`,
		args: []kind{inboxes, messages}, optional: 1,
		do: func(c *call) error {
			edit, err := editOf(c.Command, payload, due, expires)
			if err != nil {
				return err
			}
			if len(c.args) == 1 {
				chosen := f.read(c)
				done, err := c.cl.ActOnInbox(c.Context(), c.args[0], wire.InboxAct{
					Action: "edit", Group: chosen.Group, Statuses: chosen.Statuses, Types: chosen.Types, InboxEdit: edit,
				})
				if err == nil {
					c.say("%s changed", plural(done.Changed, "message"))
				}
				return err
			}
			m, err := c.cl.EditMessage(c.Context(), c.args[0], c.args[1], edit)
			if err == nil {
				c.say("message %s is changed; it is %s", c.args[1], m.Status)
			}
			return err
		},
	}.command()
	f.register(cmd)
	cmd.Flags().StringVarP(&payload, "payload", "p", "", "new payload: JSON, - for standard input, or @FILE")
	cmd.Flags().StringVar(&due, "due", "", "when it is tried next, such as 2026-12-01T08:00:00Z")
	cmd.Flags().StringVar(&expires, "expires", "", "not delivered from then on")
	return cmd
}

// editOf is what the flags of an edit say.
func editOf(cmd *cobra.Command, payload, due, expires string) (edit wire.InboxEdit, err error) {
	if payload != "" {
		if edit.Payload, err = readPayload(payload, cmd.InOrStdin()); err != nil {
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
