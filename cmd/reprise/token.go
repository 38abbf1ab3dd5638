package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/server"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

// registerToken adds the flags that say who asks.
func (c *connection) registerToken(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.secretFile, "token-file", "", "file with the token to send (default $REPRISE_TOKEN, else the file $REPRISE_TOKEN_FILE)")
	flags.StringVar(&c.secret, "token", "", "the token itself; others on this machine can see it in the list of processes, so prefer the file or the variable")
}

// token is what to send: of a flag, else of the environment. No message shows it.
func (c *connection) token() (string, error) {
	if c.secret != "" && c.secretFile != "" {
		return "", usagef("--token and --token-file exclude each other")
	}
	text, file := c.secret, c.secretFile
	if text == "" && file == "" {
		if text = os.Getenv("REPRISE_TOKEN"); text == "" {
			file = os.Getenv("REPRISE_TOKEN_FILE")
		}
	}
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		if text = string(b); text != "" {
			c.secret, c.secretFile = text, "" // for the next client: a pipe is read once
		}
	}
	if text = strings.TrimSpace(text); strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usagef("what is given as the token is none (what it is, is not shown)")
	}
	return text, nil
}

func newTokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of a server",
		Long: `Make, list and revoke the tokens of a server.

A server without tokens lets everybody in who can connect. From its first token
on every call needs one, which says what may be done and with which queues. The
first one is made on the machine of the server, and has the scope admin.

Scopes:
  enqueue  put jobs in
  work     take jobs, extend and settle
  read     look at everything, payloads included
  operate  change queues and jobs, delete and replay
  admin    all of it, and tokens`,
		Example: `  reprise token create --name root --scope admin > root.token
  reprise token create --name ci --scope enqueue --queue 'mail-*' --expires 90d
  reprise token list
  reprise token revoke ci`,
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newTokenCreateCommand(), newTokenListCommand(), newTokenRevokeCommand(), newTokenGenerateCommand())
	return cmd
}

func newTokenCreateCommand() *cobra.Command {
	var conn connection
	var ask wire.NewToken
	var expires string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, once",
		Long: `Make a token and print it, once. The server keeps only its hash: a token that is
lost is revoked, and another one made.`,
		Example: `  reprise token create --name root --scope admin > root.token
  reprise token create --name ci --scope enqueue --queue 'mail-*' --expires 90d
  reprise token create --name worker-7 --scope work --queue mail,bills --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ask.Name == "" || len(ask.Scopes) == 0 {
				return usagef("say whose token it is, and what it may do: --name and --scope")
			}
			if err := until(&ask, expires); err != nil {
				return err
			}
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			made, err := cl.CreateToken(cmd.Context(), ask)
			if err != nil {
				return advise(err, cl)
			}
			if asJSON {
				return jsonLine(cmd.OutOrStdout(), made)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "token %s (%s); it is shown this once:\n", made.Name, strings.Join(made.Scopes, ", "))
			_, err = fmt.Fprintln(cmd.OutOrStdout(), made.Secret)
			return err
		},
	}
	conn.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&ask.Name, "name", "", "whose it is, for people and the audit log")
	flags.StringSliceVar(&ask.Scopes, "scope", nil, "what it may do: "+strings.Join(scopes, ", ")+"; may be repeated")
	flags.StringSliceVar(&ask.Queues, "queue", nil, "queues it is for, where * stands for any text; may be repeated (default: all)")
	flags.StringVar(&expires, "expires", "", "when it ends: 12h, 90d, or 2027-01-02T15:04:05Z (default: never)")
	flags.BoolVar(&asJSON, "json", false, "print the token and what is known of it as a line of JSON")
	completeFlag(cmd, "scope", oneOf(scopes...))
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

func newTokenListCommand() *cobra.Command {
	var conn connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the tokens, without what is secret",
		Example: `  reprise token list
  reprise token list --json | jq -r 'select(.expired) | .name'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			list, err := cl.Tokens(cmd.Context())
			if err != nil {
				return advise(err, cl)
			}
			return showTokens(cmd, list, asJSON)
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each token as a line of JSON")
	return cmd
}

func showTokens(cmd *cobra.Command, list []wire.Token, asJSON bool) error {
	out, now := cmd.OutOrStdout(), time.Now()
	t := newTable(out)
	for i := range list {
		k := &list[i]
		if asJSON {
			if err := jsonLine(out, k); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			t.heads("NAME", "ID", "SCOPES", "QUEUES", "MADE", "EXPIRES", "USED")
		}
		at := func(ms int64, none string) string {
			if ms == 0 {
				return none
			}
			return distance(time.UnixMilli(ms), now)
		}
		queues := strings.Join(k.Queues, ",")
		if queues == "" {
			queues = "all"
		}
		t.row(k.Name, k.ID, strings.Join(k.Scopes, ","), queues, at(k.CreatedAt, "configured"), at(k.ExpiresAt, "never"), at(k.LastUsedAt, "-"))
	}
	if err := t.flush(); err != nil || asJSON {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "no tokens: everybody who can connect may do everything")
	}
	return nil
}

func newTokenRevokeCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "revoke NAME|ID",
		Short: "Shut a token out for good, and end its streams",
		Example: `  reprise token revoke ci
  reprise token revoke 4r0k2m9v1c`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs one name or id, but was given %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			list, err := cl.Tokens(cmd.Context())
			if err != nil {
				return advise(err, cl)
			}
			i := slices.IndexFunc(list, func(t wire.Token) bool { return t.Name == args[0] || t.ID == args[0] })
			if i < 0 {
				var names []string
				for _, t := range list {
					names = append(names, t.Name)
				}
				return fmt.Errorf("there is no token %q%s\n\"%s\" shows those there are", args[0], spell.Hint(args[0], names), tokens.list)
			}
			if err := cl.RevokeToken(cmd.Context(), list[i].ID); err != nil {
				return advise(err, cl)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "token %s is revoked\n", list[i].Name)
			return err
		},
	}
	conn.register(cmd)
	complete(cmd, false, tokens)
	return cmd
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
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), server.NewToken())
			return err
		},
	}
}
