package grid

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// The engines of the grid: holders that log in, with slots on a host, and send one
// heartbeat for all they run. An engine is a row of the holders with job.GridEngine; its
// stream comes and goes.

// Times of engines where the options name none.
const (
	EngineHeartbeat = 5 * job.Second
	EngineLostAfter = 15 * job.Second
)

// lostKept is how long an engine that is lost stays in the list.
const lostKept = 10 * job.Minute

const enginePrefix = "e/"

// Login is what an engine says of itself.
type Login struct {
	Name       string
	Host       string // "" = its name
	Slots      int
	Properties map[string]string
	Running    []Running // what it runs yet, of an earlier login
}

// Running is a task that an engine runs.
type Running struct {
	ID    job.ID
	Token job.Token
}

// LoggedIn is the answer to a login.
type LoggedIn struct {
	Engine    EngineState
	Heartbeat job.Millis // so often it is to say that it lives
	LostAfter job.Millis // silent for so long it is lost
	Stop      []Running  // of what it runs: this is over, the rest goes on under its tokens
}

// EngineState is an engine as it is seen.
type EngineState struct {
	Name       string
	Properties map[string]string
	job.GridEngine
	State   string // idle, busy, stopping, draining, suspect, lost
	Running int    // tasks
}

// Engine states.
const (
	EngineBarred   = "barred" // taken for a black hole; see job.Health
	EngineIdle     = "idle"
	EngineBusy     = "busy"
	EngineStopping = "stopping" // gets nothing before it says that it stopped what took too long
	EngineDraining = "draining"
	EngineSuspect  = "suspect" // its connection is lost, and it may come back
	EngineLost     = "lost"
)

// Login takes an engine in under a new epoch. What it had before and does not
// run any more is lost with its earlier life; its stream of that is ended.
func (g *Grid) Login(ctx context.Context, l Login) (LoggedIn, error) {
	var out LoggedIn
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) (err error) {
		out, err = g.fleet.login(tx, l)
		return err
	})
	return engine.Answered(&out, err)
}

// fleet is the room of the engines.
type fleet struct {
	*Grid
	rows      map[string]*job.Holder // engines that changed, to be written
	regrouped bool                   // some came or went
}

func (g *fleet) begin() { g.rows, g.regrouped = nil, false }

// recover says of all engines that they are yet to be heard of.
func (g *fleet) recover(tx *engine.Tx) error {
	return store.EachRow(tx.Store(), "", func(row *job.Holder) error {
		if row.Engine == nil {
			return nil
		}
		h := ownRow(row)
		h.Engine.Awaited = true
		return tx.Store().Set(h)
	})
}

// silent is what happens to an engine that was silent for too long.
func (g *fleet) silent(tx *engine.Tx, row *job.Holder) (own bool, err error) {
	if row.Engine == nil {
		return false, nil
	}
	now, err := g.fleet.row(tx, row.Name)
	if err != nil || now == nil || now.Until > tx.Steady() { // it was heard of in this transaction, or left
		return true, err
	}
	return true, g.fleet.lapse(tx, now)
}

// voided keeps an engine without work that was told to stop a run.
func (g *fleet) voided(tx *engine.Tx, v *rule.Void) error {
	if v.How != job.ByTimeout {
		return nil
	}
	return g.fleet.toldToStop(tx, &v.Lease)
}

