package main

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// noun is a sort of thing that the server has, as data: how one is named, how they are
// read, and how they are listed. Lists, completion and advice on names come from it.
type noun[T any] struct {
	single string // what an argument is that names one, such as "the id of one job"
	lister string // the command that lists them, NAME being the argument before; "" = none
	within bool   // they belong to what the argument before names

	// read reads them, or those of what the arguments before name.
	read func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[T, error]
	name func(x *T) (name, about string) // about tells a bit more, for who chooses; "" = nothing

	heads  []string             // of the columns of a list
	wide   []string             // of further columns of --output wide
	row    func(t *table, x *T) // adds the row of one, with the cells of wide
	none   string               // is said where there is no row
	listed verb                 // the command that lists all there are

	// get reads one by its name, for a list of what read knows only by name; nil = read
	// reads all of it.
	get func(cl *client.Client, ctx context.Context, name string) (*T, error)
}

// all makes the read of a noun of a call that reads the whole list.
func all[T any](list func(*client.Client, context.Context) ([]T, error)) func(context.Context, *client.Client, []string) iter.Seq2[T, error] {
	return func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[T, error] {
		return each(list(cl, ctx))
	}
}

// byName makes the read of a noun of a call that tells only names.
func byName[T any](list func(*client.Client, context.Context) ([]string, error), bare func(name string) T) func(context.Context, *client.Client, []string) iter.Seq2[T, error] {
	return func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[T, error] {
		return func(yield func(T, error) bool) {
			for name, err := range each(list(cl, ctx)) {
				if !yield(bare(name), err) {
					return
				}
			}
		}
	}
}

// each goes through a list that was read, or tells why it could not be.
func each[T any](list []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err != nil {
			yield(*new(T), err)
			return
		}
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// listCommand is the command that lists all there are.
func (n *noun[T]) listCommand() *cobra.Command {
	v := n.listed
	v.do = func(c *call) error { return n.list(c, n.read(c.Context(), c.cl, c.args)) }
	return v.command()
}

// list prints rows: a table, or a line of JSON for each. If there are none and they were
// chosen by queues, those that do not exist are named.
func (n *noun[T]) list(c *call, rows iter.Seq2[T, error], queues ...string) error {
	out := c.OutOrStdout()
	t := newTable(out)
	count, more := 0, false
	for x, err := range rows {
		if more = err == nil && c.limit > 0 && count == c.limit; more {
			break
		}
		if err == nil && n.get != nil {
			x, err = n.whole(c, &x)
		}
		if err == nil && c.asJSON {
			err = jsonLine(out, &x)
		}
		if err != nil {
			return err
		}
		if count++; c.asJSON {
			continue
		}
		if count == 1 && isWide(c.Command) {
			t.heads(slices.Concat(n.heads, n.wide)...)
		} else if count == 1 {
			t.heads(n.heads...)
		}
		n.row(t, &x)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if more {
		c.note("There are more than these %d; --limit shows more.", c.limit)
	}
	if count == 0 && !c.asJSON {
		fmt.Fprintln(out, n.none+noSuchQueues(c.Context(), c.cl, queues))
	}
	return nil
}

// whole reads the whole of what is known by name.
func (n *noun[T]) whole(c *call, x *T) (T, error) {
	name, _ := n.name(x)
	read, err := n.get(c.cl, c.Context(), name)
	if err != nil {
		return *x, err
	}
	return *read, nil
}

// perPage is how many rows to ask for at once: one more than are shown tells whether there
// are more.
func (c *call) perPage() int {
	if c.limit == 0 {
		return 0
	}
	return min(c.limit+1, wire.PageLimitMax)
}

func (n *noun[T]) told() (single, lister string) { return n.single, n.lister }

func (n *noun[T]) names(ctx context.Context, cl *client.Client, args []string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if n.within && len(args) == 0 {
			return
		}
		for x, err := range n.read(ctx, cl, args) {
			if err != nil || !yield(n.name(&x)) {
				return
			}
		}
	}
}
