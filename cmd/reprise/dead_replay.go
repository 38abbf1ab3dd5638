package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// onDead is a command that acts on dead jobs by their ids, or that lets the server run
// through all that a filter chooses.
type onDead struct {
	verb
	filter        deadFilter
	all, yes, dry bool
	detached      bool
	rate          float64
	ramp          time.Duration
	what, did     string // what is done: replay, replayed

	check func(c *call) error                                      // of further flags; nil = there is nothing to check
	each  func(c *call, id string) (any, error)                    // does it to one, and answers with it
	begin func(ctx context.Context, c *call) (*wire.Replay, error) // begins the run
}

func (o *onDead) command() *cobra.Command {
	o.args, o.optional, o.repeat = []kind{deadJobs}, 1, true
	o.json = "print the run, or the dry run, as a line of JSON"
	o.do = o.act
	cmd := o.verb.command()
	o.filter.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, o.what+" all dead jobs there are")
	flags.BoolVar(&o.yes, "yes", false, "really do it")
	flags.BoolVar(&o.dry, "dry-run", false, "count the jobs, show some, and change nothing")
	flags.BoolVar(&o.detached, "detach", false, "do not wait for the end")
	flags.Float64Var(&o.rate, "rate", 0, "jobs per second; 0 = no limit")
	spanVar(flags, &o.ramp, "ramp", 0, "time in which the rate grows from 0 to --rate")
	return cmd
}

func (o *onDead) act(c *call) error {
	if err := o.understood(c); err != nil {
		return err
	}
	switch {
	case len(c.args) > 0:
		return c.onEach(o.did, func(id string) (any, error) { return o.each(c, id) })
	case !o.yes || o.dry:
		return o.preview(c)
	}
	return o.run(c)
}

// understood says what is wrong with ids and flags together.
func (o *onDead) understood(c *call) error {
	filtered, err := c.byFilter("dead jobs to "+o.what, "--fingerprint, --queue, ...", o.filter.chosen(), o.all)
	switch {
	case err != nil:
		return err
	case o.rate < 0:
		return usagef("--rate %g: use 0 for no limit", o.rate)
	case o.ramp > 0 && o.rate == 0:
		return usagef("--ramp %s: it needs a --rate to grow to", o.ramp)
	}
	for _, name := range []string{"yes", "dry-run", "detach", "rate", "ramp"} {
		if !filtered && c.Flags().Changed(name) {
			return usagef("--%s is for a filter, not for ids", name)
		}
	}
	if o.check != nil {
		if err := o.check(c); err != nil {
			return err
		}
	}
	return o.filter.read(time.Now())
}

func newDeadReplayCommand() *cobra.Command {
	var budget, place, payload string
	var outOfOrder bool
	var maxReplays uint32
	o := &onDead{
		what: "replay", did: "replayed",
		verb: verb{
			use:   "replay [ID...]",
			short: "Bring dead jobs back: by id, or all that a filter chooses",
			long: `Bring dead jobs back: by id, or all that a filter chooses.

With a filter the jobs are only counted, until --yes is given. The replay then
runs in the server; this command shows how far it has come. Interrupting it
leaves the replay alone: "reprise dead runs" lists it, and cancels it.`,
			example: `  reprise dead replay 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead replay 03gq0x7k2m4v9c1d8f5h6j0a1 --payload '{"to": "ada"}'
  reprise dead replay --fingerprint ede865b8574a584a --dry-run
  reprise dead replay --fingerprint ede865b8574a584a --rate 500 --ramp 30s --yes
  reprise dead replay --queue mail --since 2h --place back --budget remaining --yes`,
		},
		check: func(c *call) error {
			switch {
			case payload == "":
			case len(c.args) != 1:
				return usagef("--payload is for one job by its id, but %s were given", plural(int64(len(c.args)), "id"))
			case !json.Valid([]byte(payload)):
				return usagef("--payload is not JSON; a text needs quotes: --payload '\"text\"'")
			}
			return nil
		},
		each: func(c *call, id string) (any, error) {
			how := wire.DeadOne{Budget: budget, Place: place, AllowOutOfOrder: outOfOrder}
			if payload != "" {
				how.Payload = json.RawMessage(payload)
			}
			if c.Flags().Changed("max-replays") {
				how.MaxReplays = maxReplays
			}
			return c.cl.ReplayOne(c.Context(), id, how)
		},
	}
	o.begin = func(ctx context.Context, c *call) (*wire.Replay, error) {
		return c.cl.ReplayDead(ctx, wire.DeadReplay{
			Filter: o.filter.DeadFilter, All: o.all, Rate: o.rate, RampMS: o.ramp.Milliseconds(), Budget: budget, Place: place,
			AllowOutOfOrder: outOfOrder, MaxReplays: &maxReplays,
		})
	}
	cmd := o.command()
	flags := cmd.Flags()
	flags.StringVar(&budget, "budget", "", "fresh (default): attempts are counted anew; remaining: used attempts stay used")
	flags.StringVar(&place, "place", "", "place in their queue: keep (default), front or back")
	flags.BoolVar(&outOfOrder, "allow-out-of-order", false, "also jobs of strict groups that went on without them")
	flags.Uint32Var(&maxReplays, "max-replays", wire.MaxReplaysDefault, "leave out jobs that were replayed so often; 0 for no limit")
	flags.StringVar(&payload, "payload", "", "replay one job with this payload, as JSON")
	completeFlag(cmd, "budget", words{wire.BudgetFresh, wire.BudgetRemaining})
	completeFlag(cmd, "place", words{"keep", wire.Front, wire.Back})
	return cmd
}