func (g *fleet) login(tx *engine.Tx, l Login) (LoggedIn, error) {
	switch {
	case l.Name == "":
		return LoggedIn{}, &job.Error{Kind: job.Invalid, Field: "name", Text: "an engine needs a name"}
	case l.Slots < 1 || l.Slots > job.SlotsMax:
		return LoggedIn{}, &job.Error{Kind: job.Invalid, Field: "slots", Text: fmt.Sprintf("slots must be from 1 to %d", job.SlotsMax)}
	}
	name := enginePrefix + l.Name
	old, err := g.fleet.row(tx, name)
	if err != nil {
		return LoggedIn{}, err
	}
	out := LoggedIn{Heartbeat: g.heartbeat(), LostAfter: g.lostAfter()}
	tx.EndStream(name)
	unbegun := job.ByLapse // one that has nothing is a new life, and a task may have ended the old one before it began
	if len(l.Running) > 0 {
		unbegun = job.ByUndelivered
	}
	if out.Stop, err = g.fleet.compare(tx, name, l.Running, old, tx.Now(), unbegun); err != nil {
		return LoggedIn{}, err
	}
	if err := g.fleet.back(tx, old); err != nil {
		return LoggedIn{}, err
	}
	row := &job.Holder{
		Name: name, Kind: job.Named, Properties: l.Properties, Until: tx.Steady().Add(out.LostAfter),
		Engine: &job.GridEngine{Host: cmp.Or(l.Host, l.Name), Slots: l.Slots, Epoch: tx.NextSeq(), LoggedIn: tx.Now(), Heard: tx.Now()},
	}
	if old != nil { // it went without a logoff: a black hole that crashes and comes back is one yet
		row.Engine.Health = old.Engine.Health
	}
	tx.Store().Durable()
	g.stirred = true // its properties may be others
	if err := g.fleet.set(tx, old, row); err != nil {
		return LoggedIn{}, err
	}
	out.Engine, err = g.fleet.state(tx, row)
	return out, err
}

// Drain gives an engine nothing more; what it runs it may end. epoch 0 is any.
func (g *Grid) Drain(ctx context.Context, name string, epoch int64, by job.Actor) (EngineState, error) {
	return g.changeEngine(ctx, name, epoch, func(tx *engine.Tx, old, row *job.Holder) error {
		if old.Engine.Draining {
			return nil
		}
		row.Engine.Draining = true
		return tx.Audit(by, "drain engine", name, 0)
	})
}

// Logoff takes an engine out: what it runs is given back without blame, and it
// is told to stop. epoch 0 is any.
func (g *Grid) Logoff(ctx context.Context, name string, epoch int64, by job.Actor) error {
	return g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		row, err := g.fleet.live(tx, name, epoch)
		if err != nil {
			return err
		}
		ids, err := tx.Store().IDs(store.Held(row.Name), store.All)
		if err != nil {
			return err
		}
		if err := tx.EndLeases(row.Name, ids, job.ByEvict); err != nil {
			return err
		}
		tx.Store().Durable() // its stream stays until it has heard what to stop; it gets nothing more
		if err := g.fleet.set(tx, row, nil); err != nil || epoch != 0 {
			return err
		}
		return tx.Audit(by, "log off engine", name, int64(len(ids)))
	})
}

// changeEngine changes an engine that is logged in, and hears of it.
func (g *Grid) changeEngine(ctx context.Context, name string, epoch int64, change func(tx *engine.Tx, old, row *job.Holder) error) (EngineState, error) {
	var out EngineState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) (err error) {
		out, err = g.fleet.change(tx, name, epoch, change)
		return err
	})
	return engine.Answered(&out, err)
}

func (g *fleet) change(tx *engine.Tx, name string, epoch int64, change func(tx *engine.Tx, old, row *job.Holder) error) (EngineState, error) {
	old, err := g.fleet.live(tx, name, epoch)
	if err != nil {
		return EngineState{}, err
	}
	row := ownRow(old)
	if epoch != 0 { // it speaks itself
		if err := g.fleet.back(tx, old); err != nil {
			return EngineState{}, err
		}
		row.Engine.Heard, row.Engine.Awaited, row.Until = tx.Now(), false, tx.Steady().Add(g.lostAfter())
	}
	if err := change(tx, old, row); err != nil {
		return EngineState{}, err
	}
	if err := g.fleet.set(tx, old, row); err != nil {
		return EngineState{}, err
	}
	return g.fleet.state(tx, row)
}

