package sim_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// In one world of gridShare there is a grid instead of queues and workers:
// sessions, tasks and engines, on the same clock and the same disk. Steps that
// are about queues do something of the grid instead, so that such a history is
// as long as any other.
const gridShare = 12

// gridWorld is what drivers and engines know.
type gridWorld struct {
	sessions []string
	engines  map[string]*gridEngine   // by name
	began    map[job.Token]job.Millis // when an engine began a run, on its own clock
}

type gridEngine struct {
	name  string
	host  string
	slots int
	epoch int64
	h     *holder // its connection; nil = none
}

var (
	gridSessions = []string{"s1", "s2"}
	gridEngines  = []string{"e1", "e2", "e3", "e4"}
	gridHosts    = []string{"h1", "h2", "h3"}
)

func newGridWorld(seed uint64) *gridWorld {
	if seed%gridShare != 7 {
		return nil
	}
	return &gridWorld{engines: map[string]*gridEngine{}, began: map[job.Token]job.Millis{}}
}

// gridSteps are done in the place of others.
var gridSteps = map[string]func(*world){
	"time passes": (*world).gridTime,
	"put":         (*world).submitTasks, "put under keys": (*world).submitTasks, "messages come in": (*world).submitTasks,
	"connect": (*world).login, "use a lock": (*world).login, "disconnect": (*world).dropEngine,
	"unary take": (*world).beat, "unary waiters give up": (*world).beginRuns, "take turns": (*world).beginRuns, "change cron": (*world).beginRuns, "a tick takes long to fold": (*world).beat,
	"slow workers read": (*world).beat, "a budget changes": (*world).beginRuns, "go on with a turn": (*world).settleOne,
	"operate": (*world).operateTask, "operate an inbox": (*world).operateTask, "many": (*world).operateTask,
	"change or delete many": (*world).leaveEngine, "hold a group": (*world).endSession, "run through the dead": (*world).leaveEngine,
	"change a queue": (*world).weighSession, "a run of an inbox": (*world).weighSession, "pause or resume a fingerprint": (*world).beginRuns,
}

func (w *world) does(k *kind) {
	if do := gridSteps[k.name]; w.grid != nil && do != nil {
		do(w)
		return
	}
	k.do(w)
}

// callFor makes a call whose refusals by these kinds are lawful.
func (w *world) callFor(what string, f func() error, kinds ...job.Kind) {
	w.say("    %s", what)
	var err error
	w.start(&call{finish: func() string {
		if err != nil {
			return w.refusal(what, err, kinds...)
		}
		return "done"
	}}, func() { err = f() })
}

// furnishGrid opens the sessions.
func (w *world) furnishGrid() {
	for number, name := range gridSessions {
		n := grid.NewSession{Queue: *job.NewQueue(name)}
		q := &n.Queue
		q.Retry = job.Retry{
			Limit: job.LimitOf(uint32(w.dice.IntN(3))), LossLimit: job.LimitOf(uint32(2 + w.dice.IntN(4))),
			Place: job.PlaceFront, Curve: &job.Curve{Kind: job.CurveImmediate},
		}
		q.RetainDone, q.FrontOrder = job.MaxMillis, job.FrontOrder(w.dice.IntN(2))
		q.RunTimeout = pick(w, []job.Millis{0, 0, 9 * job.Second})
		q.Grid = &job.Grid{
			Weight: uint8(1 + w.dice.IntN(9)), MaxEngines: w.dice.IntN(4), MaxCopies: uint8(1 + w.dice.IntN(3)), MaxReschedules: uint32(w.dice.IntN(4)),
			LossesCharged: w.oneIn(2), AnyHost: w.oneIn(3), Urgent: w.oneIn(3), OnTimeout: job.OnTimeout(w.dice.IntN(2)),
			EvictedPlace: job.Place(w.dice.IntN(4)), CopyPlace: job.Place(w.dice.IntN(4)), Collection: job.CollectLater,
		}
		q.Grid.RetryElsewhere = !q.Grid.LossesCharged
		w.drawTimes(q)
		w.drawGrid(q, number)
		w.grid.sessions = append(w.grid.sessions, name)
		w.callFor(fmt.Sprintf("open session %s: copies %d, redundancy %t, %s", name, q.Grid.MaxCopies, q.Grid.Redundancy != nil, q.Grid.OnTimeout), func() error {
			_, err := w.e.Grid.OpenSession(w.ctx, n, job.Actor{Name: "driver"})
			return err
		})
	}
	w.settle()
	w.login()
	w.login()
}

