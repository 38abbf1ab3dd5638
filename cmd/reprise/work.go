package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// workFlags are the flags of "reprise work".
type workFlags struct {
	options client.WorkerOptions

	command, target string
	timeout         time.Duration
	noKill          bool
	result          bool
	quiet, verbose  bool
}

// httpTimeout is the timeout of one delivery by --http if nobody says otherwise.
const httpTimeout = 30 * time.Second

func newWorkCommand() *cobra.Command {
	var f workFlags
	cmd := verb{
		use:   "work --queue NAME (--exec COMMAND | --http URL)",
		short: "Run the jobs of a queue with a command or a web address",
		long: `Take jobs from queues and run a command for each, or post each to a URL.

With --exec the command is run by "sh -c". It finds the payload on its standard
input and the rest in its environment:
  REPRISE_ID REPRISE_QUEUE REPRISE_TYPE REPRISE_ATTEMPT (1 for the first)
  REPRISE_PRIORITY REPRISE_GROUP REPRISE_READY_AT REPRISE_WORKER REPRISE_URL
  REPRISE_LEASE (with which "reprise jobs progress" may tell how far it is)
  REPRISE_CHECKPOINT (what an earlier attempt left for this one by that command)
  TRACEPARENT (the W3C trace context of the job, if it has one)
How it exits decides what becomes of the job:
  0             done
  65            dead: trying again cannot help (EX_DATAERR)
  75, any other tried again by the retry policy (EX_TEMPFAIL)
The last line it writes to standard error is kept as the message of the failure,
the end of all it wrote there as its trace. What is still running after
--timeout is stopped together with everything it started.

With --http the payload is posted with the headers Reprise-Id, Reprise-Queue,
Reprise-Type and Reprise-Attempt, and traceparent if it has one. The status of
the answer decides:
  2xx                     done
  408, 425, 429, 5xx      tried again, not before Retry-After has passed
  no answer               tried again
  3xx (not followed),
  any other               dead

What is dead by these lists is dead before the rules of its retry policy are
looked at. With --no-kill it is only reported as failed, with exit code or
status, and the policy decides (rules: [{when: {status: 404}, do: dead}]).

With --result what the command writes to standard output, or the body of a 2xx
answer, is kept with the job as its result, up to 16 MiB: as it is if it is
JSON, else as a text. "reprise jobs show" shows it as long as the job is there,
which is its retention; without a retention, an hour at most.

A job is run at least once: if this program or its machine dies in the middle,
it is run again. Broken connections and server restarts alone run nothing
twice.

Ctrl-C or SIGTERM lets running jobs finish and gives the others back; a second
one stops the running jobs and gives them back too.`,
		example: `  reprise work --queue mail --exec './send-mail.sh'
  reprise work --queue video --exec 'ffmpeg -i "$(jq -r .url)" out.mp4' --concurrency 4 --timeout 1h
  reprise work --queue events --http https://example.com/hooks --concurrency 20
  reprise work --queue mail --exec 'cat' --max 1              # just look at one job`,
		do: f.run,
	}.command()
	flags, o := cmd.Flags(), &f.options
	flags.SortFlags = false
	flags.StringSliceVarP(&o.Queues, "queue", "q", nil, "queues to take from (required; several with commas)")
	flags.StringVar(&f.command, "exec", "", "command to run for each job")
	flags.StringVar(&f.target, "http", "", "URL to post each job to")
	flags.IntVarP(&o.Concurrency, "concurrency", "c", 1, "jobs to run at the same time")
	flags.IntVar(&o.Prefetch, "prefetch", 0, "jobs to hold, running ones included (default twice the concurrency)")
	spanVar(flags, &f.timeout, "timeout", 0, "longest time for one attempt (default none for --exec, "+httpTimeout.String()+" for --http)")
	flags.BoolVar(&f.noKill, "no-kill", false, "let the retry policy decide which failures are final")
	flags.BoolVar(&f.result, "result", false, "keep the output of the command, or the answer, as the result of the job")
	spanVar(flags, &o.DrainTimeout, "drain-timeout", 30*time.Second, "how long running jobs may go on after Ctrl-C or SIGTERM")
	flags.StringVar(&o.ID, "worker-id", "", "name of this worker, unique among all that run (default made up from the host's)")
	flags.IntVar(&o.JobsMax, "max", 0, "exit after so many attempts; 0 for never")
	flags.BoolVar(&f.quiet, "quiet", false, "report only errors; drop what commands write to standard error")
	flags.BoolVar(&f.verbose, "verbose", false, "also report each job that is done")
	completeFlag(cmd, "queue", queues)
	return cmd
}