// live returns an engine that is logged in under an epoch, 0 = any.
func (g *fleet) live(tx *engine.Tx, name string, epoch int64) (*job.Holder, error) {
	row, err := g.fleet.row(tx, enginePrefix+name)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, &job.Error{Kind: job.NotFound, Field: "engine", Text: fmt.Sprintf("engine %q is not logged in; log in first", name)}
	case row.Engine.Lost:
		return nil, job.Errorf(job.Superseded, "engine %q was not heard of for too long and is lost; log in again", name)
	case epoch != 0 && epoch != row.Engine.Epoch:
		return nil, job.Errorf(job.Superseded, "engine %q logged in again since then; this login is over", name)
	}
	return row, nil
}

// row returns the row of an engine, nil if there is none.
func (g *fleet) row(tx *engine.Tx, holder string) (*job.Holder, error) {
	if h := g.fleet.rows[holder]; h != nil {
		return h, nil
	}
	h, err := store.Row[*job.Holder](tx.Store(), holder)
	if h == nil || h.Engine == nil {
		return nil, err
	}
	return h, err
}

// ownRow is a copy of the row of an engine, to be changed.
func ownRow(h *job.Holder) *job.Holder {
	row := *h
	row.Engine = new(*h.Engine)
	return &row
}

// set writes the row of an engine; nil = it is gone, or was not there. One
// that changes is written once in a transaction, by keep: 1,000 of its runs
// may end together, each of which it is told to stop.
func (g *fleet) set(tx *engine.Tx, old, row *job.Holder) error {
	g.shares.changeFleet(tx, old, row)
	g.fleet.regrouped = g.fleet.regrouped || fit(row) != fit(old) || fit(row) && !maps.Equal(row.Properties, old.Properties)
	switch {
	case row == nil:
		delete(g.fleet.rows, old.Name)
		return tx.Store().Unset(job.Holders, old.Name)
	case old == nil:
		return tx.Store().Set(row)
	case g.fleet.rows == nil:
		g.fleet.rows = map[string]*job.Holder{}
	}
	g.fleet.rows[row.Name] = row
	return nil
}

// keep writes the engines that changed.
func (g *fleet) keep(tx *engine.Tx) error {
	for _, name := range sortedKeys(g.fleet.rows) {
		if err := tx.Store().Set(g.fleet.rows[name]); err != nil {
			return err
		}
	}
	clear(g.fleet.rows)
	return nil
}

// asItIs is an engine out of a listing of rows, as this transaction knows it.
func (g *fleet) asItIs(row *job.Holder) *job.Holder {
	if h := g.fleet.rows[row.Name]; h != nil {
		return h
	}
	return row
}

// slotsOf is how many slots an engine has for tasks.
func slotsOf(h *job.Holder) int {
	if h == nil || h.Engine == nil || h.Engine.Lost || h.Engine.Draining || len(h.Engine.Stopping) > 0 {
		return 0
	}
	return h.Engine.Slots
}

// fit reports whether an engine may be given tasks, now or when it has a slot free.
func fit(h *job.Holder) bool { return slotsOf(h) > 0 && plan.HealthAdmits(h.Engine.Health, 0) > 0 }

// Engines lists up to n engines by name, those behind after.
func (g *Grid) Engines(ctx context.Context, after string, n int) ([]EngineState, error) {
	var out []EngineState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		rows, err := store.Rows[*job.Holder](tx.Store(), enginePrefix+after, n)
		out = make([]EngineState, 0, len(rows))
		for _, row := range rows {
			if h := g.fleet.asItIs(row); err == nil && h.Engine != nil {
				var state EngineState
				state, err = g.fleet.state(tx, h)
				out = append(out, state)
			}
		}
		return err
	})
	return engine.Answered(&out, err)
}