// submitTasks submits a few tasks, some of which need one that is there.
func (w *world) submitTasks() {
	open := 0
	for _, j := range w.judge.book.jobs {
		if j.State.Open() {
			open++
		}
	}
	if open > 20 {
		w.say("    (there is enough to do)")
		return
	}
	session, c := pick(w, gridSessions), &call{}
	var list []engine.NewJob
	for range 1 + w.dice.IntN(3) {
		w.names++
		label := fmt.Sprint("t", w.names)
		n := engine.NewJob{Key: label, Payload: []byte(label), Job: job.Job{
			Queue: session, Type: "task", Priority: 1, Door: job.DoorGrid, RetainDone: job.Unset, RetainDead: job.Unset,
		}}
		if known := w.judge.book.sorted(); len(known) > 0 && w.oneIn(4) {
			if need := pick(w, known); need.Queue == session {
				n.Needs, n.OnDepFail = []string{w.judge.name(need.ID)}, job.OnDepFail(w.dice.IntN(2))
			}
		}
		if w.oneIn(3) {
			n.Job.RunTimeout = 6 * job.Second
		}
		if w.oneIn(4) {
			n.Job.Extras = &job.Extras{Affinity: &job.Affinity{Tag: "x"}}
		}
		w.bodies[label] = label
		list = append(list, n)
		c.reqs = append(c.reqs, &request{kind: askPut, put: n, label: label, text: fmt.Sprintf("submit %s to %s, needs %v", label, session, n.Needs)})
		w.say("    %s", c.reqs[len(c.reqs)-1])
	}
	var err error
	c.finish = func() string {
		if err != nil {
			for _, r := range c.reqs {
				if r.commit > 0 && job.KindOf(err) != job.Unavailable {
					broken("core.md 10", "%s was refused (%v) and is there", r, err)
				}
			}
			return w.refusal("submit", err, job.WrongState, job.Invalid)
		}
		for _, r := range c.reqs {
			w.accepted(r, false)
		}
		return "submitted"
	}
	w.start(c, func() { _, err = w.e.Put(w.ctx, list) })
}

// login logs an engine in, or connects it again if it lost its connection.
func (w *world) login() {
	name := pick(w, gridEngines)
	e := w.grid.engines[name]
	if e != nil && e.h != nil && !e.h.gone && !e.h.closing && !w.oneIn(4) {
		w.say("    (%s is connected)", name)
		return
	}
	if e != nil && w.oneIn(2) {
		w.stream(e)
		return
	}
	l := grid.Login{Name: name, Host: pick(w, gridHosts), Slots: 1 + w.dice.IntN(3)}
	for _, h := range w.hands {
		if h.h.name == "e/"+name && !w.oneIn(3) {
			l.Running = append(l.Running, grid.Running{ID: h.d.Job.ID, Token: h.d.Lease.Token})
		}
	}
	w.say("    %s logs in on %s with %d slots and runs %d tasks", name, l.Host, l.Slots, len(l.Running))
	var in grid.LoggedIn
	var err error
	w.start(&call{finish: func() string {
		if err != nil {
			return w.refusal("login", err)
		}
		e = &gridEngine{name: name, host: l.Host, slots: l.Slots, epoch: in.Engine.Epoch}
		w.grid.engines[name] = e
		return fmt.Sprintf("%s has epoch %d", name, e.epoch)
	}}, func() { in, err = w.e.Grid.Login(w.ctx, l) })
	if w.settle(); e != nil && e.h == nil {
		w.stream(e)
	}
}

