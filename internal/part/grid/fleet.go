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

// The engines of the grid, called machines here: holders that log in, with
// slots on a host, and send one heartbeat for all they run. A machine is a row
// of the holders with job.Machine; its stream comes and goes.

// Times of machines where the options name none.
const (
	MachineHeartbeat = 5 * job.Second
	MachineLostAfter = 15 * job.Second
)

// machineKept is how long a machine that is lost stays in the list.
const machineKept = 10 * job.Minute

const machinePrefix = "e/"

// Login is what a machine says of itself.
type Login struct {
	Name       string
	Host       string // "" = its name
	Slots      int
	Properties map[string]string
	Running    []Running // what it runs yet, of an earlier login
}

// Running is a task that a machine runs.
type Running struct {
	ID    job.ID
	Token job.Token
}

// LoggedIn is the answer to a login.
type LoggedIn struct {
	Machine   MachineState
	Heartbeat job.Millis // so often it is to say that it lives
	LostAfter job.Millis // silent for so long it is lost
	Stop      []Running  // of what it runs: this is over, the rest goes on under its tokens
}

// MachineState is a machine as it is seen.
type MachineState struct {
	Name       string
	Properties map[string]string
	job.Machine
	State   string // idle, busy, stopping, draining, suspect, lost
	Running int    // tasks
}

// Machine states.
const (
	MachineBarred   = "barred" // taken for a black hole; see job.Health
	MachineIdle     = "idle"
	MachineBusy     = "busy"
	MachineStopping = "stopping" // gets nothing before it says that it stopped what took too long
	MachineDraining = "draining"
	MachineSuspect  = "suspect" // its connection is lost, and it may come back
	MachineLost     = "lost"
)

// Login takes a machine in under a new epoch. What it had before and does not
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
		if row.Machine == nil {
			return nil
		}
		h, m := *row, *row.Machine
		m.Awaited, h.Machine = true, &m
		return tx.Store().Set(&h)
	})
}

// silent is what happens to an engine that was silent for too long.
func (g *fleet) silent(tx *engine.Tx, row *job.Holder) (own bool, err error) {
	if row.Machine == nil {
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
	name := machinePrefix + l.Name
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
		Machine: &job.Machine{Host: cmp.Or(l.Host, l.Name), Slots: l.Slots, Epoch: tx.NextSeq(), LoggedIn: tx.Now(), Heard: tx.Now()},
	}
	if old != nil { // it went without a logoff: a black hole that crashes and comes back is one yet
		row.Machine.Health = old.Machine.Health
	}
	tx.Store().Durable()
	g.stirred = true // its properties may be others
	if err := g.fleet.set(tx, old, row); err != nil {
		return LoggedIn{}, err
	}
	out.Machine, err = g.fleet.state(tx, row)
	return out, err
}

// Drain gives a machine nothing more; what it runs it may end. epoch 0 is any.
func (g *Grid) Drain(ctx context.Context, name string, epoch int64, by job.Actor) (MachineState, error) {
	return g.machine(ctx, name, epoch, func(tx *engine.Tx, old, row *job.Holder) error {
		if old.Machine.Draining {
			return nil
		}
		row.Machine.Draining = true
		return tx.Audit(by, "drain engine", name, 0)
	})
}

// Logoff takes a machine out: what it runs is given back without blame, and it
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

// machine changes a machine that is logged in, and hears of it.
func (g *Grid) machine(ctx context.Context, name string, epoch int64, change func(tx *engine.Tx, old, row *job.Holder) error) (MachineState, error) {
	var out MachineState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) (err error) {
		out, err = g.fleet.change(tx, name, epoch, change)
		return err
	})
	return engine.Answered(&out, err)
}

func (g *fleet) change(tx *engine.Tx, name string, epoch int64, change func(tx *engine.Tx, old, row *job.Holder) error) (MachineState, error) {
	old, err := g.fleet.live(tx, name, epoch)
	if err != nil {
		return MachineState{}, err
	}
	row, m := *old, *old.Machine
	row.Machine = &m
	if epoch != 0 { // it speaks itself
		if err := g.fleet.back(tx, old); err != nil {
			return MachineState{}, err
		}
		m.Heard, m.Awaited, row.Until = tx.Now(), false, tx.Steady().Add(g.lostAfter())
	}
	if err := change(tx, old, &row); err != nil {
		return MachineState{}, err
	}
	if err := g.fleet.set(tx, old, &row); err != nil {
		return MachineState{}, err
	}
	return g.fleet.state(tx, &row)
}