// Engine returns one engine, or NotFound.
func (g *Grid) Engine(ctx context.Context, name string) (EngineState, error) {
	var out EngineState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		row, err := g.fleet.row(tx, enginePrefix+name)
		if err == nil && row == nil {
			err = &job.Error{Kind: job.NotFound, Field: "engine", Text: fmt.Sprintf("engine %q is not known", name)}
		}
		if err != nil {
			return err
		}
		out, err = g.fleet.state(tx, row)
		return err
	})
	return engine.Answered(&out, err)
}

func (g *fleet) state(tx *engine.Tx, h *job.Holder) (EngineState, error) {
	ids, err := tx.Store().IDs(store.Held(h.Name), store.All)
	m := EngineState{Name: h.Name[len(enginePrefix):], Properties: h.Properties, GridEngine: *h.Engine, Running: len(ids)}
	switch {
	case m.Lost:
		m.State = EngineLost
	case tx.Holder(h.Name) == nil && !h.Engine.Polls:
		m.State = EngineSuspect
	case m.Draining:
		m.State = EngineDraining
	case plan.HealthAdmits(m.Health, m.Running) == 0:
		m.State = EngineBarred
	case len(m.Stopping) > 0:
		m.State = EngineStopping
	case m.Running > 0:
		m.State = EngineBusy
	default:
		m.State = EngineIdle
	}
	return m, err
}

// EngineStream is the stream of tasks of an engine. It first gets what it still
// holds; a second stream ends the first. prefetch bounds the tasks it has at once;
// 0 = its slots. sessions are those it serves; none = all.
func (g *Grid) EngineStream(ctx context.Context, name string, epoch int64, prefetch int, sessions []string) (*engine.Stream, error) {
	h := engine.NewHolder(job.Named, enginePrefix+name, engine.StreamOptions{Name: name, Queues: sessions, Prefetch: prefetch})
	return g.engine.OpenStream(ctx, h, func(tx *engine.Tx) error { return g.fleet.join(tx, h, name, epoch) })
}

func (g *fleet) join(tx *engine.Tx, h *engine.Holder, name string, epoch int64) error {
	row, err := g.fleet.live(tx, name, epoch)
	if err != nil {
		return err
	}
	if err := g.fleet.back(tx, row); err != nil {
		return err
	}
	g.asEngine(h, row)
	h.Opts.Prefetch = cmp.Or(h.Opts.Prefetch, row.Engine.Slots)
	tx.EndStream(h.Name)
	if err := tx.HandBack(h); err != nil {
		return err
	}
	tx.Join(h)
	g.stirred = true
	return nil
}

// lostBy is how the runs of an engine end that is gone; nil = it was forgotten.
func lostBy(old *job.Holder) job.Ending {
	if old == nil || old.Engine.Awaited { // it may be that it could not reach us
		return job.ByRestart
	}
	return job.ByLapse
}

// lapse is what the clock does to an engine that is silent: it is lost,
// and later forgotten.
func (g *fleet) lapse(tx *engine.Tx, old *job.Holder) error {
	if old.Engine.Lost {
		return g.fleet.set(tx, old, nil)
	}
	ids, err := tx.Store().IDs(store.Held(old.Name), store.All)
	if err != nil {
		return err
	}
	how := lostBy(old)
	if err := tx.EndLeases(old.Name, ids, how); err != nil {
		return err
	}
	tx.EndStream(old.Name)
	now, err := g.fleet.row(tx, old.Name) // it may have been told to stop something
	if err != nil {
		return err
	}
	row := ownRow(now)
	row.Engine.Lost, row.Engine.Stopping = true, nil
	if how == job.ByLapse {
		g.counts.staged().Detection.Observe(&histogram.Spans, max(0, int64(tx.Steady()-old.Until+g.lostAfter())))
	}
	row.Until = tx.Steady().Add(lostKept)
	return g.fleet.set(tx, now, row)
}

