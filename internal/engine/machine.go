package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
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
func (e *Engine) Login(ctx context.Context, l Login) (LoggedIn, error) {
	var out LoggedIn
	err := e.Do(ctx, 0, func(r *Tx) (err error) {
		out, err = r.login(l)
		return err
	})
	return Answered(&out, err)
}

func (r *Tx) login(l Login) (LoggedIn, error) {
	switch {
	case l.Name == "":
		return LoggedIn{}, &job.Error{Kind: job.Invalid, Field: "name", Text: "an engine needs a name"}
	case l.Slots < 1 || l.Slots > job.SlotsMax:
		return LoggedIn{}, &job.Error{Kind: job.Invalid, Field: "slots", Text: fmt.Sprintf("slots must be from 1 to %d", job.SlotsMax)}
	}
	name := machinePrefix + l.Name
	old, err := r.machineRow(name)
	if err != nil {
		return LoggedIn{}, err
	}
	out := LoggedIn{Heartbeat: r.e.opts.heartbeat(), LostAfter: r.e.opts.lostAfter()}
	if h := r.holder(name); h != nil {
		r.left[h] = true
		r.ended = append(r.ended, h)
	}
	unbegun := job.ByLapse // one that has nothing is a new life, and a task may have ended the old one before it began
	if len(l.Running) > 0 {
		unbegun = job.ByUndelivered
	}
	if out.Stop, err = r.compare(name, l.Running, old, r.now, unbegun); err != nil {
		return LoggedIn{}, err
	}
	if err := r.machineBack(old); err != nil {
		return LoggedIn{}, err
	}
	row := &job.Holder{
		Name: name, Kind: job.Named, Properties: l.Properties, Until: r.steady.Add(out.LostAfter),
		Machine: &job.Machine{Host: cmp.Or(l.Host, l.Name), Slots: l.Slots, Epoch: r.NextSeq(), LoggedIn: r.now, Heard: r.now},
	}
	if old != nil { // it went without a logoff: a black hole that crashes and comes back is one yet
		row.Machine.Health = old.Machine.Health
	}
	r.tx.Durable()
	r.stirred = true // its properties may be others
	if err := r.setMachine(old, row); err != nil {
		return LoggedIn{}, err
	}
	out.Machine, err = r.machineState(row)
	return out, err
}

// Drain gives a machine nothing more; what it runs it may end. epoch 0 is any.
func (e *Engine) Drain(ctx context.Context, name string, epoch int64, by job.Actor) (MachineState, error) {
	return e.machine(ctx, name, epoch, func(r *Tx, old, row *job.Holder) error {
		if old.Machine.Draining {
			return nil
		}
		row.Machine.Draining = true
		return r.Audit(by, "drain engine", name, 0)
	})
}

// Logoff takes a machine out: what it runs is given back without blame, and it
// is told to stop. epoch 0 is any.
func (e *Engine) Logoff(ctx context.Context, name string, epoch int64, by job.Actor) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		row, err := r.liveMachine(name, epoch)
		if err != nil {
			return err
		}
		ids, err := r.tx.Held(row.Name)
		if err != nil {
			return err
		}
		if err := r.endLeases(row.Name, ids, job.ByEvict); err != nil {
			return err
		}
		r.tx.Durable() // its stream stays until it has heard what to stop; it gets nothing more
		if err := r.setMachine(row, nil); err != nil || epoch != 0 {
			return err
		}
		return r.Audit(by, "log off engine", name, int64(len(ids)))
	})
}

// machine changes a machine that is logged in, and hears of it.
func (e *Engine) machine(ctx context.Context, name string, epoch int64, change func(r *Tx, old, row *job.Holder) error) (MachineState, error) {
	var out MachineState
	err := e.Do(ctx, 0, func(r *Tx) (err error) {
		out, err = r.changeMachine(name, epoch, change)
		return err
	})
	return Answered(&out, err)
}

func (r *Tx) changeMachine(name string, epoch int64, change func(r *Tx, old, row *job.Holder) error) (MachineState, error) {
	old, err := r.liveMachine(name, epoch)
	if err != nil {
		return MachineState{}, err
	}
	row, m := *old, *old.Machine
	row.Machine = &m
	if epoch != 0 { // it speaks itself
		if err := r.machineBack(old); err != nil {
			return MachineState{}, err
		}
		m.Heard, m.Awaited, row.Until = r.now, false, r.steady.Add(r.e.opts.lostAfter())
	}
	if err := change(r, old, &row); err != nil {
		return MachineState{}, err
	}
	if err := r.setMachine(old, &row); err != nil {
		return MachineState{}, err
	}
	return r.machineState(&row)
}

