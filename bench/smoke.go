package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/reprisehq/reprise/bench/measure"
	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
)

// smokeCommand measures Reprise and one peer with small counts: not for the
// figures, but to see that harness, client and servers still work together.
func smokeCommand(ctx context.Context, args []string) (err error) {
	s := &session{
		env: &system.Env{Log: progress},
		opts: measure.Options{
			Phases: measure.PhaseNames(), Log: progress,
			Window: 300 * time.Millisecond, Backlog: 10_000, Storm: 200, Rate: 200, Connections: 8, BulkConnections: 2,
		},
		runs: 1,
	}
	flags := flag.NewFlagSet("bench smoke", flag.ContinueOnError)
	flags.StringVar(&s.env.Reprise, "reprise", defaultReprise, "the program to measure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.systems, err = chooseSystems("Reprise always,beanstalkd -f0"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "reprise-smoke-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.results, s.document = filepath.Join(dir, "smoke.json"), filepath.Join(dir, "smoke.md")
	if err := s.measure(ctx, dir); err != nil {
		return err
	}
	return checkSmoke(s.results, s.document)
}

// checkSmoke holds what a smoke run must leave behind: both systems, each
// phase, counts that were verified, and a document that names them.
func checkSmoke(results, document string) error {
	const systems = 2
	file, err := result.Load(results)
	if err != nil {
		return err
	}
	if len(file.Runs) != systems {
		return fmt.Errorf("%d systems were measured, expected %d", len(file.Runs), systems)
	}
	for _, r := range file.Runs {
		measured := map[string]bool{}
		for _, f := range r.Figures {
			measured[f.Phase] = true
		}
		for _, name := range measure.PhaseNames() {
			if !measured[name] {
				return fmt.Errorf("%s has no figure of %s", r.System, name)
			}
		}
		if len(r.Checks) < len(measured) {
			return fmt.Errorf("%s: only %d counts were verified in %d phases", r.System, len(r.Checks), len(measured))
		}
	}
	_, err = os.Stat(document)
	return err
}