// toldToStop keeps an engine without work until it says that it stopped a run
// that took too long.
func (g *fleet) toldToStop(tx *engine.Tx, l *job.Lease) error {
	if !strings.HasPrefix(l.Holder, enginePrefix) {
		return nil
	}
	old, err := g.fleet.row(tx, l.Holder)
	if err != nil || old == nil || old.Engine.Lost {
		return err
	}
	row := ownRow(old)
	row.Engine.Stopping = append(slices.Clone(row.Engine.Stopping), l.Token.Hash())
	return g.fleet.set(tx, old, row)
}

// EngineLease takes up to most tasks for an engine that asks call by call, as
// Lease does; it has no more than its slots. Its heartbeat keeps them.
func (g *Grid) EngineLease(ctx context.Context, name string, epoch int64, most int, sessions []string) ([]engine.Delivery, error) {
	h := engine.NewHolder(job.Named, enginePrefix+name, engine.StreamOptions{Name: name, Queues: sessions})
	h.Want = max(most, 1)
	return g.engine.Take(ctx, h, func(tx *engine.Tx) error {
		old, err := g.fleet.live(tx, name, epoch)
		if err != nil {
			return err
		}
		g.asEngine(h, old)
		if old.Engine.Polls {
			return nil
		}
		row, m := *old, *old.Engine
		m.Polls, row.Engine, g.stirred = true, &m, true
		return g.fleet.set(tx, old, &row)
	})
}

// engineFeeder is the engine.Feeder of an engine of the grid.
type engineFeeder struct {
	*Grid
	host  string
	slots int
	asks  string // equal ones may run the same tasks, but for what runs beside them
}

// feederOf is nil for a holder that is none.
func feederOf(h *engine.Holder) *engineFeeder {
	m, _ := h.Feeder.(*engineFeeder)
	return m
}

func (g *Grid) asEngine(h *engine.Holder, row *job.Holder) {
	m := &engineFeeder{Grid: g, host: row.Engine.Host, slots: row.Engine.Slots, asks: fmt.Sprintf("%q", row.Properties)}
	h.Feeder, h.Opts.Properties = m, row.Properties
	h.Key = fmt.Sprintf("engine %q %q %s", m.host, h.Opts.Queues, m.asks)
}

// Room implements engine.Feeder.
func (m *engineFeeder) Room(tx *engine.Tx, h *engine.Holder) int { return m.fleet.room(tx, h) }

// Feed implements engine.Feeder.
func (m *engineFeeder) Feed(tx *engine.Tx, h *engine.Holder, n int) (took int, dry bool, err error) {
	return m.feed.give(tx, h, n)
}

// Lease implements engine.Feeder.
func (m *engineFeeder) Lease(tx *engine.Tx, h *engine.Holder, q *job.Queue, j *job.Job, l *job.Lease) (begins job.Millis, err error) {
	if q.Grid != nil {
		l.Host, l.AnyHost = m.host, q.Grid.AnyHost
	}
	return m.fleet.begins(tx, h, q, j)
}

// Left implements engine.Feeder: the row of the engine stays, and its heartbeat decides.
func (m *engineFeeder) Left(_ *engine.Tx, _ *engine.Holder, how job.Ending) error {
	m.stirred = m.stirred || how != job.ByRestart // we do not stop
	return nil
}

// room is how many more tasks an engine takes now.
func (g *fleet) room(tx *engine.Tx, h *engine.Holder) int {
	row, err := g.fleet.row(tx, h.Name)
	if err != nil || slotsOf(row) == 0 {
		return 0
	}
	has := tx.Has(h)
	if h.Want == 0 {
		return min(h.Opts.Prefetch-has, plan.HealthAdmits(row.Engine.Health, has))
	}
	ids, err := tx.Store().IDs(store.Held(h.Name), store.All)
	if err != nil {
		return 0
	}
	return min(row.Engine.Slots-len(ids), h.Want-has, plan.HealthAdmits(row.Engine.Health, len(ids)))
}
