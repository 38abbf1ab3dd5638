package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/connect/web"
	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/wire"
)

// openInboxes begins to deliver.
func openInboxes(ctx context.Context, cfg config.Config, e *part.Engine, log *slog.Logger) (*inbox.Door, error) {
	egress, err := cfg.Egress()
	if err != nil {
		return nil, err
	}
	o := inbox.Options{Engine: e, Sinks: sinks(egress, cfg.SecretsDir), Log: log}
	if cfg.Cluster.Enabled {
		o.LockMost, o.Node = cfg.Cluster.LockMost, hostName()
	}
	d := inbox.New(o)
	if err := d.Start(ctx, cfg.Inboxes); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// hostName names this process where several share a lock.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown host"
	}
	return name
}

// sinks delivers to endpoints: to those of the file, and to those of the API
// that may be called.
func sinks(egress *connect.Egress, secrets string) inbox.Sinks {
	return func(h *inbox.HTTP, configured bool) (connect.Sink, error) {
		o := web.Options{
			URL: h.URL, Egress: egress, Batch: h.Batch, Header: h.Headers,
			Timeout: time.Duration(h.Timeout) * time.Millisecond, Connections: h.Concurrent, UserAgent: "reprise/" + Version,
			Mask: h.Mask,
		}
		if configured {
			o.Egress = nil
		} else {
			var err error
			if o.Header, o.Mask, err = secretsFrom(secrets, h.Headers); err != nil {
				return nil, err
			}
		}
		s, err := web.New(o)
		if err != nil {
			return nil, err // and not a sink that is nil
		}
		return s, nil
	}
}

// PreviewInbox tells what an inbox with these settings, JSON, does about a
// message that no receiver takes, run by run.
func PreviewInbox(settings []byte) (*wire.InboxPreview, error) {
	s, err := inbox.ReadSettings(settings)
	if err != nil {
		return nil, err
	}
	return inbox.ShowPreview(s)
}