// stream connects an engine that is logged in.
func (w *world) stream(e *gridEngine) {
	h := &holder{kind: job.Named, name: "e/" + e.name, prefetch: e.slots, got: map[job.Token]bool{}}
	w.holders[h.name], e.h = h, h
	var err error
	w.start(&call{finish: func() string {
		if err != nil {
			h.gone = true
			return w.refusal("connect", err, job.Superseded, job.NotFound)
		}
		if !h.gone {
			w.streams = append(w.streams, h)
		}
		return e.name + " is connected"
	}}, func() { h.s, err = w.e.Grid.EngineStream(w.ctx, e.name, e.epoch, 0, nil) })
}

// beat is the heartbeat of most engines.
func (w *world) beat() {
	w.redundant()
	for _, name := range gridEngines {
		if e := w.grid.engines[name]; e != nil && !w.oneIn(5) {
			b := grid.Beat{Epoch: e.epoch}
			if w.oneIn(2) {
				b.Running = []grid.Running{}
			}
			for _, h := range w.hands {
				switch {
				case h.h.name != "e/"+name:
				case h.h.voided[h.d.Lease.Token]:
					b.Stopped = append(b.Stopped, h.d.Lease.Token)
				case b.Running != nil && !w.oneIn(3):
					b.Running = append(b.Running, grid.Running{ID: h.d.Job.ID, Token: h.d.Lease.Token})
				}
			}
			w.callFor("heartbeat of "+name, func() error {
				_, err := w.e.Grid.Heartbeat(w.ctx, name, b)
				return err
			}, job.Superseded, job.NotFound)
		}
	}
}

// dropEngine breaks the connection of an engine, which may stay silent.
func (w *world) dropEngine() {
	if len(w.streams) == 0 {
		w.beat()
		return
	}
	w.disconnect()
}

// leaveEngine drains an engine or logs it off.
func (w *world) leaveEngine() {
	name, off := pick(w, gridEngines), w.oneIn(2)
	w.callFor(fmt.Sprintf("drain of %s, log off %t", name, off), func() error {
		if off {
			return w.e.Grid.Logoff(w.ctx, name, 0, job.Actor{Name: "ann"})
		}
		_, err := w.e.Grid.Drain(w.ctx, name, 0, job.Actor{Name: "ann"})
		return err
	}, job.NotFound, job.Superseded)
}

// operateTask asks for a copy of a task, or cancels it.
func (w *world) operateTask() {
	list := slices.DeleteFunc(w.judge.book.sorted(), func(j *job.Job) bool { return !j.State.Open() })
	if len(list) == 0 {
		w.beat()
		return
	}
	j := pick(w, list)
	r := &request{kind: askOperate, id: j.ID, command: rule.Command{Verb: rule.Offer}}
	if w.oneIn(6) {
		r.command.Verb = rule.Cancel
	}
	r.text = fmt.Sprintf("%s of %s", r.command.Verb, w.judge.name(j.ID))
	w.say("    %s", r)
	var v engine.Verdict
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		switch job.KindOf(err) {
		case job.WrongState, job.NotFound, job.OverLimit:
			v.Err = err
		default:
			if err != nil {
				return w.refusal("operate", err)
			}
		}
		return w.verdict(r, v)
	}
	w.start(c, func() { v, err = enginetest.Operate(w.ctx, w.e.Engine, j.ID, r.command) })
}

// weighSession changes the weight of a session, or suspends it.
func (w *world) weighSession() {
	name, weight, suspended := pick(w, gridSessions), uint8(w.dice.IntN(10)), w.oneIn(4)
	w.callFor(fmt.Sprintf("session %s: weight %d, suspended %t", name, weight, suspended), func() error {
		_, err := w.e.Grid.ChangeSession(w.ctx, name, func(q *job.Queue) error {
			q.Grid.Weight, q.Grid.Suspended = weight, suspended
			return nil
		}, job.Actor{Name: "driver"})
		return err
	}, job.WrongState, job.NotFound)
}

