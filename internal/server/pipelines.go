package server

import (
	"context"
	"errors"
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

// ReadPipeline reads a configuration of Fluent Bit, and tells what there is to tell of it
// in the report. Nothing is opened.
func ReadPipeline(cfg config.Config, p config.Pipeline, log *slog.Logger, r *fluentconf.Report) *fluent.Config {
	return fluent.Load(fluent.Options{
		Name: p.Name, Path: p.Path, Flags: p.Flags, From: fluentconf.System(), Insecure: cfg.Insecure, AllowHosts: cfg.AllowHost,
		Stdin: os.Stdin, Stdout: os.Stdout, Now: time.Now, Log: log,
	}, r)
}

// pipelines are those that run.
type pipelines struct {
	engine *part.Engine
	log    *slog.Logger
	over   chan struct{} // closed when one that ends has ended
	asked  chan struct{} // somebody wants the configuration to be read again

	mu    sync.Mutex // guards what follows
	list  []*piped
	count int // how often the configuration was read again
}

// piped is one pipeline with what watches it.
type piped struct {
	config.Pipeline
	*fluent.Config
	runs    *pipeline.Pipeline
	monitor *http.Server // nil = none
	ticks   sync.WaitGroup
	stop    context.CancelFunc
}

// openPipelines begins to read and to deliver.
func openPipelines(ctx context.Context, cfg config.Config, e *part.Engine, log *slog.Logger) (*pipelines, error) {
	all := &pipelines{engine: e, log: log, over: make(chan struct{}), asked: make(chan struct{}, 1)}
	list, err := all.read(ctx, cfg)
	if err == nil {
		err = all.start(ctx, cfg, list)
	}
	return all, err
}

// read reads the configurations. If one cannot run, nothing changes.
func (p *pipelines) read(ctx context.Context, cfg config.Config) (list []*piped, err error) {
	for _, named := range cfg.Pipelines {
		var r fluentconf.Report
		c := ReadPipeline(cfg, named, p.log, &r)
		err = errors.Join(err, r.Err())
		for _, n := range r.Notices() {
			p.log.WarnContext(ctx, "about the configuration of a pipeline", "at", n.At.String(), "notice", n.Text)
		}
		list = append(list, &piped{Pipeline: named, Config: c})
	}
	return list, err
}

// start starts pipelines, all of them or none.
func (p *pipelines) start(ctx context.Context, cfg config.Config, list []*piped) error {
	for i, x := range list {
		if err := p.startOne(ctx, cfg, x); err != nil {
			for _, begun := range list[:i+1] {
				begun.end()
			}
			return fmt.Errorf("starting the pipeline %s: %w", x.Name, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = list
	return nil
}

func (p *pipelines) startOne(ctx context.Context, cfg config.Config, x *piped) (err error) {
	ctx, x.stop = context.WithCancel(context.WithoutCancel(ctx))
	if x.runs, err = pipeline.Start(ctx, p.engine, x.Plan, p.log); err != nil {
		return err
	}
	if x.Ends {
		go p.whenOver(ctx, x)
	}
	return p.watch(ctx, cfg, x)
}

// watch serves the counters of a pipeline, if its configuration says so.
func (p *pipelines) watch(ctx context.Context, cfg config.Config, x *piped) error {
	if x.Monitor == "" {
		return nil
	}
	v := x.Service
	o := monitor.Options{
		Pipeline: x.runs, Version: Version, Now: time.Now, Storage: v.Flag("storage.metrics"), Health: v.Flag("health_check"),
		Limits:     monitor.Limits{Errors: v.Int("hc_errors_count"), GivenUp: v.Int("hc_retry_failure_count"), Seconds: int(v.Int("hc_period"))},
		AllowHosts: map[string]bool{}, Reloads: p.reloads,
	}
	for _, name := range cfg.AllowHost {
		o.AllowHosts[name] = true
	}
	if v.Flag("hot_reload") {
		o.Reload = func() error { return p.ask(cfg) }
	}
	m := monitor.New(o)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", x.Monitor)
	if err != nil {
		return fmt.Errorf("%s: HTTP_Server: %w; take another HTTP_Port", v.Place("http_port"), err)
	}
	x.monitor = httpapi.NewServer(m)
	go func() { _ = x.monitor.Serve(l) }() // it ends with Close
	listening(p.log, "pipeline monitor", l.Addr().String(), "http")
	x.ticks.Go(func() {
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

// ask wants the configuration to be read again, soon: who asks may be answered by what
// that ends. One that cannot run is refused here.
func (p *pipelines) ask(cfg config.Config) error {
	for _, named := range cfg.Pipelines {
		var r fluentconf.Report
		ReadPipeline(cfg, named, p.log, &r).Close(p.log)
		if err := r.Err(); err != nil {
			return err
		}
	}
	select {
	case p.asked <- struct{}{}:
		return nil
	default:
		return monitor.ErrBusy
	}
}

func (p *pipelines) reloads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// end ends a pipeline. What is not delivered stays.
func (x *piped) end() {
	x.stop()
	x.ticks.Wait()
	if x.monitor != nil {
		_ = x.monitor.Close() // what is asked now is not answered
		x.monitor = nil
	}
	if x.runs != nil {
		x.runs.Stop()
	}
}

// configure lets the configurations hold as their files are now. If one cannot run, those
// that ran go on.
func (p *pipelines) configure(ctx context.Context, cfg config.Config) error {
	next, err := p.read(ctx, cfg)
	if err != nil {
		return err
	}
	p.mu.Lock()
	before := p.list
	p.mu.Unlock()
	for _, x := range before {
		x.end()
	}
	if err := p.start(ctx, cfg, next); err != nil {
		for _, x := range next {
			x.Close(p.log)
		}
		return errors.Join(err, p.start(ctx, cfg, before))
	}
	for _, x := range before {
		x.Close(p.log)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	return nil
}

// whenOver waits until the inputs of a pipeline have ended by themselves, and all that came
// in has been delivered or given up.
func (p *pipelines) whenOver(ctx context.Context, x *piped) {
	x.runs.Wait()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if idle, err := x.runs.Idle(ctx); idle || err != nil {
			close(p.over)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// Stop ends all of them.
func (p *pipelines) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		x.end()
		x.Close(p.log)
	}
	p.list = nil
}
