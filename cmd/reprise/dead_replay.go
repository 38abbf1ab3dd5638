package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// runFlags are those of commands that run through the dead set.
type runFlags struct {
	conn             connection
	filter           deadFilter
	all, yes, dry    bool
	detached, asJSON bool
	rate             float64
	ramp             time.Duration
	maxReplays       uint32
	budget, place    string
	payload          string
	outOfOrder       bool
}

func (f *runFlags) register(cmd *cobra.Command, verb string) {
	f.conn.register(cmd)
	f.filter.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, verb+" all dead jobs there are")
	flags.BoolVar(&f.yes, "yes", false, "really do it")
	flags.BoolVar(&f.dry, "dry-run", false, "count the jobs, show some, and change nothing")
	flags.BoolVar(&f.detached, "detach", false, "do not wait for the end")
	flags.BoolVar(&f.asJSON, "json", false, "print the run, or the dry run, as a line of JSON")
	flags.Float64Var(&f.rate, "rate", 0, "jobs a second; 0 = as fast as it goes")
	spanVar(flags, &f.ramp, "ramp", 0, "let the rate grow from 0 for so long")
}

// check says what is wrong with ids and flags together.
func (f *runFlags) check(cmd *cobra.Command, ids []string, verb string) error {
	filtered := f.filter.chosen() || f.all
	if filtered == (len(ids) > 0) {
		return usagef("name the dead jobs to %s: either their ids, or a filter (--fingerprint, --queue, ...), or --all", verb)
	}
	if f.filter.chosen() && f.all {
		return usagef("--all and a filter exclude each other")
	}
	if len(ids) > 0 {
		for _, name := range []string{"yes", "dry-run", "detach", "rate", "ramp"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s is for a filter, not for ids", name)
			}
		}
	}
	if f.rate < 0 {
		return usagef("--rate %g: use 0 for no limit", f.rate)
	}
	if f.ramp < 0 || f.ramp > 0 && f.rate == 0 {
		return usagef("--ramp %s: it needs a --rate to grow to, and must not be negative", f.ramp)
	}
	return f.filter.read(time.Now())
}

func newDeadReplayCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "replay [ID...]",
		Short: "Bring dead jobs back: by id, or all that a filter chooses",
		Long: `Bring dead jobs back: by id, or all that a filter chooses.

With a filter the jobs are only counted, until --yes is given. The replay then
runs in the server; this command shows how far it has come. Interrupting it
leaves the replay alone: "reprise dead runs" lists it, and cancels it.`,
		Example: `  reprise dead replay 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead replay 03gq0x7k2m4v9c1d8f5h6j0a1 --payload '{"to": "ada"}'
  reprise dead replay --fingerprint ede865b8574a584a --dry-run
  reprise dead replay --fingerprint ede865b8574a584a --rate 500 --ramp 30s --yes
  reprise dead replay --queue mail --since 2h --place back --budget remaining --yes`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := f.check(cmd, ids, "replay"); err != nil {
				return err
			}
			cl, err := f.conn.operator()
			if err != nil {
				return err
			}
			if len(ids) > 0 {
				return advise(f.replayEach(cmd, cl, ids), cl)
			}
			if f.payload != "" {
				return usagef("--payload is for one job by its id")
			}
			return advise(f.run(cmd, cl, "replayed", func(ctx context.Context) (*wire.Replay, error) {
				return cl.ReplayDead(ctx, wire.DeadReplay{
					Filter: f.filter.DeadFilter, All: f.all, Rate: f.rate, RampMS: f.ramp.Milliseconds(), Budget: f.budget, Place: f.place,
					AllowOutOfOrder: f.outOfOrder, MaxReplays: &f.maxReplays,
				})
			}), cl)
		},
	}
	f.register(cmd, "replay")
	flags := cmd.Flags()
	flags.StringVar(&f.budget, "budget", "", "fresh (default): attempts start again; remaining: what was used up stays so")
	flags.StringVar(&f.place, "place", "", "keep (default), front or back of their line")
	flags.BoolVar(&f.outOfOrder, "allow-out-of-order", false, "also jobs of strict groups that went on without them")
	flags.Uint32Var(&f.maxReplays, "max-replays", wire.MaxReplaysDefault, "leave out who was replayed so often; 0 for no guard")
	flags.StringVar(&f.payload, "payload", "", "replay one job with this payload, as JSON")
	complete(cmd, true, deadIDs)
	completeFlag(cmd, "budget", oneOf(wire.BudgetFresh, wire.BudgetRemaining))
	completeFlag(cmd, "place", oneOf("keep", wire.Front, wire.Back))
	return cmd
}

