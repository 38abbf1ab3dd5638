package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

// What to do about an error, told at its end.

// advise adds the next step to an error of a call, where there is an obvious one.
func advise(err error, cl *client.Client) error {
	if step := nextStep(err, cl.URL()); step != "" {
		return fmt.Errorf("%w\n%s", err, step)
	}
	return err
}

func nextStep(err error, url string) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "Name the authority that signed it with --tls-ca or " + envCA
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "Write --url " + strings.Replace(url, "https:", "http:", 1)
	}
	if _, silent := errors.AsType[*client.NoAnswerError](err); silent {
		return "Start one with \"reprise serve\", or name another with --url or REPRISE_URL"
	}
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return ""
	case refused.Status == http.StatusUnauthorized:
		return "Give the token in REPRISE_TOKEN or with --token-file"
	case refused.Status == http.StatusForbidden:
		return "\"reprise token list\", with an admin token, shows what each token may do"
	case refused.Code == "" && strings.Contains(refused.Message, "HTTPS server"):
		return "Write --url " + strings.Replace(url, "http:", "https:", 1)
	case refused.Code == "", refused.Code == wire.CodeNotFound && refused.Message == "not found":
		return "Is " + url + " the address of a Reprise server? Name another with --url or REPRISE_URL"
	}
	return ""
}

// adviseName adds to an error of a call, which failed because the server does not know a
// name, which one may have been meant, and what lists those there are.
func (c *call) adviseName(err error, kinds []kind) error {
	if client.CodeOf(err) != wire.CodeNotFound || len(c.args)*len(kinds) == 0 || strings.Contains(err.Error(), "\n") {
		return err
	}
	at := min(len(c.args), len(kinds)) - 1
	if refused, _ := errors.AsType[*client.Error](err); at > 0 && !strings.Contains(refused.Message, c.args[at]) {
		at = 0 // what holds the other name is not there
	}
	_, lister := kinds[at].told()
	if lister == "" {
		return err
	}
	names := known(c.Command, kinds[at], c.args[:at])
	return fmt.Errorf("%w%s\n\"%s\" shows those there are", err, spell.Hint(c.args[at], names), strings.ReplaceAll(lister, "NAME", c.args[0]))
}

func known(cmd *cobra.Command, k kind, args []string) (names []string) {
	for name := range asked(cmd, k, args) {
		names = append(names, name)
	}
	return names
}

// before adds to an error about one of several jobs what was done with those before it.
func before(err error, n int, done string) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("%w (%s %s before it)", err, plural(int64(n), "job"), done)
}

// noSuchQueues tells of queues that a filter names and that hold no job, and which were
// meant; "" if each does. It is for a filter that chose nothing.
func noSuchQueues(ctx context.Context, cl *client.Client, queues []string) string {
	names, err := cl.Queues(ctx)
	for _, q := range queues {
		if err == nil && !slices.Contains(names, q) {
			return "\nno job is in queue " + printable(q) + spell.Hint(q, names)
		}
	}
	return ""
}

// plainText writes an error for people: Go says of files which call failed.
func plainText(err error) string {
	text := err.Error()
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.Replace(text, file.Error(), "cannot "+callWord(file.Op)+" "+file.Path+": "+file.Err.Error(), 1)
	}
	if program, ok := errors.AsType[*exec.Error](err); ok {
		text = strings.Replace(text, program.Error(), "cannot run "+program.Name+": "+strings.TrimPrefix(program.Err.Error(), "exec: "), 1)
	}
	return text
}

func callWord(op string) string {
	switch op {
	case "lstat", "stat", "fstat":
		return "look at"
	case "mkdir", "create":
		return "make"
	}
	return op
}
