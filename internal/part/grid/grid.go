// Package grid is the part for the grid: sessions of tasks, and engines that log in with
// slots and run them (grid.md).
//
// Sessions, engines (job.Holder with job.GridEngine) and tags are rows. What follows from
// them is memory and is made again at a start: the shares of sessions, how long runs of a
// session take, and when clients were heard of.
//
// Each room below has its own file and its own memory. A room reaches the others through
// Grid: g.fleet in any of them is the room of the engines.
package grid

import (
	"cmp"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Options configure the grid. They are set before the engine starts.
type Options struct {
	Heartbeat  job.Millis      // so often an engine says that it lives; 0 = EngineHeartbeat
	BlackHoles *job.BlackHoles // engines that fail everything in no time; nil = they are not looked for
	LostAfter  job.Millis      // an engine that is silent for so long is lost; 0 = EngineLostAfter
}

func (o *Options) heartbeat() job.Millis { return cmp.Or(o.Heartbeat, EngineHeartbeat) }
func (o *Options) lostAfter() job.Millis { return cmp.Or(o.LostAfter, EngineLostAfter) }

// Grid is the grid of a server.
type Grid struct {
	Options

	engine *engine.Engine
	rooms

	stirred bool // a task, what a session asks for, or what an engine may be given changed
}

// rooms are what the grid is made of.
type rooms struct {
	sessions   *sessions   // and the tasks they count
	fleet      *fleet      // the engines
	health     *health     // engines that fail everything
	exclusions *exclusions // engines on which tasks of a session fail
	shares     *shares     // which session is next, and what is ended for it
	feed       *feed       // which task an engine gets
	sight      *sight      // who may run a task
	copies     *copies     // of tasks that take long
	tags       *tags       // tasks that go where others of their tag ran
	needs      *needs      // tasks that wait for others
	clients    *clients    // who drives a session
	counts     *counts     // for monitoring
}

// points are the hooks of the grid, which share out to its rooms.
type points struct{ *Grid }

// Join implements engine.Part.
func (g *Grid) Join(e *engine.Engine) engine.Hooks {
	g.engine = e
	g.rooms = rooms{
		sessions: &sessions{Grid: g}, fleet: &fleet{Grid: g}, health: &health{g}, exclusions: &exclusions{g},
		shares: &shares{Grid: g}, feed: newFeed(g), sight: &sight{g}, copies: &copies{Grid: g},
		tags: &tags{Grid: g}, needs: &needs{Grid: g}, clients: &clients{Grid: g}, counts: newCounts(g),
	}
	at := points{g}
	return engine.Hooks{
		Recover:   at.recover,
		Migrate:   g.migrate,
		Recovered: at.recovered,
		Load:      at.load,
		Begin:     at.begin,
		Coming:    g.clients.coming,
		Check:     at.check,
		Takes:     g.sessions.takes,
		Prepare:   g.needs.prepare,
		Session:   g.sessions.of,
		Wrote:     at.wrote,
		Follows:   func(j *job.Job) bool { return j.Door == job.DoorGrid },
		Stepped:   at.stepped,
		Refused:   g.counts.refused,
		Voided:    g.fleet.voided,
		Rejected:  g.sessions.rejected,
		Due: []engine.Due{
			{Table: job.Sessions, Do: engine.Row(g.sessions.due)},
			{Table: job.Affinities, Steady: true, Do: engine.Row(g.tags.due)},
		},
		Tick:    at.tick,
		Next:    at.next,
		Silent:  g.fleet.silent,
		Silence: g.lostAfter,
		Upkeep:  at.upkeep,
		Served:  at.served,
		Keep:    at.keep,
		Publish: at.publish,
		Explain: at.explain,
		Crew:    at.crew,
	}
}

func (g points) recover(tx *engine.Tx, _ job.Millis) error {
	g.shares.known, g.shares.used, g.shares.preemptAt = nil, false, 0 // a commit that failed may be in them
	g.needs.known, g.needs.over = nil, nil
	if err := g.tags.recover(tx); err != nil {
		return err
	}
	return g.fleet.recover(tx)
}

func (g points) recovered(tx *engine.Tx) error {
	if err := g.needs.tell(tx); err != nil {
		return err
	}
	return g.tags.keep(tx)
}

// load finds what is kept in memory of each session.
func (g points) load(v store.Reader) error {
	steady := g.engine.Steady()
	g.shares.known, g.shares.used = nil, false
	g.shares.preemptAt = steady // somebody may have waited for that
	*g.copies, *g.clients, *g.needs = copies{Grid: g.Grid}, clients{Grid: g.Grid}, needs{Grid: g.Grid}
	return store.EachRow(v, "", func(s *job.Session) error {
		q, err := engine.QueueOf(v, s.Name)
		if err != nil || q.Grid == nil {
			return err
		}
		if q.Grid.Redundancy != nil {
			if err := g.copies.load(v, s.Name, steady); err != nil {
				return err
			}
		}
		if s.Depends && !s.State.Ended() {
			if err := g.needs.load(v, s.Name); err != nil {
				return err
			}
		}
		if plan.NeedsClient(s, q.Grid) {
			g.clients.load(s.Name, q.Grid.ClientTimeout, steady)
		}
		return nil
	})
}

// begin drops what a transaction left that did not take effect.
func (g points) begin() {
	g.stirred = false
	g.sessions.begin()
	g.fleet.begin()
	g.shares.begin()
	g.feed.begin()
	g.copies.begin()
	g.tags.strayed = nil
	g.needs.over = slices.Clip(g.needs.known)
	g.clients.staged = listening{}
	g.counts.begin()
}

func (g points) check(tx *engine.Tx, list []engine.NewJob, out []engine.Added) error {
	if err := g.needs.check(tx, list, out); err != nil {
		return err
	}
	return g.tags.admit(tx, list, out)
}

// wrote follows a task that changed: the share of its session, and who may look again.
func (g points) wrote(tx *engine.Tx, old, j *job.Job) error {
	if (old == nil || old.Door != job.DoorGrid) && (j == nil || j.Door != job.DoorGrid) {
		return nil
	}
	g.shares.wrote(old, j)
	return g.shares.roomBelowMax(tx, old, j)
}

func (g points) stepped(tx *engine.Tx, c rule.Command, old *job.Job, eff rule.Effect) error {
	j := cmp.Or(eff.Job, eff.Left)
	if j == nil || j.Door != job.DoorGrid {
		return nil
	}
	if err := g.sessions.stepped(tx, &c, old, j, &eff); err != nil || old != nil {
		return err
	}
	switch { // it is new
	case j.Needs() != nil:
		return g.needs.add(tx, j)
	case j.Affinity() != nil:
		return g.tags.follow(tx, j)
	}
	return nil
}

// next is when the clock looks at the grid again; 0 = never.
func (g points) next(tx *engine.Tx) (soonest job.Millis) {
	clients := g.clients.next()
	if clients > 0 {
		clients = max(clients, tx.SparedUntil())
	}
	for _, at := range []job.Millis{g.copies.next(), g.shares.nextAt, clients} {
		if at > 0 && (soonest == 0 || at < soonest) {
			soonest = at
		}
	}
	return soonest
}

// tick writes what engines said before others are served: whoever follows the rows sees
// that an engine stopped its run before it gets another one.
func (g points) tick(tx *engine.Tx) error {
	if err := g.fleet.keep(tx); err != nil {
		return err
	}
	return g.clients.tick(tx)
}

func (g points) upkeep(tx *engine.Tx) error {
	if err := g.exclusions.anew(tx); err != nil {
		return err
	}
	if err := g.copies.straggle(tx); err != nil {
		return err
	}
	if err := g.needs.tell(tx); err != nil {
		return err
	}
	return g.tags.keep(tx)
}

func (g points) served(tx *engine.Tx) error {
	if err := g.shares.preempt(tx); err != nil {
		return err
	}
	return g.tags.keep(tx)
}

func (g points) keep(tx *engine.Tx) error {
	if len(g.copies.noted) > 0 { // who is to have a copy is looked for when this is true
		tx.More()
	}
	if err := g.sessions.keep(tx); err != nil {
		return err
	}
	return g.fleet.keep(tx)
}

func (g points) publish() {
	g.shares.used, g.shares.preemptAt, g.needs.known = false, g.shares.nextAt, g.needs.over
	g.copies.publish()
	g.clients.publish(&g.clients.staged)
	g.counts.publish()
}

// explain adds what the grid knows of a task.
func (g points) explain(tx *engine.Tx, s *rule.Situation, told *engine.Remarks) (err error) {
	j, grid := s.Job, s.Queue.Grid
	if j.Affinity() != nil {
		if err := g.tags.explain(tx, s); err != nil {
			return err
		}
	}
	if id, needs := rule.NeededBy(j.Park); needs {
		if s.Needed, err = tx.Store().Get(id); err != nil {
			return err
		}
	}
	if grid == nil {
		return nil
	}
	if j.State == job.Ready && j.Park == "" {
		known, err := g.sessions.find(tx, j.Queue)
		if err != nil {
			return err
		}
		told.Share = &engine.SessionShare{Queue: j.Queue, Actual: s.Running}
		if told.Share.Target, err = g.shares.of(tx, known); err != nil {
			return err
		}
	}
	if grid.RetryElsewhere && j.State.Open() && j.Attempts > 0 {
		told.Avoids = plan.FailedOn(j)
	}
	if j.State == job.Leased {
		return g.copies.explain(tx, s)
	}
	return nil
}

func (g points) crew(tx *engine.Tx, s *rule.Situation) (counted bool, err error) {
	if s.Queue.Grid == nil {
		return false, nil
	}
	return true, g.sight.engines(tx, s)
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func leasesOf(j *job.Job) int {
	if j == nil {
		return 0
	}
	return len(j.Leases)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