func (f *runFlags) replayEach(cmd *cobra.Command, cl *client.Client, ids []string) error {
	how := wire.DeadOne{Budget: f.budget, Place: f.place, AllowOutOfOrder: f.outOfOrder}
	if cmd.Flags().Changed("max-replays") {
		how.MaxReplays = f.maxReplays
	}
	if f.payload != "" {
		if len(ids) > 1 {
			return usagef("--payload is for one job, but %d ids were given", len(ids))
		}
		if how.Payload = json.RawMessage(f.payload); !json.Valid(how.Payload) {
			return usagef("--payload is not JSON; a text needs quotes: --payload '\"text\"'")
		}
	}
	for i, id := range ids {
		j, err := cl.ReplayOne(cmd.Context(), id, how)
		if err != nil {
			return before(err, i, "replayed")
		}
		if f.asJSON {
			if err := jsonLine(cmd.OutOrStdout(), j); err != nil {
				return err
			}
		}
	}
	if !f.asJSON {
		fmt.Fprintf(cmd.OutOrStdout(), "%s replayed\n", plural(int64(len(ids)), "job"))
	}
	return nil
}

// run asks first, begins, and shows how far the server has come.
func (f *runFlags) run(cmd *cobra.Command, cl *client.Client, did string, begin func(context.Context) (*wire.Replay, error)) error {
	out := cmd.OutOrStdout()
	if !f.yes || f.dry {
		return f.preview(cmd, cl, did)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	r, err := begin(ctx)
	if err != nil {
		return err
	}
	if !f.detached {
		if r, err = watch(ctx, cmd.ErrOrStderr(), cl, r, did); err != nil {
			return err
		}
	}
	switch {
	case f.asJSON:
		return jsonLine(out, r)
	case r.Status == wire.RunRunning:
		fmt.Fprintf(out, "run %s goes on in the server: \"reprise dead runs %s\" shows it\n", r.ID, r.ID)
	default:
		fmt.Fprintln(out, summary(r, did, whyRefused(cmd.Context(), cl, r)))
	}
	return nil
}

func (f *runFlags) preview(cmd *cobra.Command, cl *client.Client, did string) error {
	d, err := cl.DryRun(cmd.Context(), f.filter.DeadFilter)
	out := cmd.OutOrStdout()
	switch {
	case err != nil:
		return err
	case f.asJSON:
		return jsonLine(out, d)
	}
	if d.Count == 0 {
		_, err = fmt.Fprintln(out, "no such dead job"+noSuchQueues(cmd.Context(), cl, f.filter.Queues))
		return err
	}
	fmt.Fprintf(out, "%s would be %s", plural(d.Count, "job"), did)
	if !f.dry {
		fmt.Fprint(out, "; add --yes to do it")
	}
	fmt.Fprintln(out)
	if len(d.Sample) == 0 {
		return nil
	}
	t := newTable(out, "ID", "QUEUE", "TYPE", "DIED OF")
	for i := range d.Sample {
		j := &d.Sample[i]
		t.row(j.ID, j.Queue, j.Type, clip(lastError(j), 60))
	}
	return t.flush()
}

// watch shows a run until it ends, or until it is interrupted, which leaves
// the run alone.
func watch(ctx context.Context, w io.Writer, cl *client.Client, r *wire.Replay, did string) (*wire.Replay, error) {
	p := newProgress(w)
	defer p.hide()
	began := time.Now()
	for r.Status == wire.RunRunning {
		p.show(progressBar(r, did, time.Since(began)))
		select {
		case <-ctx.Done():
			return r, nil
		case <-time.After(100 * time.Millisecond):
		}
		next, err := cl.Replay(ctx, r.ID)
		if ctx.Err() != nil {
			return r, nil
		}
		if err != nil {
			return r, err
		}
		r = next
	}
	return r, nil
}

// progressBar is one line: a bar, numbers, the rate, and how long it will take.
func progressBar(r *wire.Replay, did string, took time.Duration) string {
	const width = 30
	past := r.Done + r.Refused + r.Guarded + r.Conflict
	full := width
	if r.Total > 0 {
		full = int(min(past, r.Total) * width / r.Total)
	}
	text := fmt.Sprintf("[%s%s] %s of %s %s", strings.Repeat("█", full), strings.Repeat("░", width-full), thousands(r.Done), thousands(r.Total), did)
	if took > time.Second && past > 0 {
		rate := float64(past) / took.Seconds()
		text += fmt.Sprintf(", %.0f/s, %s left", rate, span(time.Duration(float64(r.Total-past)/rate*float64(time.Second))))
	}
	return text
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
