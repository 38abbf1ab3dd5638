package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
)

// verb is a command that calls the server, as data. All of them get from command what
// they have in common: the flags of a connection, a check of how many arguments there are,
// the completion of their names, and advice at the end of an error.
type verb struct {
	use, short, long, example string

	args     []kind // what the arguments name, in order
	optional int    // so many of the last ones may be left out
	repeat   bool   // the last one may be given any number of times

	json  string // what --json prints; "" = there is no such flag
	limit int    // what --limit is if nobody says otherwise; 0 = there is no such flag

	options client.Options // of the client

	do func(c *call) error
}

// once are the options of a client whose calls are not repeated: whoever looks on is told
// at once that no server answers.
var once = client.Options{RetryFor: -1}

// call is one use of a verb: its command with the flags that were given, its arguments,
// and a client that is ready.
type call struct {
	*cobra.Command
	conn   *connection
	cl     *client.Client
	args   []string
	asJSON bool
	limit  int // rows at most; 0 = all
}

func (v verb) command() *cobra.Command {
	c := &call{conn: new(connection)}
	cmd := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example, Args: v.counted, ValidArgsFunction: v.complete}
	c.Command = cmd
	c.conn.register(cmd)
	if v.json != "" {
		cmd.Flags().BoolVar(&c.asJSON, "json", false, v.json)
	}
	if v.limit > 0 {
		cmd.Flags().IntVarP(&c.limit, "limit", "n", v.limit, "at most so many; 0 for all")
	}
	cmd.RunE = func(_ *cobra.Command, args []string) (err error) {
		if c.limit < 0 {
			return usagef("--limit %d: use 0 for all", c.limit)
		}
		if c.cl, err = c.conn.operator(v.options); err != nil {
			return err
		}
		c.args = args
		return c.adviseName(advise(v.do(c), c.cl), v.args)
	}
	return cmd
}

// counted refuses too few and too many arguments.
func (v verb) counted(cmd *cobra.Command, args []string) error {
	most := len(v.args)
	switch {
	case most == 0:
		return noArguments(cmd, args)
	case len(args) >= most-v.optional && (len(args) <= most || v.repeat):
		return nil
	}
	takes := ""
	if single, _ := v.args[0].told(); most == 1 && single != "" {
		takes = "takes one argument, " + single + ", but "
	}
	return usagef("%s %swas given %s; it is used as: %s", cmd.CommandPath(), takes, plural(int64(len(args)), "argument"), cmd.UseLine())
}

// say prints a line for people. Texts that it tells are made printable.
func (c *call) say(format string, args ...any) {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = printable(text)
		}
	}
	fmt.Fprintf(c.OutOrStdout(), format+"\n", args...)
}

// done says a line once a call has succeeded.
func (c *call) done(err error, format string, args ...any) error {
	if err == nil {
		c.say(format, args...)
	}
	return err
}

// note is a line beside what is printed, as it is.
func (c *call) note(format string, args ...any) {
	fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...)
}

// show prints what a call answered: as JSON if that was asked for, else as text writes it
// for people. An error of the call is passed on.
func (c *call) show(v any, err error, text func(w io.Writer) error) error {
	switch {
	case err != nil:
		return err
	case c.asJSON:
		return jsonLine(c.OutOrStdout(), v)
	}
	return text(c.OutOrStdout())
}

// answer prints v if JSON was asked for, and else says a line.
func (c *call) answer(v any, format string, args ...any) error {
	if c.asJSON {
		return jsonLine(c.OutOrStdout(), v)
	}
	c.say(format, args...)
	return nil
}

// byFilter reports whether jobs are named by a filter or --all, and not by their ids.
func (c *call) byFilter(what, flags string, chosen, all bool) (bool, error) {
	filtered := chosen || all
	switch {
	case filtered == (len(c.args) > 0):
		return false, usagef("name the %s: either their ids, or a filter (%s), or --all", what, flags)
	case chosen && all:
		return false, usagef("--all is not for a filter: they exclude each other, as --all means every job")
	}
	return filtered, nil
}

// onEach acts on what each argument names, jobs, and tells how many it was or, as JSON,
// what has become of each.
func (c *call) onEach(did string, act func(id string) (any, error)) error {
	for i, id := range c.args {
		now, err := act(id)
		if err == nil && c.asJSON {
			err = jsonLine(c.OutOrStdout(), now)
		}
		if err != nil {
			return before(err, i, did)
		}
	}
	if !c.asJSON {
		c.say("%s %s", plural(int64(len(c.args)), "job"), did)
	}
	return nil
}