func (f *workFlags) check() error {
	o := &f.options
	switch {
	case len(o.Queues) == 0:
		return usagef("--queue is missing: which queue should be worked off?")
	case f.command == "" && f.target == "":
		return usagef("say what to do with the jobs: --exec COMMAND runs a command, --http URL posts them")
	case f.command != "" && f.target != "":
		return usagef("--exec and --http exclude each other; start two workers")
	case o.Concurrency < 1:
		return usagef("--concurrency %d: at least one job must run at a time", o.Concurrency)
	case o.Prefetch < 0 || o.JobsMax < 0 || f.timeout < 0 || o.DrainTimeout < 0:
		return usagef("--prefetch, --max, --timeout and --drain-timeout cannot be negative")
	case f.quiet && f.verbose:
		return usagef("--quiet and --verbose exclude each other")
	}
	if f.target != "" {
		u, err := url.Parse(f.target)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usagef("--http %q is no web address; write it as http://host/path", f.target)
		}
		f.timeout = cmp.Or(f.timeout, httpTimeout)
	}
	return nil
}

func (f *workFlags) run(c *call) error {
	if err := f.check(); err != nil {
		return err
	}
	defer c.cl.Close()
	if err := f.checkQueues(c); err != nil {
		return err
	}
	ctx, stopNow, release := stopBySignal(c.Context())
	defer release()

	stderr := &sharedWriter{w: c.ErrOrStderr()}
	log := &workLog{w: stderr, quiet: f.quiet, verbose: f.verbose}
	f.options.Events = log.events()
	var w *client.Worker
	handle := f.handler(c, stderr, func() string { return w.ID() })
	if f.noKill {
		handle = mild(handle)
	}
	w, err := client.NewWorker(c.cl, hurried(stopNow, handle), f.options)
	if err != nil {
		return &usageError{err}
	}
	log.tell("working off %s as %s, %d at a time", listed(f.options.Queues), w.ID(), f.options.Concurrency)
	err = w.Run(ctx)
	log.summary()
	return err
}

// checkQueues refuses queues whose jobs no worker gets. A server that does not answer,
// or does not tell, is asked again by the worker.
func (f *workFlags) checkQueues(c *call) error {
	cl, err := c.conn.operator(once)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	for _, name := range f.options.Queues {
		if x, err := cl.Inbox(ctx, name); err == nil {
			return usagef("queue %s is an inbox: its messages go to the receiver of deliver.http, or in turns to who calls POST /inboxes/%[1]s/lease, and never to workers", printable(x.Name))
		}
		if s, err := cl.Session(name).State(ctx); err == nil {
			return usagef("queue %s is a session: its tasks go to engines (\"reprise engine\"), and never to workers", printable(s.ID))
		}
	}
	return nil
}

func (f *workFlags) handler(c *call, stderr io.Writer, worker func() string) client.Handler {
	if f.target != "" {
		p := newPoster(f.target, f.timeout, f.options.Concurrency)
		p.result = f.result
		return p.handle
	}
	if f.quiet {
		stderr = io.Discard
	}
	x := &command{
		line: f.command, timeout: f.timeout, grace: killGrace,
		stdout: c.OutOrStdout(), stderr: stderr, url: c.cl.URL(), worker: worker, result: f.result,
	}
	return x.handle
}

// stopBySignal returns a context that the first SIGINT or SIGTERM ends, and
// one that the second ends. A third has its usual effect.
func stopBySignal(ctx context.Context) (drain, now context.Context, release func()) {
	drain, first := context.WithCancel(ctx)
	now, second := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for _, end := range []context.CancelFunc{first, second} {
			select {
			case <-signals:
				end()
			case <-now.Done():
			}
		}
		signal.Stop(signals)
	})
	return drain, now, func() {
		first()
		second()
		waiting.Wait()
	}
}

