// Package measure drives a system through the phases, and checks while it
// measures that nothing was lost: what was enqueued is delivered, handled and
// acknowledged, and the server's own count agrees. A figure whose counts do
// not add up is not reported: its phase fails and says which count was wrong.
//
// The phases are those of `reprise bench`, written once for all systems and
// driven through the official Go client of each, so that all pay for a client
// library alike. Reading order: run, queue, window, then a phase each.
package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// Options say what to measure.
type Options struct {
	// Phases to run, in the order of PhaseNames whatever the order here.
	Phases []string
	// Window is the length of each timed phase. A tenth of it, at most a
	// second, runs before it and is not counted.
	Window time.Duration
	// Backlog is how many jobs wait in the phases that have a backlog.
	Backlog int64
	// Storm is how many jobs fail once.
	Storm int64
	// Rate of the latency phase, jobs a second.
	Rate float64
	// Connections of the singles phase.
	Connections int
	// BulkConnections of the bulk phase, and of making a backlog.
	BulkConnections int
	// Dir holds the data directories.
	Dir string
	// VerifyPatience is how long a server may take to count as expected after a
	// phase. 0: 20 s.
	VerifyPatience time.Duration
	// Log is told what was found.
	Log func(format string, args ...any)
}

// A slow system fills a smaller backlog, and need not empty it: what is
// reported is rates and sizes per job.
const (
	fillWindows  = 4 // of Options.Window, at most, to make a backlog
	stormWindows = 2 // to make the jobs of a storm
	drainWindows = 4 // to empty a backlog
)

func (o Options) warmUp() time.Duration { return min(time.Second, o.Window/10) }

// phasePatience is how long any phase may take beyond its window.
const phasePatience = 4 * time.Minute

// group is phases that share a server on a fresh directory, one after the
// other. If one fails, those behind it in the group fail too.
type group []phase

type phase struct {
	name    string
	about   string
	measure func(*run, context.Context) error
}

var groups = []group{
	{
		{"singles", "closed loop of single enqueues over many connections", (*run).singles},
		{"bulk", "closed loop of batches of 500 over a few connections", (*run).bulk},
	},
	{
		{"steady", "producers and workers at once, jobs from end to end, at most 20,000 under way", (*run).steady},
		{"latency", "from when a job was due to be enqueued until an idle worker received it, at a fixed rate", (*run).latency},
		{"storm", "every job fails once, waits a second, and succeeds", (*run).storm},
	},
	{
		{"memory", "memory of the server processes per waiting job, caches included", (*run).memory},
		{"backlog", "steady while a backlog waits in another queue", (*run).backlog},
		{"restart", "SIGKILL with the backlog, then from exec to serving and to the first job", (*run).restart},
		{"drain", "take and acknowledge all of the backlog", (*run).drain},
	},
}

// PhaseNames lists the phases in the order in which they run.
func PhaseNames() (names []string) {
	for _, g := range groups {
		for _, p := range g {
			names = append(names, p.name)
		}
	}
	return names
}

// PhaseAbout says what a phase measures.
func PhaseAbout(name string) string {
	for _, g := range groups {
		for _, p := range g {
			if p.name == name {
				return p.about
			}
		}
	}
	return ""
}

// run is one pass of one system through the phases.
type run struct {
	opts   Options
	system system.System
	out    *result.Run
	phase  string

	server  system.Server // of the present group
	waiting *queue        // the backlog of the present group
	rate    float64       // of steady, for what is compared with it
}

var errNotApplicable = errors.New("the system has no such thing")

// Run measures one system once. The error is that ctx ended; what else goes
// wrong is a failure of its phase. All that it started has ended when it
// returns.
func Run(ctx context.Context, env *system.Env, s system.System, number int, opts Options) (*result.Run, error) {
	start := gauge.Now()
	r := &run{opts: opts, system: s, out: &result.Run{
		System: s.Name, Number: number, Started: time.Now().UTC().Truncate(time.Second),
		Figures: []result.Figure{}, Checks: []result.Check{},
	}}
	for _, g := range groups {
		wanted := slices.DeleteFunc(slices.Clone(g), func(p phase) bool { return !r.wants(p.name, g) })
		if len(wanted) == 0 {
			continue
		}
		r.measureGroup(ctx, env, wanted)
		if ctx.Err() != nil {
			return r.out, context.Cause(ctx)
		}
	}
	r.out.Seconds = (gauge.Now() - start).Seconds()
	return r.out, nil
}

