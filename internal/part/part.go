// Package part puts an engine and all parts of the product together. Each part lives in
// a package of its own below this one, and knows no other.
package part

import (
	"log/slog"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/part/lock"
	"github.com/reprisehq/reprise/internal/store"
)

// Engine is an engine with its parts.
type Engine struct {
	*engine.Engine

	Crons *cron.Crons
	Locks *lock.Locks
}

// New makes an engine with all parts; see engine.New. What a part can be set is set
// before the engine starts. opts.Parts are further ones, which are asked last.
func New(s store.Store, clock engine.Clock, rnd func() uint64, log *slog.Logger, opts engine.Options) *Engine {
	e := &Engine{Crons: &cron.Crons{}, Locks: &lock.Locks{}}
	opts.Parts = append([]engine.Part{e.Locks, e.Crons}, opts.Parts...)
	e.Engine = engine.New(s, clock, rnd, log, opts)
	return e
}