func newDeadDeleteCommand() *cobra.Command {
	o := &onDead{
		what: "delete", did: "deleted",
		verb: verb{
			use:   "delete [ID...]",
			short: "Delete dead jobs for good: by id, or all that a filter chooses",
			long: `Delete dead jobs for good: by id, or all that a filter chooses.

With a filter the jobs are only counted, until --yes is given. The delete then
runs in the server, as a replay does.`,
			example: `  reprise dead delete 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead delete --fingerprint ede865b8574a584a         # how many would it be?
  reprise dead delete --fingerprint ede865b8574a584a --yes`,
		},
		each: func(c *call, id string) (any, error) {
			return map[string]string{"deleted": id}, c.cl.DeleteDead(c.Context(), id)
		},
	}
	o.begin = func(ctx context.Context, c *call) (*wire.Replay, error) {
		return c.cl.DeleteAllDead(ctx, wire.DeadDelete{
			Filter: o.filter.DeadFilter, All: o.all, Rate: o.rate, RampMS: o.ramp.Milliseconds(),
		})
	}
	return o.command()
}

// run begins, and shows how far the server has come.
func (o *onDead) run(c *call) error {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	r, err := o.begin(ctx, c)
	if err != nil {
		return err
	}
	if !o.detached {
		over := func(r *wire.Replay) bool { return r.Status != wire.RunRunning }
		bar := func(r *wire.Replay, took time.Duration) string { return progressBar(r, o.did, took) }
		ask := func() (*wire.Replay, error) { return c.cl.Replay(ctx, r.ID) }
		if r, err = follow(ctx, c.ErrOrStderr(), r, over, bar, ask); err != nil {
			return err
		}
	}
	switch {
	case c.asJSON:
		return jsonLine(c.OutOrStdout(), r)
	case r.Status == wire.RunRunning:
		c.say("run %s goes on in the server: \"reprise dead runs %[1]s\" shows it", r.ID)
	default:
		fmt.Fprintln(c.OutOrStdout(), summary(r, o.did, whyRefused(c.Context(), c.cl, r)))
	}
	return nil
}

// preview counts the jobs that it would be, and shows some.
func (o *onDead) preview(c *call) error {
	d, err := c.cl.DryRun(c.Context(), o.filter.DeadFilter)
	return c.show(d, err, func(out io.Writer) error {
		if d.Count == 0 {
			_, err := fmt.Fprintln(out, deadJobs.none+noSuchQueues(c.Context(), c.cl, o.filter.Queues))
			return err
		}
		more := "; add --yes to do it"
		if o.dry {
			more = ""
		}
		fmt.Fprintf(out, "%s would be %s%s\n", plural(d.Count, "job"), o.did, more)
		if len(d.Sample) == 0 {
			return nil
		}
		t := newTable(out, "ID", "QUEUE", "TYPE", "DIED OF")
		for i := range d.Sample {
			j := &d.Sample[i]
			t.row(j.ID, j.Queue, j.Type, clip(lastError(j), 60))
		}
		return t.flush()
	})
}