// wants also includes memory where a later phase of its group needs the
// backlog that it makes.
func (r *run) wants(name string, g group) bool {
	if name != "memory" {
		return slices.Contains(r.opts.Phases, name)
	}
	return slices.ContainsFunc(g, func(p phase) bool { return slices.Contains(r.opts.Phases, p.name) })
}

func (r *run) measureGroup(ctx context.Context, env *system.Env, g group) {
	dir, err := os.MkdirTemp(r.opts.Dir, "data-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // a server may run as another user
	}
	if err != nil {
		r.fail(g, err)
		return
	}
	r.server, r.waiting = r.system.New(env, dir), nil
	if err = r.server.Start(ctx); err != nil {
		err = fmt.Errorf("starting the server: %w", err)
	}
	for i, p := range g {
		if err == nil {
			err = r.measurePhase(ctx, p)
		}
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		if errors.Is(err, errNotApplicable) {
			err = nil
			continue
		}
		if err != nil {
			r.fail(g[i:], err)
			break
		}
	}
	if err != nil {
		err = r.server.Kill()
	} else {
		err = r.server.Stop()
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		r.opts.Log("%s: stopping: %v", r.system.Name, err)
	}
}

func (r *run) measurePhase(ctx context.Context, p phase) error {
	r.phase = p.name
	if err := quiet(ctx, r.server); err != nil {
		return err
	}
	patience := phasePatience + r.opts.Window
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took more than %v", patience))
	defer cancel()
	figures := len(r.out.Figures)
	err := p.measure(r, ctx)
	if err != nil {
		r.out.Figures = r.out.Figures[:figures]
		if dead := r.server.Alive(); dead != nil && !errors.Is(err, errNotApplicable) { // says more than a broken connection
			err = errors.Join(dead, err)
		}
	}
	return err
}

func (r *run) fail(phases group, err error) {
	for i, p := range phases {
		if i > 0 {
			err = fmt.Errorf("not run: %s failed before", phases[0].name)
		}
		r.out.Failures = append(r.out.Failures, result.Failure{Phase: p.name, Error: err.Error()})
		r.opts.Log("%-24s %-8s FAILED: %v", r.system.Name, p.name, err)
	}
}

// figure notes a value of this phase. cost may be nil.
func (r *run) figure(name, unit string, value float64, cost *result.Cost) {
	r.out.Figures = append(r.out.Figures, result.Figure{Phase: r.phase, Name: name, Unit: unit, Value: value, Cost: cost})
	if cost != nil || unit != "ms" {
		r.opts.Log("%-24s %-8s %12s %s  (%s)", r.system.Name, r.phase, result.Number(value), unit, name)
	}
}

// newQueue makes a queue of this phase.
func (r *run) newQueue(ctx context.Context) (*queue, error) {
	q := &queue{name: "bench-" + r.phase}
	if err := r.server.Create(ctx, q.name); err != nil {
		return nil, fmt.Errorf("creating queue %s: %w", q.name, err)
	}
	return q, nil
}

// verify compares what the server has in a queue with what must be there. The
// server gets some time to agree, because acknowledgements and the return of
// what workers gave back may still be on their way.
func (r *run) verify(ctx context.Context, q *queue) error {
	const step = 5 * time.Millisecond
	patience := cmp.Or(r.opts.VerifyPatience, 20*time.Second)
	seen, duplicates, wrong := q.counts()
	enqueued := q.enqueued.Load()
	if wrong != nil {
		return fmt.Errorf("verification: %w", wrong)
	}
	for end := gauge.Now() + patience; ; {
		left, err := r.server.Count(ctx, q.name)
		if err != nil {
			return fmt.Errorf("counting jobs: %w", err)
		}
		if left == enqueued-seen {
			r.out.Checks = append(r.out.Checks, result.Check{
				Phase: r.phase, Enqueued: enqueued, Delivered: seen, Duplicates: duplicates, Left: left,
			})
			return nil
		}
		if gauge.Now() > end {
			return fmt.Errorf("verification: queue %s has %d unfinished jobs, expected %d (%d enqueued, %d done)",
				q.name, left, enqueued-seen, enqueued, seen)
		}
		if err := gauge.Wait(ctx, step); err != nil {
			return err
		}
	}
}
