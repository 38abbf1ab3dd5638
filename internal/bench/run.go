package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// phase is one kind of measurement.
type phase struct {
	name    string
	about   string
	local   bool // needs a server process of its own
	measure func(*run, context.Context) error
}

var phases = []phase{
	{"singles", "durable single enqueues over many connections, against the same server without a store", false, (*run).singles},
	{"bulk", "enqueues in batches of 500", false, (*run).bulk},
	{"unique", "enqueues under unique keys against plain ones, single and in batches of 500", false, (*run).unique},
	{"drain", "take streams and bulk acknowledgements, from a backlog made before", false, (*run).drain},
	{"steady", "producers and workers at once, jobs from end to end", false, (*run).steady},
	{"latency", "enqueue to receipt by an idle worker at a fixed rate", false, (*run).latency},
	{"backlog", "steady with a backlog in another queue and in the same, against an empty server", false, (*run).backlog},
	{"storm", "every job fails once, waits, and succeeds", false, (*run).storm},
	{"memory", "resident memory per queued job", true, (*run).memory},
	{"idle", "memory and processor time of take streams that wait", true, (*run).idle},
	{"restart", "from exec to listening and to the first job, after SIGTERM and after SIGKILL", true, (*run).restart},
}

// PhaseNames lists the phases in the order in which they run.
func PhaseNames() []string {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = p.name
	}
	return names
}

// PhaseAbout says what a phase measures.
func PhaseAbout(name string) string {
	for _, p := range phases {
		if p.name == name {
			return p.about
		}
	}
	return ""
}

// generatorGCPercent lets the generator, whose live memory is small, collect
// garbage rarely.
const generatorGCPercent = 800

// run is one execution of the bench.
type run struct {
	opts    Options
	report  *Report
	log     *progress
	dir     string // holds the data directories
	token   string // sets our queues apart on a server that lives on
	made    int    // queues and directories made so far
	phase   string // the phase being measured
	servers []*server
	queues  []*queue // of the phase being measured
}

// Run measures and returns the report, which holds what was measured before an
// error. Progress lines go to log. When ctx ends, all servers are stopped and
// their directories removed.
func Run(ctx context.Context, opts Options, log io.Writer) (*Report, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	debug.SetGCPercent(generatorGCPercent)
	r := &run{opts: opts, log: newProgress(log), token: strconv.FormatInt(time.Now().UnixMilli(), 36)}
	if err := r.makeDir(); err != nil {
		return nil, err
	}
	r.report = newReport(opts, readMachine(r.dir))
	err := r.measure(ctx)
	err = errors.Join(err, os.RemoveAll(r.dir))
	r.report.Complete = err == nil
	return r.report, err
}

// makeDir makes the directory of this run: not in the system's temporary
// directory unless told so, because that is often in memory.
func (r *run) makeDir() error {
	parent := r.opts.RootDir
	if parent == "" {
		parent = "."
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return fmt.Errorf("root directory: %w", err)
	}
	if r.dir, err = os.MkdirTemp(parent, ".reprise-bench-"); err != nil {
		return fmt.Errorf("root directory: %w", err)
	}
	return nil
}

