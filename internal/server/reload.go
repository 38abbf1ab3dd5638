package server

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// reloadable is a part of a server that follows a new configuration. change
// must leave everything as it was when it returns an error, and is called with
// what was in effect before.
type reloadable struct {
	name   string
	change func(ctx context.Context, from, to config.Config) error
}

// reloader applies new configurations, one at a time.
type reloader struct {
	mu    sync.Mutex    // guards what follows
	now   config.Config // in effect, as far as it can change
	parts []reloadable
	log   *slog.Logger
	asked <-chan struct{} // as a signal, from inside of the server; nil = nobody asks
}

// follow reloads until ctx ends.
func (r *reloader) follow(ctx context.Context, how config.Reload) {
	for {
		select {
		case <-how.Signal:
			r.reload(ctx, how.Load)
		case <-r.asked:
			if how.Load != nil {
				r.reload(ctx, how.Load)
			}
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the configuration and lets what can change hold from now on. A
// bad one changes nothing, and all that is wrong with it is logged.
func (r *reloader) reload(ctx context.Context, load func() (config.Config, config.Report, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, report, err := load()
	if err != nil {
		r.log.ErrorContext(ctx, "the configuration was not reloaded; nothing has changed", "error", err)
		return
	}
	report.Tell(ctx, r.log)
	for i, p := range r.parts {
		err := p.change(ctx, r.now, next)
		if err == nil {
			continue
		}
		r.log.ErrorContext(ctx, "the configuration was not reloaded; nothing has changed", "part", p.name, "error", err)
		for _, done := range slices.Backward(r.parts[:i]) {
			if err := done.change(ctx, next, r.now); err != nil {
				r.log.ErrorContext(ctx, "and a part could not go back", "part", done.name, "error", err)
			}
		}
		return
	}
	now, pending := config.Reloaded(r.now, next)
	for _, p := range pending {
		r.log.WarnContext(ctx, "a setting changes with the next start only", "setting", p.Name, "in_effect", p.InEffect, "configured", p.Configured)
	}
	r.now = now
	r.log.InfoContext(ctx, "the configuration was reloaded")
}

func logLevel(log *slog.Logger) reloadable {
	return reloadable{"log level", func(_ context.Context, _, to config.Config) error {
		SetLevel(log, to.LogLevel)
		return nil
	}}
}

// engineSettings are the rules, limits and queues. Of the queues only those
// whose settings in the file have changed: an operator may have changed others
// since the start.
func engineSettings(e *engine.Engine) reloadable {
	return reloadable{"queues and limits", func(ctx context.Context, from, to config.Config) error {
		o := engineOptions(to)
		o.Queues = nil
		for _, q := range to.Queues {
			same := func(old *job.Queue) bool { return reflect.DeepEqual(old, q) }
			if !slices.ContainsFunc(from.Queues, same) {
				o.Queues = append(o.Queues, q)
			}
		}
		return e.Reconfigure(ctx, o, job.Actor{Name: "reload of the configuration"})
	}}
}

func certificateFiles(c *Certificates) reloadable {
	return reloadable{"certificates", func(context.Context, config.Config, config.Config) error { return c.Reload() }}
}

// refuseExposure keeps a server that others can reach from losing what protects
// it. It changes nothing, so it goes first.
func refuseExposure(closed func() bool) reloadable {
	return reloadable{"exposure", func(_ context.Context, _, to config.Config) error {
		if why := to.Exposed(closed() || len(to.Tokens) > 0); why != nil && !to.Insecure {
			return why
		}
		return nil
	}}
}