// progressBar is one line: a bar, numbers, the rate, and how long it will take.
func progressBar(r *wire.Replay, did string, took time.Duration) string {
	past := r.Done + r.Refused + r.Guarded + r.Conflict
	return fmt.Sprintf("%s %s of %s %s%s", bar(past, r.Total), thousands(r.Done), thousands(r.Total), did, pace(past, r.Total-past, took))
}

// whyRefused says why jobs of a run were not brought back: the order of their
// group, or that a session is over, which the server tells of a queue.
func whyRefused(ctx context.Context, cl *client.Client, r *wire.Replay) string {
	const order = "their strict group went on without them (--allow-out-of-order)"
	if r.Refused == 0 || len(r.Filter.Queues) == 0 {
		return order + ", or their session is over"
	}
	sessions := []string{}
	for _, queue := range r.Filter.Queues {
		if s, err := cl.Session(queue).State(ctx); err == nil {
			sessions = append(sessions, "session "+s.ID+" is "+s.State)
		}
	}
	switch len(sessions) {
	case 0:
		return order
	case len(r.Filter.Queues):
		return strings.Join(sessions, ", ") + ", and takes no task back"
	}
	return order + ", or " + strings.Join(sessions, ", ")
}

// summary says how a run went.
func summary(r *wire.Replay, did, refused string) string {
	text := plural(r.Done, "job") + " " + did
	for _, part := range []struct {
		n    int64
		what string
	}{
		{r.Refused, "refused: " + refused},
		{r.Guarded, "left dead: replayed too often already (--max-replays)"},
		{r.Conflict, "left dead: another job has their unique key"},
		{r.Skipped, "skipped: not dead any more"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf("\n%s %s", plural(part.n, "job"), part.what)
		}
	}
	if r.Status == wire.RunCancelled {
		text += "; the run was cancelled"
	}
	return text
}

// replays are the runs through the dead set: replays and deletes.
var replays = &noun[wire.Replay]{
	single: "the id of a run", lister: "reprise dead runs",
	read: func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[wire.Replay, error] {
		return each(cl.Replays(ctx, completionMost))
	},
	name: func(r *wire.Replay) (string, string) { return r.ID, r.Action + " " + r.Status },

	none:  "no replay and no delete in the last 7 days",
	heads: []string{"ID", "ACTION", "STATUS", "DONE", "OF", "REFUSED", "GUARDED", "CONFLICT", "SKIPPED", "BEGAN", "BY"},
	row: func(t *table, r *wire.Replay) {
		t.row(r.ID, r.Action, r.Status, whole(r.Done), whole(r.Total), whole(r.Refused), whole(r.Guarded), whole(r.Conflict), whole(r.Skipped),
			ago(r.CreatedAt), r.By)
	},
}

func newDeadRunsCommand() *cobra.Command {
	var cancel bool
	var latest int
	cmd := verb{
		use:   "runs [ID]",
		short: "Show replays and deletes that run in the server, or cancel one",
		example: `  reprise dead runs
  reprise dead runs 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead runs 03gq0x7k2m4v9c1d8f5h6j0a1 --cancel`,
		args: []kind{replays}, optional: 1,
		json: "print each run as a line of JSON",
		do: func(c *call) error {
			if err := checkLatest(latest); err != nil {
				return err
			}
			if len(c.args) == 0 && cancel {
				return usagef("--cancel needs the id of a run")
			} else if len(c.args) == 0 {
				return replays.list(c, each(c.cl.Replays(c.Context(), latest)))
			}
			read := c.cl.Replay
			if cancel {
				read = c.cl.CancelReplay
			}
			r, err := read(c.Context(), c.args[0])
			if err != nil {
				return err
			}
			return replays.list(c, each([]wire.Replay{*r}, nil))
		},
	}.command()
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end the run; what is done stays done")
	latestFlag(cmd, &latest, 20)
	return cmd
}
