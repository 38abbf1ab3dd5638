package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newInboxSendCommand() *cobra.Command {
	var m client.Message
	var ttl, at, expires, payload string
	var headers []string
	cmd := verb{
		use: "send NAME", short: "Send one message",
		example: `  reprise inbox send reservations --id m17 --payload '{"orderId": 7}'
  cat flight.json | reprise inbox send reservations --id m18 --payload - --header X-Correlation-Hint=order-7`,
		args: []kind{inboxes},
		do: func(c *call) error {
			var err error
			if m.Payload, err = readPayload(payload, c.InOrStdin()); err != nil {
				return err
			}
			if m.Headers, err = namedValues("header", headers); err != nil {
				return err
			}
			if m.Headers == nil {
				m.Headers = map[string]string{}
			}
			for name, value := range map[string]string{wire.CorrelateTTL: ttl, wire.CorrelateTimestamp: at, wire.CorrelateExpiration: expires} {
				if value != "" {
					m.Headers[name] = value
				}
			}
			a, err := c.cl.Send(c.Context(), c.args[0], m)
			if err != nil {
				return err
			}
			how := "is taken in"
			if a.Duplicate {
				how = "was here before"
			}
			c.say("message %s %s; its group is %s", cmp.Or(a.MessageID, a.ID), how, a.Group)
			return nil
		},
	}.command()
	flags := cmd.Flags()
	flags.StringVarP(&payload, "payload", "p", "", "the payload: JSON, - for standard input, or @FILE")
	flags.StringVar(&m.ID, "id", "", "id of the message, with which sending it again is harmless")
	flags.StringVarP(&m.Type, "type", "t", "", "full name of its type")
	flags.StringVar(&ttl, "ttl", "", "errors in this time after its receipt are not noted, such as PT10S or 10s")
	flags.StringVar(&at, "timestamp", "", "when what it tells happened, ISO 8601 with its zone")
	flags.StringVar(&expires, "expires", "", "not delivered from then on, ISO 8601 with its zone")
	flags.StringSliceVarP(&headers, "header", "H", nil, "further header, NAME=VALUE; may be repeated")
	must(cmd.MarkFlagRequired("payload"))
	return cmd
}
