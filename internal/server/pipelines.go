package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/door/pipeline"
	"github.com/reprisehq/reprise/internal/fluent"
	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/part"
)

// pipelines are those that run.
type pipelines struct {
	list []*pipeline.Pipeline
	over chan struct{} // closed when one that ends has ended; nil = none does
}

// ReadPipeline reads a configuration of Fluent Bit, and tells what there is to tell of it
// in the report. Nothing is opened.
func ReadPipeline(cfg config.Config, p config.Pipeline, log *slog.Logger, r *fluentconf.Report) *fluent.Config {
	return fluent.Load(fluent.Options{
		Name: p.Name, Path: p.Path, Flags: p.Flags, From: fluentconf.System(), Insecure: cfg.Insecure, AllowHosts: cfg.AllowHost,
		Stdin: os.Stdin, Stdout: os.Stdout, Now: time.Now, Log: log,
	}, r)
}

// openPipelines begins to read and to deliver.
func openPipelines(ctx context.Context, cfg config.Config, e *part.Engine, log *slog.Logger) (*pipelines, error) {
	all := &pipelines{}
	for _, p := range cfg.Pipelines {
		var r fluentconf.Report
		c := ReadPipeline(cfg, p, log, &r)
		if err := r.Err(); err != nil {
			return all, err
		}
		for _, n := range r.Notices() {
			log.WarnContext(ctx, "about the configuration of a pipeline", "at", n.At.String(), "notice", n.Text)
		}
		x, err := pipeline.Start(ctx, e, c.Plan, log)
		if err != nil {
			return all, fmt.Errorf("starting the pipeline %s: %w", p.Name, err)
		}
		all.list = append(all.list, x)
		if p.Ends {
			all.over = make(chan struct{})
			go all.end(ctx, x)
		}
	}
	return all, nil
}

// end waits until the inputs of a pipeline have ended, and all that came in has been
// delivered or given up.
func (p *pipelines) end(ctx context.Context, x *pipeline.Pipeline) {
	x.Wait()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if idle, err := x.Idle(ctx); idle || err != nil {
			close(p.over)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// Stop ends all of them. What is not delivered stays.
func (p *pipelines) Stop() {
	for _, x := range p.list {
		x.Stop()
	}
}
