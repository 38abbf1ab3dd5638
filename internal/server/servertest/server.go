// Package servertest runs a whole server in the process of a test, for packages
// that the server is built of or that stand beside it.
package servertest

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/server"
)

// Start runs a server with the default configuration, on a free port and a
// directory of its own. stop ends it and removes the directory.
func Start(ctx context.Context) (url string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "reprise-test-")
	if err != nil {
		return "", nil, err
	}
	cfg, address := config.Default(), make(chan string, 1)
	cfg.RootDir, cfg.Port = dir, 0
	cfg.Log = slog.New(ear{slog.DiscardHandler, address})
	ctx, end := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- server.Run(ctx, cfg) }()
	select {
	case addr := <-address:
		return "http://" + addr, func() error { end(); return errors.Join(<-over, os.RemoveAll(dir)) }, nil
	case err := <-over:
		end()
		return "", nil, errors.Join(errors.New("the server ended without listening"), err, os.RemoveAll(dir))
	}
}

// ear waits for the one word that the server listens, and where.
type ear struct {
	slog.Handler
	address chan<- string
}

// Enabled implements slog.Handler: nothing is left out.
func (ear) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (e ear) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "listening" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "addr" {
			e.address <- a.Value.String()
		}
		return a.Key != "addr"
	})
	return nil
}
