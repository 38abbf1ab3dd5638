package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/reprisehq/reprise/bench/measure"
	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
)

// Paths are relative to bench/, where the command runs.
const (
	defaultResults  = "results/peers.json"
	defaultDocument = "../docs/benchmarks.md"
	defaultReprise  = "../bin/reprise"
)

// generatorGCPercent lets the generator, whose live memory is small, collect
// garbage rarely.
const generatorGCPercent = 800

// session is one invocation of the command.
type session struct {
	env      *system.Env
	systems  []system.System
	opts     measure.Options
	runs     int
	resume   bool
	results  string
	document string // "": none is written
	dir      string // of all data; removed at the end
}

func runCommand(ctx context.Context, args []string) error {
	s := &session{env: &system.Env{Log: progress}, opts: measure.Options{Log: progress, Connections: 64, BulkConnections: 8}}
	flags := flag.NewFlagSet("bench run", flag.ContinueOnError)
	flags.IntVar(&s.runs, "runs", 5, "times each system is measured; medians are of so many")
	seconds := flags.Float64("seconds", 2, "length of each timed phase")
	flags.Int64Var(&s.opts.Backlog, "backlog", 100_000, "jobs that wait in memory, backlog, restart and drain")
	flags.Int64Var(&s.opts.Storm, "storm", 10_000, "jobs that fail once in storm")
	flags.Float64Var(&s.opts.Rate, "rate", 200, "jobs a second in latency")
	only := flags.String("only", "", "parts of names of systems to measure, divided by commas; empty: all")
	phases := flags.String("phases", "", "phases to measure, divided by commas; empty: all")
	flags.BoolVar(&s.resume, "continue", false, "keep the runs in the results file and add those that are missing")
	flags.StringVar(&s.results, "out", defaultResults, "results file; without -continue it is replaced")
	flags.StringVar(&s.document, "doc", defaultDocument, "document to write; empty: none")
	flags.StringVar(&s.env.Reprise, "reprise", defaultReprise, "the program to measure")
	parent := flags.String("dir", "", "where data directories are made; empty: the system's temporary directory, which must be on a disk")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s.opts.Window = time.Duration(*seconds * float64(time.Second))
	var err error
	if s.opts.Phases, err = choose(measure.PhaseNames(), *phases); err != nil {
		return err
	}
	if s.systems, err = chooseSystems(*only); err != nil {
		return err
	}
	if s.runs < 1 || s.opts.Window <= 0 || s.opts.Backlog < 1 || s.opts.Storm < 1 || s.opts.Rate <= 0 {
		return errors.New("runs, seconds, backlog, storm and rate must be more than 0")
	}
	return s.measure(ctx, *parent)
}

func progress(format string, args ...any) {
	fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// choose returns the names of all that are in the list wanted, in the order of
// all.
func choose(all []string, wanted string) ([]string, error) {
	if wanted == "" {
		return all, nil
	}
	list := strings.Split(wanted, ",")
	for _, name := range list {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no %q; choose from %s", name, strings.Join(all, ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(list, name) }), nil
}

func chooseSystems(only string) ([]system.System, error) {
	all := system.All()
	if only == "" {
		return all, nil
	}
	var chosen []system.System
	parts := strings.Split(strings.ToLower(only), ",")
	used := make([]bool, len(parts))
	for _, s := range all {
		match := false
		for i, part := range parts {
			if strings.Contains(strings.ToLower(s.Name), strings.TrimSpace(part)) {
				match, used[i] = true, true
			}
		}
		if match {
			chosen = append(chosen, s)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, fmt.Errorf("no system has %q in its name; `bench list` names them", parts[i])
	}
	return chosen, nil
}

// measure does all the runs, interleaved over the systems, so that a slow hour
// of the machine hits all alike. A system that fails is reported and the rest
// goes on; what was measured is saved after each run.
func (s *session) measure(ctx context.Context, parent string) (err error) {
	debug.SetGCPercent(generatorGCPercent)
	if err := s.makeDir(parent); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	file := &result.File{
		Started: time.Now().UTC().Truncate(time.Second),
		Machine: result.ReadMachine(s.dir),
		Settings: result.Settings{
			Runs: s.runs, Seconds: s.opts.Window.Seconds(), Backlog: s.opts.Backlog, Storm: s.opts.Storm,
			Rate: s.opts.Rate, Connections: s.opts.Connections, BulkConnections: s.opts.BulkConnections, Payload: measure.PayloadBytes, Phases: s.opts.Phases,
		},
	}
	if s.resume {
		if file, err = result.Continue(s.results, file); err != nil {
			return err
		}
	}
	s.install(ctx, file)
	if err := file.Save(s.results); err != nil {
		return err
	}
	failures := 0
	for number := 1; number <= s.runs; number++ {
		for _, one := range s.systems {
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted; -continue adds what is missing to %s", s.results)
			}
			if file.Has(one.Name, number) {
				continue
			}
			progress("-- run %d of %d: %s", number, s.runs, one.Name)
			r, err := measure.Run(ctx, s.env, one, number, s.opts)
			if err != nil {
				return fmt.Errorf("interrupted; -continue adds what is missing to %s", s.results)
			}
			failures += len(r.Failures)
			file.Runs = append(file.Runs, *r)
			if err := file.Save(s.results); err != nil {
				return err
			}
		}
	}
	if s.document != "" {
		if err := writeDocument(file, s.document, s.results); err != nil {
			return err
		}
	}
	if failures > 0 {
		return fmt.Errorf("%d phases failed; the report names them", failures)
	}
	return nil
}

// install notes versions, and drops the systems that cannot be had.
func (s *session) install(ctx context.Context, file *result.File) {
	s.systems = slices.DeleteFunc(s.systems, func(one system.System) bool {
		versions, err := one.Install(ctx, s.env)
		known := result.System{
			Name: one.Name, Class: string(one.Class), ClassAbout: one.Class.About(), Versions: versions,
			Durability: one.Durability, Bulk: one.Bulk, Workers: one.Workers, Retry: one.Retry,
		}
		if err != nil {
			known.Missing = err.Error()
			progress("%s cannot be installed: %v", one.Name, err)
		} else {
			progress("%s: %s", one.Name, versions)
		}
		file.SetSystem(known)
		return err != nil
	})
}

// makeDir makes the directory of all data. A temporary directory in memory
// would make every fsync free.
func (s *session) makeDir(parent string) error {
	const tmpfs = 0x01021994
	if parent == "" {
		parent = os.TempDir()
		var fs syscall.Statfs_t
		if err := syscall.Statfs(parent, &fs); err != nil {
			return err
		}
		if fs.Type == tmpfs {
			return fmt.Errorf("%s is in memory; name a directory on a disk with -dir", parent)
		}
	}
	dir, err := os.MkdirTemp(parent, "reprise-peers-")
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	s.dir, s.opts.Dir = dir, dir
	s.env.Tools = filepath.Join(dir, "tools")
	if s.env.Reprise, err = filepath.Abs(s.env.Reprise); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(s.env.Tools, 0o755), os.Chmod(dir, 0o755)) // a server may run as another user
}
