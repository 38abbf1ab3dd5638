// Package guard is the part that protects queues and groups: breakers, rates, retry
// budgets, limits of running jobs, and holds by an operator (core.md section 6).
//
// Breakers and holds are rows. What rates and windows measure is memory and is measured
// anew after a start (core.md section 9).
package guard

import (
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// gauge is what is measured of a queue (group "") or of a group. It is not
// kept on disk: after a restart it is measured anew (core.md section 9).
type gauge struct {
	window rule.Window
	bucket rule.Bucket
	credit rule.Credit
}

type gaugeKey struct{ queue, group string }

// gaugesMax bounds each of the two generations of gauges: groups come and go.
const gaugesMax = 1 << 16

// gauges forgets what was not used for long.
type gauges struct{ young, old map[gaugeKey]gauge }

func (g *gauges) of(k gaugeKey) gauge {
	if v, ok := g.young[k]; ok {
		return v
	}
	return g.old[k]
}

func (g *gauges) set(k gaugeKey, v gauge) {
	if len(g.young) >= gaugesMax {
		g.old, g.young = g.young, nil
	}
	if g.young == nil {
		g.young = map[gaugeKey]gauge{}
	}
	g.young[k] = v
}

// Guard is what protects queues. All of it is empty where none is protected, and then
// nothing is asked.
type Guard struct {
	engine *engine.Engine
	opened atomic.Uint64
	memory
}

// memory is what is made by load, or measured since.
type memory struct {
	queues map[string]bool       // with settings, or with a breaker forced
	gauges gauges                // by queue and group
	due    map[string]job.Millis // when a queue that was cut short has room again, on the steady clock
	staged staged
}

// staged is what one transaction changes of it.
type staged struct {
	queues map[string]bool
	gauges map[gaugeKey]*gauge
	due    map[string]job.Millis // 0 = it has room again
}

// Join implements engine.Part.
func (s *Guard) Join(e *engine.Engine) engine.Hooks {
	s.engine, s.memory = e, none()
	return engine.Hooks{
		Recover:  s.carry,
		Load:     s.load,
		Begin:    func() { s.staged = staged{} },
		Follows:  func(j *job.Job) bool { return s.limited(nil, j.Queue) },
		Stepped:  s.ended,
		Settings: s.protect,
		Due:      []engine.Due{{Table: job.Throttles, Steady: true, Do: engine.Row(s.advance)}},
		Tick:     s.tick,
		Next:     s.next,
		Limited:  s.limited,
		Room:     s.roomNow,
		Lets:     s.letsOneMore,
		Given:    s.given,
		Publish:  s.publish,
		Allow:    s.allow,
		Keeps:    func(queue string) bool { return s.queues[queue] },
	}
}

// none is what is known where nothing is protected.
func none() memory { return memory{queues: map[string]bool{}, due: map[string]job.Millis{}} }

// Opened is how often a breaker opened since the start.
func (s *Guard) Opened() uint64 { return s.opened.Load() }

func (s *Guard) publish() {
	for name, is := range s.staged.queues {
		if s.queues[name] = is; !is {
			delete(s.queues, name)
		}
	}
	for k, v := range s.staged.gauges {
		s.gauges.set(k, *v)
	}
	for name, at := range s.staged.due {
		if s.due[name] = at; at == 0 {
			delete(s.due, name)
		}
	}
}

// limited reports whether anything protects the queue, or any queue if it is "".
func (s *Guard) limited(_ *engine.Tx, queue string) bool {
	if len(s.queues)+len(s.staged.queues) == 0 || queue == "" {
		return len(s.queues)+len(s.staged.queues) > 0
	}
	if is, changed := s.staged.queues[queue]; changed {
		return is
	}
	return s.queues[queue]
}

// gauge returns what is measured, to be changed.
func (s *Guard) gauge(queue, group string) *gauge {
	k := gaugeKey{queue, group}
	g := s.staged.gauges[k]
	if g == nil {
		if s.staged.gauges == nil {
			s.staged.gauges = map[gaugeKey]*gauge{}
		}
		g = new(s.gauges.of(k))
		s.staged.gauges[k] = g
	}
	return g
}

// throttleOf returns what slows a queue or a group down; of one that nothing
// does, a blank one.
func throttleOf(tx *engine.Tx, queue, group string) (*job.Throttle, error) {
	t, err := store.Row[*job.Throttle](tx.Store(), job.GateKey(queue, group))
	if t == nil {
		t = &job.Throttle{Queue: queue, Group: group}
	}
	return t, err
}

func setThrottle(tx *engine.Tx, t *job.Throttle) error {
	tx.Wake(t.Queue)
	if t.Blank() {
		return tx.Store().Unset(job.Throttles, t.Key())
	}
	return tx.Store().Set(t)
}

// breakerOf is the breaker of a queue (group "") or of its groups.
func breakerOf(q *job.Queue, group string) *job.Breaker {
	if group == "" {
		return q.Protection.Breaker
	}
	return q.Protection.GroupBreaker
}

// roomNow is how much may be taken from a protected queue now. A queue that is cut short
// is looked at again when time gives more.
func (s *Guard) roomNow(tx *engine.Tx, queue string) rule.Room {
	room, again := s.room(tx, queue)
	if again > 0 {
		s.wakeAt(tx, queue, again)
	}
	return room
}

// room is how much may be taken from a protected queue now. again is when time
// alone makes more of it; 0 = it does not.
func (s *Guard) room(tx *engine.Tx, queue string) (room rule.Room, again job.Millis) {
	room = rule.Room{All: rule.NoLimit, Retried: rule.NoLimit}
	q, err := tx.Queue(queue)
	if err != nil {
		return rule.Room{}, 0
	}
	t, err := throttleOf(tx, queue, "")
	if err != nil {
		return rule.Room{}, 0
	}
	p := &q.Protection
	room.All = rule.Lets(t)
	if p.MaxRunning > 0 {
		room.All = min(room.All, p.MaxRunning-int(tx.Store().Depth(queue).Leases))
	}
	if room.All <= 0 { // whoever changes that wakes the queue
		return room, 0
	}
	g := s.gauge(queue, "")
	if p.Rate.Limited() {
		if room.All = min(room.All, g.bucket.Left(p.Rate, tx.Steady())); room.All == 0 {
			again = g.bucket.Next(p.Rate, tx.Steady())
		}
	}
	if p.Budget != nil {
		if room.Retried = g.credit.Left(p.Budget, tx.Steady()); room.Retried == 0 && room.All > 0 {
			again = g.credit.Next(p.Budget, tx.Steady())
		}
	}
	return room, again
}

// wakeAt notes when a queue that was cut short is looked at again.
func (s *Guard) wakeAt(tx *engine.Tx, queue string, at job.Millis) {
	if s.staged.due == nil {
		s.staged.due = map[string]job.Millis{}
	}
	s.staged.due[queue] = max(at, tx.Steady()+1)
}

// tick looks at the queues again that were cut short.
func (s *Guard) tick(tx *engine.Tx) error {
	for queue, at := range s.due {
		if at <= tx.Steady() {
			tx.Wake(queue)
			if s.staged.due == nil {
				s.staged.due = map[string]job.Millis{}
			}
			s.staged.due[queue] = 0
		}
	}
	return nil
}

// next is when the first of them is to be looked at; 0 = never.
func (s *Guard) next(*engine.Tx) job.Millis { return engine.Soonest(s.due, s.staged.due) }

// given counts a take against what protects its queue and group.
func (s *Guard) given(tx *engine.Tx, q *job.Queue, j *job.Job) error {
	if !s.limited(tx, q.Name) {
		return nil
	}
	p := &q.Protection
	if p.Rate.Limited() || p.Budget != nil {
		g := s.gauge(q.Name, "")
		if p.Rate.Limited() {
			g.bucket.Take(p.Rate, tx.Steady())
		}
		if p.Budget != nil {
			none := g.credit.Left(p.Budget, tx.Steady()) == 0
			g.credit.Take(p.Budget, rule.EntriesOf(j).Class.Retried, tx.Steady())
			if none && g.credit.Left(p.Budget, tx.Steady()) > 0 { // others may have room for a retry now
				tx.Wake(q.Name)
				tx.Moved()
			}
		}
	}
	if err := s.letThrough(tx, q, "", job.Rate{}); err != nil || j.Group == "" {
		return err
	}
	return s.letThrough(tx, q, j.Group, p.GroupRate)
}

// letThrough counts a run against a breaker that is about to close, and
// against the rate of a group.
func (s *Guard) letThrough(tx *engine.Tx, q *job.Queue, group string, rate job.Rate) error {
	b := breakerOf(q, group)
	if b == nil && !rate.Limited() {
		return nil
	}
	t, err := throttleOf(tx, q.Name, group)
	if err != nil {
		return err
	}
	next := t
	if b != nil {
		next = rule.Granted(b, t, tx.Moment())
	}
	if rate.Limited() {
		g := s.gauge(q.Name, group)
		g.bucket.Take(rate, tx.Steady())
		if slow := s.slowTo(tx, q, group); slow > 0 {
			next = new(*next)
			next.Slow = slow
		}
	}
	if next == t {
		return nil
	}
	return setThrottle(tx, next)
}

// slowTo is when the rate of a group allows the next take; 0 = now.
func (s *Guard) slowTo(tx *engine.Tx, q *job.Queue, group string) job.Millis {
	rate := q.Protection.GroupRate
	if !rate.Limited() {
		return 0
	}
	if b := &s.gauge(q.Name, group).bucket; b.Left(rate, tx.Steady()) == 0 {
		return b.Next(rate, tx.Steady())
	}
	return 0
}

// ended tells breakers how the runs of a job ended, and makes room.
func (s *Guard) ended(tx *engine.Tx, c rule.Command, old *job.Job, eff rule.Effect) error {
	if old == nil || len(eff.Ended) == 0 && !eff.Late || !s.limited(tx, old.Queue) {
		return nil
	}
	tx.Wake(old.Queue)
	q, err := tx.Queue(old.Queue)
	if err != nil || q.Protection.Breaker == nil && q.Protection.GroupBreaker == nil {
		return err
	}
	runs := rule.RunsOf(old, c.Verb, eff)
	if err := s.tellBreaker(tx, q, "", runs); err != nil || old.Group == "" {
		return err
	}
	return s.tellBreaker(tx, q, old.Group, runs)
}

func (s *Guard) tellBreaker(tx *engine.Tx, q *job.Queue, group string, runs []rule.Run) error {
	b := breakerOf(q, group)
	if b == nil {
		return nil
	}
	t, err := throttleOf(tx, q.Name, group)
	if err != nil {
		return err
	}
	g := s.gauges.of(gaugeKey{q.Name, group})
	if changed := s.staged.gauges[gaugeKey{q.Name, group}]; changed != nil {
		g = *changed
	}
	next, window := *t, g.window
	for _, run := range runs {
		next = *rule.Ended(b, &next, &window, run, tx.Moment())
	}
	if window != g.window {
		s.gauge(q.Name, group).window = window
	}
	if next == *t {
		return nil
	}
	if next.State == job.BreakerOpen && t.State != job.BreakerOpen {
		tx.Count(&s.opened, 1)
	}
	return setThrottle(tx, &next)
}

// advance does what is due of a throttle.
func (s *Guard) advance(tx *engine.Tx, t *job.Throttle) error {
	q, err := tx.Queue(t.Queue)
	if err != nil {
		return err
	}
	next, err := rule.AdvanceThrottle(breakerOf(q, t.Group), t, tx.Moment())
	if err != nil {
		return err
	}
	if rule.Idle(t) && rule.Idle(next) && t.Group != "" { // groups come and go: one without work is forgotten
		members, err := tx.Store().IDs(store.Members(t.Queue, t.Group), 1)
		if err != nil {
			return err
		}
		if len(members) == 0 {
			next = &job.Throttle{Queue: t.Queue, Group: t.Group}
		}
	}
	return setThrottle(tx, next)
}

// protect follows new settings of a queue: what breakers and rates that are
// gone have left behind is let go.
func (s *Guard) protect(tx *engine.Tx, q *job.Queue) error {
	p := q.Protection
	forced, gone := false, []*job.Throttle(nil)
	throttles, err := store.RowsOfQueue[*job.Throttle](tx.Store(), q.Name)
	for _, t := range throttles {
		if t.Forced {
			forced = forced || t.Group == ""
			continue
		}
		next := *t
		if breakerOf(q, t.Group) == nil {
			next = job.Throttle{Queue: t.Queue, Group: t.Group, Slow: t.Slow}
		}
		if next.Slow > 0 {
			next.Slow = s.slowTo(tx, q, t.Group)
		}
		if next != *t {
			gone = append(gone, &next)
		}
	}
	if err != nil {
		return err
	}
	for _, t := range gone {
		if err := setThrottle(tx, t); err != nil {
			return err
		}
	}
	p.Fair = nil // is decided by rules alone
	if s.staged.queues == nil {
		s.staged.queues = map[string]bool{}
	}
	s.staged.queues[q.Name] = forced || p != job.Protection{}
	return nil
}

// letsOneMore reports whether what protects a queue and its groups lets one more member
// of a turn run.
func (s *Guard) letsOneMore(tx *engine.Tx, j *job.Job) (bool, error) {
	room := s.roomNow(tx, j.Queue)
	if !room.Take(rule.EntriesOf(j).Class) {
		return false, nil
	}
	t, err := throttleOf(tx, j.Queue, j.Group)
	return !rule.Throttled(t), err
}

// allow adds the room under the rates and the retry budget of the queue, which change
// from moment to moment.
func (s *Guard) allow(tx *engine.Tx, is *rule.Situation) error {
	if s.limited(tx, is.Job.Queue) {
		is.Room, is.RoomAgain = s.room(tx, is.Job.Queue)
	}
	return nil
}

// carry moves timers of breakers and rates to the steady clock of this start.
func (s *Guard) carry(tx *engine.Tx, shift job.Millis) error {
	return store.EachRow(tx.Store(), "", func(t *job.Throttle) error {
		q, err := tx.Queue(t.Queue)
		if err != nil {
			return err
		}
		return tx.Store().Set(rule.CarryThrottle(breakerOf(q, t.Group), t, shift, tx.Moment()))
	})
}

// load finds the queues that are protected. An operator may have forced the breaker of
// one that has no settings.
func (s *Guard) load(v store.Reader) error {
	s.memory = none()
	err := store.EachRow(v, "", func(q *job.Queue) error {
		p := q.Protection
		if p.Fair = nil; p != (job.Protection{}) {
			s.queues[q.Name] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	return store.EachRow(v, "", func(t *job.Throttle) error {
		s.queues[t.Queue] = true
		s.engine.KnowQueue(t.Queue)
		return nil
	})
}