// endSession closes a session, or cancels it.
func (w *world) endSession() {
	name, cancel := pick(w, gridSessions), w.oneIn(3)
	w.callFor(fmt.Sprintf("end of session %s, cancelled %t", name, cancel), func() (err error) {
		if cancel {
			_, err = w.e.Grid.CancelSession(w.ctx, name, "", job.Actor{Name: "driver"})
		} else {
			_, err = w.e.Grid.CloseSession(w.ctx, name, job.Actor{Name: "driver"})
		}
		return err
	}, job.NotFound)
}

// stragglers is for how many rounds some runs take long at the end of a history.
const stragglers = 5

// endGrid lets every task come to its end: none is lost (A42, I8).
func (w *world) endGrid() {
	w.grasp = 1000 // who forgets a run here never ends it
	for range 3 {  // a commit may fail, and the store takes its time then
		w.pass(2 * job.Second)
		for _, name := range gridSessions {
			w.callFor("the end of "+name, func() error {
				_, err := w.e.Grid.ChangeSession(w.ctx, name, func(q *job.Queue) error {
					q.Grid.Weight, q.Grid.Suspended, q.Grid.MaxEngines, q.Grid.Exclusion, q.Grid.ClientTimeout = 5, false, 0, nil, 0
					return nil
				}, job.Actor{})
				return err
			}, job.WrongState, job.NotFound)
		}
		w.settle()
	}
	for i, host := range []string{"z1", "z2", "z3"} {
		name := fmt.Sprint("end", i)
		var in grid.LoggedIn
		w.callFor(name+" logs in", func() (err error) {
			in, err = w.e.Grid.Login(w.ctx, grid.Login{Name: name, Host: host, Slots: 9})
			return err
		})
		w.settle()
		e := &gridEngine{name: name, host: host, slots: 9, epoch: in.Engine.Epoch}
		w.grid.engines[name] = e
		w.stream(e)
	}
	for round := range 60 {
		w.settle()
		if round < stragglers {
			w.begin()
			w.settle()
			w.redundant()
		}
		hands := w.hands
		w.hands = nil
		if round < stragglers { // and half of them take long
			at := w.dice.IntN(len(hands)/2 + 1)
			w.hands, hands = slices.Clone(hands[at:]), hands[:at]
		}
		var list []engine.Settle
		c := &call{finish: func() string { return "the rest is done" }}
		for _, h := range hands {
			s := engine.Settle{ID: h.d.Job.ID, Token: h.d.Lease.Token, Outcome: job.OK}
			list = append(list, s)
			c.reqs = append(c.reqs, &request{kind: askSettle, id: s.ID, settle: s, text: "settle ok of " + w.judge.name(s.ID)})
		}
		w.start(c, func() { _, _ = w.e.Settle(context.WithoutCancel(w.ctx), list) })
		w.settle()
		for _, name := range slices.Sorted(maps.Keys(w.grid.engines)) {
			e := w.grid.engines[name]
			if e.host[0] == 'z' {
				w.start(&call{finish: func() string { return name + " lives" }}, func() { _, _ = w.e.Grid.Heartbeat(w.ctx, name, grid.Beat{Epoch: e.epoch, Stopped: e.stops()}) })
			}
		}
		w.pass(2 * job.Second)
		if !slices.ContainsFunc(w.judge.book.sorted(), func(j *job.Job) bool { return j.State.Open() }) {
			return
		}
	}
	for _, j := range w.judge.book.sorted() {
		if j.State.Open() {
			broken("A42 I8", "%s never came to an end: %s, parked %q", w.judge.name(j.ID), brief(j), j.Park)
		}
	}
}
