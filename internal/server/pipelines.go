package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/door/pipeline"
	"github.com/reprisehq/reprise/internal/fluent"
	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/monitor"
	"github.com/reprisehq/reprise/internal/part"
)

// pipelines are those that run.
type pipelines struct {
	list     []*pipeline.Pipeline
	monitors []*http.Server
	ticks    sync.WaitGroup
	stop     context.CancelFunc
	over     chan struct{} // closed when one that ends has ended; nil = none does
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
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	all := &pipelines{stop: stop}
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
		if err := all.watch(ctx, cfg, c, x, log); err != nil {
			return all, err
		}
		if p.Ends {
			all.over = make(chan struct{})
			go all.end(ctx, x)
		}
	}
	return all, nil
}

// watch serves the counters of a pipeline, if its configuration says so.
func (p *pipelines) watch(ctx context.Context, cfg config.Config, c *fluent.Config, x *pipeline.Pipeline, log *slog.Logger) error {
	if c.Monitor == "" {
		return nil
	}
	v := c.Service
	m := monitor.New(monitor.Options{
		Pipeline: x, Version: Version, Now: time.Now, Storage: v.Flag("storage.metrics"), Health: v.Flag("health_check"),
		Limits:     monitor.Limits{Errors: v.Int("hc_errors_count"), GivenUp: v.Int("hc_retry_failure_count"), Seconds: int(v.Int("hc_period"))},
		AllowHosts: namesOf(cfg.AllowHost),
	})
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Monitor)
	if err != nil {
		return fmt.Errorf("%s: HTTP_Server: %w; take another HTTP_Port", v.Place("http_port"), err)
	}
	s := httpapi.NewServer(m)
	p.monitors = append(p.monitors, s)
	go func() { _ = s.Serve(l) }() // it ends with Stop
	listening(log, "pipeline monitor", l.Addr().String(), "http")
	p.ticks.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			m.Sample()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func namesOf(list []string) map[string]bool {
	names := map[string]bool{}
	for _, name := range list {
		names[name] = true
	}
	return names
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
	p.stop()
	p.ticks.Wait()
	for _, s := range p.monitors {
		_ = s.Close() // what is asked now is not answered
	}
	for _, x := range p.list {
		x.Stop()
	}
}