// liveMachine returns a machine that is logged in under an epoch, 0 = any.
func (r *Tx) liveMachine(name string, epoch int64) (*job.Holder, error) {
	row, err := r.machineRow(machinePrefix + name)
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

// machineRow returns the row of a machine, nil if there is none.
func (r *Tx) machineRow(holder string) (*job.Holder, error) {
	if h := r.machineRows[holder]; h != nil {
		return h, nil
	}
	row, err := r.tx.Row(job.Holders, holder)
	h, _ := row.(*job.Holder)
	if h == nil || h.Machine == nil {
		return nil, err
	}
	return h, err
}

// setMachine writes the row of a machine; nil = it is gone, or was not there. One
// that changes is written once in a transaction, by keepMachines: 1,000 of its runs
// may end together, each of which it is told to stop.
func (r *Tx) setMachine(old, row *job.Holder) error {
	r.changeFleet(old, row)
	r.regrouped = r.regrouped || fit(row) != fit(old) || fit(row) && !maps.Equal(row.Properties, old.Properties)
	switch {
	case row == nil:
		delete(r.machineRows, old.Name)
		return r.tx.Unset(job.Holders, old.Name)
	case old == nil:
		return r.tx.Set(row)
	case r.machineRows == nil:
		r.machineRows = map[string]*job.Holder{}
	}
	r.machineRows[row.Name] = row
	return nil
}

// keepMachines writes the machines that changed.
func (r *Tx) keepMachines() error {
	for _, name := range sortedKeys(r.machineRows) {
		if err := r.tx.Set(r.machineRows[name]); err != nil {
			return err
		}
	}
	clear(r.machineRows)
	return nil
}

// asItIs is a machine out of a listing of rows, as this transaction knows it.
func (r *Tx) asItIs(row job.Row) *job.Holder {
	if h := r.machineRows[row.Key()]; h != nil {
		return h
	}
	return row.(*job.Holder)
}

// slotsOf is how many slots a machine has for tasks.
func slotsOf(h *job.Holder) int {
	if h == nil || h.Machine == nil || h.Machine.Lost || h.Machine.Draining || len(h.Machine.Stopping) > 0 {
		return 0
	}
	return h.Machine.Slots
}

// fit reports whether a machine may be given tasks, be it busy now.
func fit(h *job.Holder) bool { return slotsOf(h) > 0 && rule.HealthAdmits(h.Machine.Health, 0) > 0 }

// Machines lists up to n machines by name, those behind after.
func (e *Engine) Machines(ctx context.Context, after string, n int) ([]MachineState, error) {
	var out []MachineState
	err := e.Do(ctx, 0, func(r *Tx) error {
		rows, err := r.tx.Rows(job.Holders, machinePrefix+after, n)
		out = make([]MachineState, 0, len(rows))
		for _, row := range rows {
			if h := r.asItIs(row); err == nil && h.Machine != nil {
				var state MachineState
				state, err = r.machineState(h)
				out = append(out, state)
			}
		}
		return err
	})
	return Answered(&out, err)
}

// Machine returns one machine, or NotFound.
func (e *Engine) Machine(ctx context.Context, name string) (MachineState, error) {
	var out MachineState
	err := e.Do(ctx, 0, func(r *Tx) error {
		row, err := r.machineRow(machinePrefix + name)
		if err == nil && row == nil {
			err = &job.Error{Kind: job.NotFound, Field: "engine", Text: fmt.Sprintf("engine %q is not known", name)}
		}
		if err != nil {
			return err
		}
		out, err = r.machineState(row)
		return err
	})
	return Answered(&out, err)
}

func (r *Tx) machineState(h *job.Holder) (MachineState, error) {
	ids, err := r.tx.Held(h.Name)
	m := MachineState{Name: h.Name[len(machinePrefix):], Properties: h.Properties, Machine: *h.Machine, Running: len(ids)}
	switch {
	case m.Lost:
		m.State = MachineLost
	case r.holder(h.Name) == nil && !h.Machine.Polls:
		m.State = MachineSuspect
	case m.Draining:
		m.State = MachineDraining
	case rule.HealthAdmits(m.Health, m.Running) == 0:
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
func (e *Engine) MachineStream(ctx context.Context, name string, epoch int64, prefetch int, sessions []string) (*Stream, error) {
	h := newHolder(job.Named, machinePrefix+name, StreamOptions{Name: name, Queues: sessions, Prefetch: prefetch})
	err := e.Do(ctx, 0, func(r *Tx) error { return r.joinMachine(h, name, epoch) })
	if err != nil {
		if ctx.Err() != nil { // it may have joined meanwhile
			s := &Stream{e: e, h: h}
			s.Close()
		}
		return nil, err
	}
	return &Stream{e: e, h: h}, nil
}

func (r *Tx) joinMachine(h *holder, name string, epoch int64) error {
	row, err := r.liveMachine(name, epoch)
	if err != nil {
		return err
	}
	if err := r.machineBack(row); err != nil {
		return err
	}
	h.asMachine(row)
	h.opts.Prefetch = cmp.Or(h.opts.Prefetch, row.Machine.Slots)
	if old := r.holder(h.name); old != nil {
		r.left[old] = true
		r.ended = append(r.ended, old)
	}
	if err := r.handBack(h); err != nil {
		return err
	}
	r.joined[h.name], r.stirred = h, true
	return nil
}

// lapseMachine is what the clock does to a machine that is silent: it is lost,
// and later forgotten.
func (r *Tx) lapseMachine(old *job.Holder) error {
	if old.Machine.Lost {
		return r.setMachine(old, nil)
	}
	ids, err := r.tx.Held(old.Name)
	if err != nil {
		return err
	}
	how := job.ByLapse
	if old.Machine.Awaited { // it may be that it could not reach us
		how = job.ByRestart
	}
	if err := r.endLeases(old.Name, ids, how); err != nil {
		return err
	}
	if h := r.holder(old.Name); h != nil {
		r.left[h] = true
		r.ended = append(r.ended, h)
	}
	now, err := r.machineRow(old.Name) // it may have been told to stop something
	if err != nil {
		return err
	}
	row, m := *now, *now.Machine
	m.Lost, m.Stopping = true, nil
	if how == job.ByLapse {
		r.c.stage.ofGrid().Detection.observe(&Spans, max(0, int64(r.steady-old.Until+r.e.opts.lostAfter())))
	}
	row.Machine, row.Until = &m, r.steady.Add(machineKept)
	return r.setMachine(now, &row)
}

// toldToStop keeps a machine without work until it says that it stopped a run
// that took too long.
func (r *Tx) toldToStop(l *job.Lease) error {
	if !strings.HasPrefix(l.Holder, machinePrefix) {
		return nil
	}
	old, err := r.machineRow(l.Holder)
	if err != nil || old == nil || old.Machine.Lost {
		return err
	}
	row, m := *old, *old.Machine
	m.Stopping = append(slices.Clone(m.Stopping), l.Token.Hash())
	row.Machine = &m
	return r.setMachine(old, &row)
}

// MachineLease takes up to most tasks for a machine that asks call by call, as
// Lease does; it has no more than its slots. Its heartbeat keeps them.
func (e *Engine) MachineLease(ctx context.Context, name string, epoch int64, most int, sessions []string) ([]Delivery, error) {
	h := newHolder(job.Named, machinePrefix+name, StreamOptions{Name: name, Queues: sessions})
	h.want = max(most, 1)
	return e.ask(ctx, h, func(r *Tx) error {
		old, err := r.liveMachine(name, epoch)
		if err != nil {
			return err
		}
		h.asMachine(old)
		if old.Machine.Polls {
			return nil
		}
		row, m := *old, *old.Machine
		m.Polls, row.Machine, r.stirred = true, &m, true
		return r.setMachine(old, &row)
	})
}

func (h *holder) asMachine(row *job.Holder) {
	h.machine, h.host, h.slots, h.opts.Properties = true, row.Machine.Host, row.Machine.Slots, row.Properties
	h.asks = fmt.Sprintf("%q", h.opts.Properties)
	h.key = fmt.Sprintf("engine %q %q %s", h.host, h.opts.Queues, h.asks)
}

// machineRoom is how many more tasks a machine takes now.
func (r *Tx) machineRoom(h *holder) int {
	row, err := r.machineRow(h.name)
	if err != nil || slotsOf(row) == 0 {
		return 0
	}
	has := h.held + r.held[h]
	if h.want == 0 {
		return min(h.opts.Prefetch-has, rule.HealthAdmits(row.Machine.Health, has))
	}
	ids, err := r.tx.Held(h.name)
	if err != nil {
		return 0
	}
	return min(row.Machine.Slots-len(ids), h.want-has, rule.HealthAdmits(row.Machine.Health, len(ids)))
}

func (o *Options) heartbeat() job.Millis { return cmp.Or(o.Heartbeat, MachineHeartbeat) }
func (o *Options) lostAfter() job.Millis { return cmp.Or(o.LostAfter, MachineLostAfter) }
