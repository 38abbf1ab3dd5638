package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/server"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

func newTokenCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of a server",
		Long: `Make, list and revoke the tokens of a server.

A server without tokens serves everybody who can connect. From its first token
on every call needs a token, which says what may be done and with which queues.
The first token is made on the host of the server, and has the scope admin.

Scopes:
  enqueue  put jobs in
  work     take jobs, extend and settle
  read     look at everything, payloads included
  operate  change queues and jobs, delete and replay
  admin    all of these, and tokens`,
		Example: `  reprise token create --name root --scope admin > root.token
  reprise token create --name ci --scope enqueue --queue 'mail-*' --expires 90d
  reprise token list
  reprise token revoke ci`,
	}, newTokenCreateCommand(), tokens.listCommand(), newTokenRevokeCommand(), newTokenGenerateCommand())
}

func newTokenCreateCommand() *cobra.Command {
	var ask wire.NewToken
	var expires string
	cmd := verb{
		use:   "create",
		short: "Make a token and print it, once",
		long: `Make a token and print it, once. The server keeps only its hash: a token that is
lost is revoked, and another one made.`,
		example: `  reprise token create --name root --scope admin > root.token
  reprise token create --name ci --scope enqueue --queue 'mail-*' --expires 90d
  reprise token create --name worker-7 --scope work --queue mail,bills --json`,
		json: "print the token and what is known of it as a line of JSON",
		do: func(c *call) error {
			if ask.Name == "" || len(ask.Scopes) == 0 {
				return usagef("say whose token it is, and what it may do: --name and --scope")
			}
			if err := until(&ask, expires); err != nil {
				return err
			}
			made, err := c.cl.CreateToken(c.Context(), ask)
			return c.show(made, err, func(w io.Writer) error {
				c.note("token %s (%s); it is shown this once:", made.Name, strings.Join(made.Scopes, ", "))
				_, err := fmt.Fprintln(w, made.Secret)
				return err
			})
		},
	}.command()
	flags := cmd.Flags()
	flags.StringVar(&ask.Name, "name", "", "whose it is, for people and the audit log")
	flags.StringSliceVar(&ask.Scopes, "scope", nil, "what it may do: "+strings.Join(scopes, ", ")+"; may be repeated")
	flags.StringSliceVar(&ask.Queues, "queue", nil, "queues it is for, where * stands for any text; may be repeated (default: all)")
	flags.StringVar(&expires, "expires", "", "when it ends: 12h, 90d, or 2027-01-02T15:04:05Z (default: never)")
	completeFlag(cmd, "scope", words(scopes))
	completeFlag(cmd, "queue", queues)
	return cmd
}

var scopes = []string{wire.ScopeEnqueue, wire.ScopeWork, wire.ScopeRead, wire.ScopeOperate, wire.ScopeAdmin}

// until reads when a token ends: a span such as 90d, by the server's clock, or
// a time.
func until(ask *wire.NewToken, text string) error {
	if text == "" {
		return nil
	}
	now := time.Now()
	at, err := instant("--expires", text, now)
	if _, timed := time.Parse(time.RFC3339, text); err == nil && timed == nil {
		ask.ExpiresAt = at
	} else if err == nil {
		ask.ExpiresIn = now.UnixMilli() - at
	}
	return err
}

var tokens = &noun[wire.Token]{
	single: "the name or the id of a token", lister: "reprise token list",
	read: all((*client.Client).Tokens),
	name: func(k *wire.Token) (string, string) { return k.Name, strings.Join(k.Scopes, ", ") },

	none:  "no tokens: everybody who can connect may do everything",
	heads: []string{"NAME", "ID", "SCOPES", "QUEUES", "MADE", "EXPIRES", "USED"},
	row: func(t *table, k *wire.Token) {
		at := func(ms int64, none string) string {
			if ms == 0 {
				return none
			}
			return ago(ms)
		}
		t.row(k.Name, k.ID, strings.Join(k.Scopes, ","), cmp.Or(strings.Join(k.Queues, ","), "all"),
			at(k.CreatedAt, "configured"), at(k.ExpiresAt, "never"), at(k.LastUsedAt, "-"))
	},
	listed: verb{
		use:   "list",
		short: "Show the tokens, without what is secret",
		example: `  reprise token list
  reprise token list --json | jq -r 'select(.expired) | .name'`,
		json: "print each token as a line of JSON",
	},
}

func newTokenRevokeCommand() *cobra.Command {
	return verb{
		use:   "revoke NAME|ID",
		short: "Revoke a token for good, and end its streams",
		example: `  reprise token revoke ci
  reprise token revoke 4r0k2m9v1c`,
		args: []kind{tokens},
		do: func(c *call) error {
			list, err := c.cl.Tokens(c.Context())
			if err != nil {
				return err
			}
			var names []string
			for _, t := range list {
				if names = append(names, t.Name); t.Name != c.args[0] && t.ID != c.args[0] {
					continue
				}
				return c.done(c.cl.RevokeToken(c.Context(), t.ID), "token %s is revoked", t.Name)
			}
			return fmt.Errorf("there is no token %q%s\n\"%s\" shows those there are", c.args[0], spell.Hint(c.args[0], names), tokens.lister)
		},
	}.command()
}

func newTokenGenerateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "generate",
		Short: "Print a new token for the configuration file, and ask no server",
		Long: `Print a new token for the configuration file, and ask no server. Nobody knows it
until a file names it under auth.tokens:

  auth:
    tokens:
      root: {secret: "${file:/etc/reprise/root.token}", scopes: [admin]}`,
		Example: `  (umask 077; reprise token generate > /etc/reprise/root.token)`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), server.NewToken())
			return err
		},
	}
}