// live returns a machine that is logged in under an epoch, 0 = any.
func (g *fleet) live(tx *engine.Tx, name string, epoch int64) (*job.Holder, error) {
	row, err := g.fleet.row(tx, machinePrefix+name)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, &job.Error{Kind: job.NotFound, Field: "engine", Text: fmt.Sprintf("engine %q is not logged in; log in first", name)}
	case row.Machine.Lost:
		return nil, job.Errorf(job.Superseded, "engine %q was not heard of for too long and is lost; log in again", name)
	case epoch != 0 && epoch != row.Machine.Epoch:
		return nil, job.Errorf(job.Superseded, "engine %q logged in again since then; this login is over", name)
	}
	return row, nil
}

// row returns the row of a machine, nil if there is none.
func (g *fleet) row(tx *engine.Tx, holder string) (*job.Holder, error) {
	if h := g.fleet.rows[holder]; h != nil {
		return h, nil
	}
	h, err := store.Row[*job.Holder](tx.Store(), holder)
	if h == nil || h.Machine == nil {
		return nil, err
	}
	return h, err
}

// set writes the row of a machine; nil = it is gone, or was not there. One
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

// keep writes the machines that changed.
func (g *fleet) keep(tx *engine.Tx) error {
	for _, name := range sortedKeys(g.fleet.rows) {
		if err := tx.Store().Set(g.fleet.rows[name]); err != nil {
			return err
		}
	}
	clear(g.fleet.rows)
	return nil
}

// asItIs is a machine out of a listing of rows, as this transaction knows it.
func (g *fleet) asItIs(row *job.Holder) *job.Holder {
	if h := g.fleet.rows[row.Name]; h != nil {
		return h
	}
	return row
}

// slotsOf is how many slots a machine has for tasks.
func slotsOf(h *job.Holder) int {
	if h == nil || h.Machine == nil || h.Machine.Lost || h.Machine.Draining || len(h.Machine.Stopping) > 0 {
		return 0
	}
	return h.Machine.Slots
}

// fit reports whether a machine may be given tasks, be it busy now.
func fit(h *job.Holder) bool { return slotsOf(h) > 0 && plan.HealthAdmits(h.Machine.Health, 0) > 0 }

// Machines lists up to n machines by name, those behind after.
func (g *Grid) Machines(ctx context.Context, after string, n int) ([]MachineState, error) {
	var out []MachineState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		rows, err := store.Rows[*job.Holder](tx.Store(), machinePrefix+after, n)
		out = make([]MachineState, 0, len(rows))
		for _, row := range rows {
			if h := g.fleet.asItIs(row); err == nil && h.Machine != nil {
				var state MachineState
				state, err = g.fleet.state(tx, h)
				out = append(out, state)
			}
		}
		return err
	})
	return engine.Answered(&out, err)
}