// hurried ends the handlers' contexts early, and gives their jobs back.
func hurried(now context.Context, handle client.Handler) client.Handler {
	return func(ctx context.Context, d *client.Delivery) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(now, cancel)()
		err := handle(ctx, d)
		if err != nil && now.Err() != nil {
			return client.Release(0)
		}
		return err
	}
}

// mild turns what would be the end of a job into a failure that its policy
// decides about.
func mild(handle client.Handler) client.Handler {
	return func(ctx context.Context, d *client.Delivery) error {
		err := handle(ctx, d)
		if failure, ok := errors.AsType[*client.Failure](err); ok && client.Outcome(err).Outcome == wire.OutcomeDead {
			return failure
		}
		return err
	}
}

// sharedWriter keeps the worker's lines and those of its commands apart.
type sharedWriter struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

func (s *sharedWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// workLog tells a person what a worker does, and counts.
type workLog struct {
	quiet, verbose bool

	w io.Writer // a sharedWriter

	ok, failed, dead, back, refused atomic.Int64
}

func (l *workLog) tell(format string, args ...any) {
	if l.quiet {
		return
	}
	fmt.Fprintln(l.w, time.Now().Format("15:04:05"), printable(fmt.Sprintf(format, args...)))
}

func (l *workLog) events() client.Events {
	lost := false // of the stream's goroutine
	return client.Events{
		Connected: func() {
			if lost {
				l.tell("connected again")
			}
			lost = false
		},
		Disconnected: func(err error, wait time.Duration) {
			if !lost {
				l.tell("no connection: %v; trying again until it answers (next in %s)", err, span(wait))
			}
			lost = true
		},
		Finished: func(d *client.Delivery, outcome string, err error, took time.Duration) {
			switch {
			case outcome == wire.OutcomeOK && l.verbose:
				l.tell("%s done (%s)", d.Job.ID, span(took))
			case outcome == wire.OutcomeRetry:
				l.tell("%s failed, attempt %d: %v", d.Job.ID, d.Attempt(), err)
			case outcome == wire.OutcomeDead:
				l.tell("%s given up, attempt %d: %v", d.Job.ID, d.Attempt(), err)
			}
		},
		Lost: func(d *client.Delivery) {
			l.tell("%s is not run here: its lease ended while it waited", d.Job.ID)
		},
		Voided: func(d *client.Delivery, why error) {
			l.refused.Add(1)
			l.tell("%s: %v", d.Job.ID, why)
		},
		Settled: l.settled,
		Refused: func(s wire.Settle, v wire.Verdict) {
			l.refused.Add(1)
			l.tell("%s: the server refused the outcome %q: %s", s.ID, s.Outcome, v.Error)
		},
		Delayed: func(waiting int, err error, wait time.Duration) {
			l.tell("%s wait to be told to the server: %v (next try in %s)", plural(int64(waiting), "outcome"), err, span(wait))
		},
		Draining: func(running, unstarted int) {
			l.tell("stopping: waiting for %s, giving %d back; a second Ctrl-C stops them", plural(int64(running), "running job"), unstarted)
		},
	}
}

func (l *workLog) settled(s wire.Settle, v wire.Verdict) {
	switch {
	case s.Outcome == wire.OutcomeOK:
		l.ok.Add(1)
	case s.Outcome == wire.OutcomeRelease:
		l.back.Add(1)
	case v.Status == wire.Dead:
		l.dead.Add(1)
		if s.Outcome == wire.OutcomeRetry {
			l.tell("%s is dead: its retry policy allows no further attempt", s.ID)
		}
	default:
		l.failed.Add(1)
	}
}

func (l *workLog) summary() {
	text := fmt.Sprintf("%s done, %d failed to be tried again, %d dead, %d given back",
		plural(l.ok.Load(), "job"), l.failed.Load(), l.dead.Load(), l.back.Load())
	if n := l.refused.Load(); n > 0 {
		text += fmt.Sprintf(", %d refused by the server", n)
	}
	l.tell("%s", text)
}

func listed(names []string) string {
	if len(names) == 1 {
		return "queue " + names[0]
	}
	return fmt.Sprintf("queues %q", names)
}

// errStopped is why an attempt ended that nobody is to blame for.
var errStopped = errors.New("stopped because the worker stops")
