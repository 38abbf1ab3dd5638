// Package part puts an engine and all parts of the product together. Each part lives in
// a package of its own below this one, and knows no other.
package part

import (
	"log/slog"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/part/audit"
	"github.com/reprisehq/reprise/internal/part/budget"
	"github.com/reprisehq/reprise/internal/part/chunk"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/fold"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/part/guard"
	"github.com/reprisehq/reprise/internal/part/lock"
	"github.com/reprisehq/reprise/internal/part/meter"
	"github.com/reprisehq/reprise/internal/part/token"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/part/worker"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/store"
)

// Engine is an engine with its parts.
type Engine struct {
	*engine.Engine
	query.Reads

	Audit   *audit.Log
	Budgets *budget.Budgets
	Chunks  *chunk.Chunks
	Crons   *cron.Crons
	Dead    *deadset.Set
	Desk    *desk.Desk
	Folds   *fold.Folds
	Grid    *grid.Grid
	Guard   *guard.Guard
	Locks   *lock.Locks
	Meter   *meter.Meter
	Tokens  *token.Tokens
	Turns   *turn.Turns
	Workers *worker.Workers
}

// New makes an engine with all parts; see engine.New. What a part can be set is set
// before the engine starts. opts.Parts are further ones, which are asked last.
func New(s store.Store, clock engine.Clock, rnd func() uint64, log *slog.Logger, opts engine.Options) *Engine {
	e := All()
	opts.Parts = append(e.Parts(), opts.Parts...)
	e.Engine = engine.New(s, clock, rnd, log, opts)
	e.Reads = query.Of(e.Engine)
	return e
}

// All are all parts, of an engine that is yet to be made.
func All() *Engine {
	return &Engine{
		Audit:   &audit.Log{},
		Budgets: &budget.Budgets{},
		Chunks:  &chunk.Chunks{},
		Crons:   &cron.Crons{},
		Dead:    &deadset.Set{},
		Desk:    &desk.Desk{},
		Folds:   &fold.Folds{},
		Grid:    &grid.Grid{},
		Guard:   &guard.Guard{},
		Locks:   &lock.Locks{},
		Meter:   &meter.Meter{},
		Tokens:  &token.Tokens{},
		Turns:   &turn.Turns{},
		Workers: &worker.Workers{},
	}
}

// Parts lists them in the order in which they are asked.
func (e *Engine) Parts() []engine.Part {
	return []engine.Part{e.Meter, e.Audit, e.Desk, e.Grid, e.Guard, e.Budgets, e.Folds, e.Chunks, e.Dead, e.Locks, e.Crons, e.Turns, e.Tokens, e.Workers}
}