func (r *run) measure(ctx context.Context) error {
	for _, p := range phases {
		if !slices.Contains(r.opts.Phases, p.name) {
			continue
		}
		if p.local && r.opts.URL != "" {
			r.report.skip(p.name, "it needs a server started by the bench, and a URL was given")
			continue
		}
		r.phase = p.name
		r.log.printf("%s: %s", p.name, p.about)
		for range r.opts.Repeat {
			if err := r.measureOnce(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

func (r *run) measureOnce(ctx context.Context, p phase) error {
	err := p.measure(r, ctx)
	switch {
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	case err != nil: // a dead server explains more than a broken connection
		for _, s := range r.servers {
			err = errors.Join(err, s.dead())
		}
	}
	return errors.Join(err, r.stopServers(context.WithoutCancel(ctx), err == nil))
}

// stopServers ends the servers of a phase and removes what they stored.
// Failing to end well is an error only where nothing else was.
func (r *run) stopServers(ctx context.Context, well bool) error {
	var wrong error
	for _, s := range r.servers {
		if s.process == nil {
			for _, q := range r.queues {
				if q.open() == 0 {
					continue
				}
				if err := s.empty(ctx, q.name); err != nil { // the figures are good all the same
					r.log.printf("%s: left behind in queue %s: %v", r.phase, q.name, err)
				}
			}
			continue
		}
		if err := s.stop(); well {
			wrong = errors.Join(wrong, err)
		}
		if s.dir != "" {
			wrong = errors.Join(wrong, os.RemoveAll(s.dir))
		}
	}
	r.servers, r.queues = nil, nil
	return wrong
}

// server returns a fresh server with an empty directory, or the one at the URL.
func (r *run) server(ctx context.Context) (*server, error) {
	if r.opts.URL == "" {
		r.made++
		return r.serverIn(ctx, filepath.Join(r.dir, strconv.Itoa(r.made)))
	}
	s, err := remoteServer(r.opts.URL, r.opts.Token, r.opts.TLS)
	if err != nil {
		return nil, err
	}
	r.servers = append(r.servers, s)
	return s, r.admit(ctx, s)
}

// serverIn starts a server on a directory that may hold jobs already.
func (r *run) serverIn(ctx context.Context, dir string) (*server, error) {
	s, err := r.execute(ctx, dir, "--sync", r.opts.Sync)
	if err != nil {
		return nil, err
	}
	return s, r.admit(ctx, s)
}

// nullServer starts the same server with no store behind its handlers.
func (r *run) nullServer(ctx context.Context) (*server, error) {
	r.made++
	return r.execute(ctx, filepath.Join(r.dir, strconv.Itoa(r.made)), "--null")
}

// execute starts a server and notes it for stopServers.
func (r *run) execute(ctx context.Context, dir string, more ...string) (*server, error) {
	args := slices.Concat([]string{
		"serve", "--port", "0", "--root-dir", dir, "--log-format", "json", "--log-level", "info",
	}, more, r.opts.ServerArgs)
	s, err := startServer(ctx, r.opts.Executable, args)
	if err != nil {
		return nil, err
	}
	s.dir = dir
	r.servers = append(r.servers, s)
	return s, nil
}

// admit notes the version of a server for the report.
func (r *run) admit(ctx context.Context, s *server) error {
	if r.report.Version != "" {
		return nil
	}
	version, err := s.version(ctx)
	r.report.Version = version
	return err
}

// newQueue names a queue that no one has used.
func (r *run) newQueue() *queue {
	r.made++
	q := &queue{name: fmt.Sprintf("bench-%s-%s-%d", r.token, r.phase, r.made)}
	r.queues = append(r.queues, q)
	return q
}

// verify compares what the server has in a queue with what must be there.
func (r *run) verify(ctx context.Context, s *server, q *queue) error {
	found, err := s.count(ctx, q.name)
	if err != nil {
		return err
	}
	if found != q.open() {
		return notEqual(fmt.Sprintf("the number of unfinished jobs in queue %s (%d accepted, %d completed)",
			q.name, q.enqueued.Load(), q.done.Load()), found, q.open())
	}
	r.report.Checks = append(r.report.Checks, Check{
		Phase: r.phase, Queue: q.name, Accepted: q.enqueued.Load(), Completed: q.done.Load(), Found: found,
	})
	return nil
}

// window is one measured stretch of a timed phase.
type window struct {
	rate float64 // jobs a second
	cost Cost
}

// window lets a phase that is running warm up, measures it and stops it. It
// grows longer than Options.Window when by then nothing was done at all.
func (r *run) window(ctx context.Context, s *server, st *stage, count func() int64) (window, error) {
	defer st.at.Store(stopped)
	if err := gauge.Wait(ctx, r.opts.warmUp()); err != nil {
		return window{}, err
	}
	st.at.Store(measuring)
	m, before, start := startMeter(s), count(), gauge.Now()
	for {
		if err := gauge.Wait(ctx, r.opts.Window); err != nil {
			return window{}, err
		}
		jobs, took := count()-before, gauge.Now()-start
		if jobs > 0 {
			return window{float64(jobs) / took.Seconds(), m.read(jobs)}, nil
		}
		if took > stallPatience {
			return window{}, fmt.Errorf("not a single job was done in %v", took.Round(time.Second))
		}
	}
}

// figure adds a sample to a figure of this phase.
func (r *run) figure(name, unit string, value float64, goal *Goal) {
	r.report.figure(r.phase, name, unit, value, goal)
}

func (r *run) cost(of string, c Cost) {
	c.Phase, c.Of = r.phase, of
	r.report.cost(c)
}