// Machine returns one machine, or NotFound.
func (g *Grid) Machine(ctx context.Context, name string) (MachineState, error) {
	var out MachineState
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		row, err := g.fleet.row(tx, machinePrefix+name)
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

func (g *fleet) state(tx *engine.Tx, h *job.Holder) (MachineState, error) {
	ids, err := tx.Store().IDs(store.Held(h.Name), store.All)
	m := MachineState{Name: h.Name[len(machinePrefix):], Properties: h.Properties, Machine: *h.Machine, Running: len(ids)}
	switch {
	case m.Lost:
		m.State = MachineLost
	case tx.Holder(h.Name) == nil && !h.Machine.Polls:
		m.State = MachineSuspect
	case m.Draining:
		m.State = MachineDraining
	case plan.HealthAdmits(m.Health, m.Running) == 0:
		m.State = MachineBarred
	case len(m.Stopping) > 0:
		m.State = MachineStopping
	case m.Running > 0:
		m.State = MachineBusy
	default:
		m.State = MachineIdle
	}
	return m, err
}

// MachineStream is the stream of tasks of a machine. It first gets what it still
// holds; a second stream ends the first. prefetch bounds the tasks it has at once;
// 0 = its slots. sessions are those it serves; none = all.
func (g *Grid) MachineStream(ctx context.Context, name string, epoch int64, prefetch int, sessions []string) (*engine.Stream, error) {
	h := engine.NewHolder(job.Named, machinePrefix+name, engine.StreamOptions{Name: name, Queues: sessions, Prefetch: prefetch})
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
	g.asMachine(h, row)
	h.Opts.Prefetch = cmp.Or(h.Opts.Prefetch, row.Machine.Slots)
	tx.EndStream(h.Name)
	if err := tx.HandBack(h); err != nil {
		return err
	}
	tx.Join(h)
	g.stirred = true
	return nil
}

// lostBy is how the runs of a machine end that is gone; nil = it was forgotten.
func lostBy(old *job.Holder) job.Ending {
	if old == nil || old.Machine.Awaited { // it may be that it could not reach us
		return job.ByRestart
	}
	return job.ByLapse
}

// lapse is what the clock does to a machine that is silent: it is lost,
// and later forgotten.
func (g *fleet) lapse(tx *engine.Tx, old *job.Holder) error {
	if old.Machine.Lost {
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
	row, m := *now, *now.Machine
	m.Lost, m.Stopping = true, nil
	if how == job.ByLapse {
		g.counts.staged().Detection.Observe(&histogram.Spans, max(0, int64(tx.Steady()-old.Until+g.lostAfter())))
	}
	row.Machine, row.Until = &m, tx.Steady().Add(machineKept)
	return g.fleet.set(tx, now, &row)
}

// toldToStop keeps a machine without work until it says that it stopped a run
// that took too long.
func (g *fleet) toldToStop(tx *engine.Tx, l *job.Lease) error {
	if !strings.HasPrefix(l.Holder, machinePrefix) {
		return nil
	}
	old, err := g.fleet.row(tx, l.Holder)
	if err != nil || old == nil || old.Machine.Lost {
		return err
	}
	row, m := *old, *old.Machine
	m.Stopping = append(slices.Clone(m.Stopping), l.Token.Hash())
	row.Machine = &m
	return g.fleet.set(tx, old, &row)
}

// MachineLease takes up to most tasks for a machine that asks call by call, as
// Lease does; it has no more than its slots. Its heartbeat keeps them.
func (g *Grid) MachineLease(ctx context.Context, name string, epoch int64, most int, sessions []string) ([]engine.Delivery, error) {
	h := engine.NewHolder(job.Named, machinePrefix+name, engine.StreamOptions{Name: name, Queues: sessions})
	h.Want = max(most, 1)
	return g.engine.Take(ctx, h, func(tx *engine.Tx) error {
		old, err := g.fleet.live(tx, name, epoch)
		if err != nil {
			return err
		}
		g.asMachine(h, old)
		if old.Machine.Polls {
			return nil
		}
		row, m := *old, *old.Machine
		m.Polls, row.Machine, g.stirred = true, &m, true
		return g.fleet.set(tx, old, &row)
	})
}

// machine is the engine.Feeder of an engine of the grid.
type machine struct {
	*Grid
	host  string
	slots int
	asks  string // equal ones may run the same tasks, but for what runs beside them
}

// machineOf is nil for a holder that is none.
func machineOf(h *engine.Holder) *machine {
	m, _ := h.Feeder.(*machine)
	return m
}

func (g *Grid) asMachine(h *engine.Holder, row *job.Holder) {
	m := &machine{Grid: g, host: row.Machine.Host, slots: row.Machine.Slots, asks: fmt.Sprintf("%q", row.Properties)}
	h.Feeder, h.Opts.Properties = m, row.Properties
	h.Key = fmt.Sprintf("engine %q %q %s", m.host, h.Opts.Queues, m.asks)
}

// Room implements engine.Feeder.
func (m *machine) Room(tx *engine.Tx, h *engine.Holder) int { return m.fleet.room(tx, h) }

// Feed implements engine.Feeder.
func (m *machine) Feed(tx *engine.Tx, h *engine.Holder, n int) (took int, dry bool, err error) {
	return m.feed.give(tx, h, n)
}

// Lease implements engine.Feeder.
func (m *machine) Lease(tx *engine.Tx, h *engine.Holder, q *job.Queue, j *job.Job, l *job.Lease) (begins job.Millis, err error) {
	if q.Grid != nil {
		l.Host, l.AnyHost = m.host, q.Grid.AnyHost
	}
	return m.fleet.begins(tx, h, q, j)
}

// Left implements engine.Feeder: the row of the engine stays, and its heartbeat decides.
func (m *machine) Left(_ *engine.Tx, _ *engine.Holder, how job.Ending) error {
	m.stirred = m.stirred || how != job.ByRestart // we do not stop
	return nil
}

// room is how many more tasks a machine takes now.
func (g *fleet) room(tx *engine.Tx, h *engine.Holder) int {
	row, err := g.fleet.row(tx, h.Name)
	if err != nil || slotsOf(row) == 0 {
		return 0
	}
	has := tx.Has(h)
	if h.Want == 0 {
		return min(h.Opts.Prefetch-has, plan.HealthAdmits(row.Machine.Health, has))
	}
	ids, err := tx.Store().IDs(store.Held(h.Name), store.All)
	if err != nil {
		return 0
	}
	return min(row.Machine.Slots-len(ids), h.Want-has, plan.HealthAdmits(row.Machine.Health, len(ids)))
}
