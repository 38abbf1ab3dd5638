package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/server"
	"github.com/reprisehq/reprise/wire"
)

// connection is the flags that tell the server and who calls, and what they
// lead to.
type connection struct {
	url        string
	secret     string
	secretFile string
	tls        tlsFiles
	cmd        *cobra.Command
	told       atomic.Pointer[time.Time] // when it was last said that calls are repeated; nil = never
}

// defaultURL is where "reprise serve" listens if nobody says otherwise.
const defaultURL = "http://127.0.0.1:7890"

func (c *connection) register(cmd *cobra.Command) {
	c.cmd = cmd
	markConnection(cmd.Flags(), func() {
		cmd.Flags().StringVar(&c.url, "url", "", "address of the server (default $REPRISE_URL, else "+defaultURL+")")
		c.registerToken(cmd)
		c.tls.register(cmd.Flags())
	})
}

func (c *connection) client(opts client.Options) (*client.Client, error) {
	url := cmp.Or(c.url, os.Getenv("REPRISE_URL"), defaultURL)
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	opts.Token, opts.UserAgent = token, "reprise/"+server.Version
	if opts.TLS, err = c.tls.load(); err != nil {
		return nil, err
	}
	if c.cmd != nil {
		opts.Repeating = func(why error, left time.Duration) {
			now := time.Now()
			if at := c.told.Swap(&now); at != nil && now.Sub(*at) < left {
				return // of many calls at once one says it
			}
			_, _ = fmt.Fprintf(c.cmd.ErrOrStderr(), "%v\nTrying on for up to %s (Ctrl-C ends it)\n", why, left.Round(time.Second))
		}
	}
	cl, err := client.New(url, opts)
	if err != nil {
		return nil, &usageError{err}
	}
	return cl, nil
}

// operator is a client that says for the audit log who asks.
func (c *connection) operator(opts client.Options) (*client.Client, error) {
	opts.Header = http.Header{}
	if u, err := user.Current(); err == nil && strings.IndexFunc(u.Username, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		opts.Header.Set(wire.HeaderActor, u.Username[:min(len(u.Username), 128)])
	}
	return c.client(opts)
}

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
		return "", usagef("the token has a character that no token has; a token is printable ASCII without spaces (this one is not shown)")
	}
	return text, nil
}
