// Package server assembles a server from its configuration: it chooses the
// store, connects engine, doors and listeners, starts them in order and stops
// them in reverse. It owns no rule and no vocabulary.
package server

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// Run serves until ctx ends, then stops: no new work, streams end, everything
// that was accepted is answered, the store is closed.
func Run(ctx context.Context, cfg Config) (err error) {
	log := cfg.Log
	if log == nil {
		log = slog.Default()
	}
	// A small heap is collected very often under load. Memory that is never
	// touched costs nothing and makes the collector wait for 64 MiB of garbage.
	ballast := make([]byte, 64<<20)
	defer runtime.KeepAlive(ballast)
	clock := engine.SystemClock()
	st, err := openStore(cfg, clock, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	e := engine.New(st, clock, secureRandom(), log, engineOptions(cfg))
	began := time.Now()
	if err := e.Start(ctx); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	log.Debug("recovered", "took", time.Since(began).String())
	return listenAndServe(ctx, cfg, e, log)
}

func openStore(cfg Config, clock engine.Clock, log *slog.Logger) (*embedded.Store, error) {
	sync, err := embedded.ParseSync(string(cfg.Sync))
	if err != nil {
		return nil, err
	}
	return embedded.Open(embedded.Options{
		Dir: cfg.RootDir, Now: clock.Wall, Sync: sync, Interval: cfg.SyncInterval, Cache: cfg.CacheBytes,
		Logf: func(format string, args ...any) {
			log.Error("the store reports trouble", "error", fmt.Sprintf(format, args...))
		},
	})
}

func engineOptions(cfg Config) engine.Options {
	rules := rule.DefaultServer()
	rules.Retry, rules.Types, rules.Doors = cfg.Retry, cfg.Types, cfg.Doors
	rules.RetainDone, rules.RetainDead = cfg.RetainDone, cfg.RetainDead
	return engine.Options{
		Server: rules, Queues: cfg.Queues, Idempotency: cfg.IdempotencyWindow, Reattach: cfg.ReattachWindow,
		QueuesMax: cfg.MaxQueues, InFlightMax: cfg.GlobalInFlightLimit,
		Reserve: engine.Reserve{Bytes: cfg.DiskReserve.Bytes, Share: cfg.DiskReserve.Percent / 100},
		Fold:    jobs.Fold(cfg.BodyBytesMax),
	}
}

// secureRandom gives unguessable bits: lease tokens are made of them.
func secureRandom() func() uint64 {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // never fails (crypto/rand)
	src := rand.NewChaCha8(seed)
	var mu sync.Mutex
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return src.Uint64()
	}
}

func listenAndServe(ctx context.Context, cfg Config, e *engine.Engine, log *slog.Logger) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port)))
	if err != nil {
		return errors.Join(fmt.Errorf("listening: %w; is another server running? Choose another port with --port", err), stop(cfg, e))
	}
	handler := httpapi.New(httpapi.Options{
		Engine: e, Log: log, Version: Version,
		BodyMax: cfg.BodyBytesMax, InflightMax: cfg.InflightBytesMax,
		Heartbeat: cfg.HeartbeatInterval, AllowHosts: cfg.AllowHost,
		BackoffCount: cfg.BackoffCount, Retry: cfg.Retry, Null: cfg.Null,
	})
	if cfg.Pprof {
		handler = withProfiles(handler)
	}
	srv := httpapi.NewServer(handler)
	srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	Listening(log, listener.Addr().String(), "http")
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serving: %w", err), stop(cfg, e))
	case <-ctx.Done():
	}
	log.Info("stopping")
	err = stop(cfg, e) // ends the streams, so that Shutdown finds idle connections
	limit, cancel := context.WithTimeout(context.Background(), max(cfg.ShutdownTimeout, time.Second))
	defer cancel()
	if srv.Shutdown(limit) != nil {
		err = errors.Join(err, srv.Close())
	}
	log.Info("stopped")
	return err
}

func stop(cfg Config, e *engine.Engine) error {
	limit, cancel := context.WithTimeout(context.Background(), max(cfg.ShutdownTimeout, time.Second))
	defer cancel()
	return e.Stop(limit)
}

// withProfiles adds the profiles of the Go runtime under /debug/pprof/.
func withProfiles(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Path) >= 13 && r.URL.Path[:13] == "/debug/pprof/" {
			mux.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
