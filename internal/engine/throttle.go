package engine

import (
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
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

// protection is what the committer knows of queues that are protected. All of
// it is empty where none is, and then nothing is asked.
type protection struct {
	queues map[string]bool       // with settings, or with a breaker forced
	gauges gauges                // by queue and group
	due    map[string]job.Millis // when a queue that was cut short has room again, on the steady clock
}

// guard is what one run changes of it.
type guard struct {
	queues map[string]bool
	gauges map[gaugeKey]*gauge
	due    map[string]job.Millis // 0 = it has room again
}

func (p *protection) publish(g *guard) {
	for name, is := range g.queues {
		if p.queues == nil {
			p.queues = map[string]bool{}
		}
		if p.queues[name] = is; !is {
			delete(p.queues, name)
		}
	}
	for k, v := range g.gauges {
		p.gauges.set(k, *v)
	}
	for name, at := range g.due {
		if p.due == nil {
			p.due = map[string]job.Millis{}
		}
		if p.due[name] = at; at == 0 {
			delete(p.due, name)
		}
	}
}

// guarded reports whether anything protects the queue.
func (r *Tx) guarded(queue string) bool {
	if len(r.c.protection.queues)+len(r.guard.queues) == 0 {
		return false
	}
	if is, changed := r.guard.queues[queue]; changed {
		return is
	}
	return r.c.protection.queues[queue]
}

// noteGuard remembers whether a queue is protected.
func (r *Tx) noteGuard(queue string, is bool) {
	if r.guard.queues == nil {
		r.guard.queues = map[string]bool{}
	}
	r.guard.queues[queue] = is
}

// gauge returns what is measured, to be changed.
func (r *Tx) gauge(queue, group string) *gauge {
	k := gaugeKey{queue, group}
	g := r.guard.gauges[k]
	if g == nil {
		if r.guard.gauges == nil {
			r.guard.gauges = map[gaugeKey]*gauge{}
		}
		g = new(r.c.protection.gauges.of(k))
		r.guard.gauges[k] = g
	}
	return g
}

func (r *Tx) Moment() rule.Moment { return rule.Moment{Now: r.now, Steady: r.steady} }

// throttle returns what slows a queue or a group down; of one that nothing
// does, a blank one.
func (r *Tx) throttle(queue, group string) (*job.Throttle, error) {
	row, err := r.tx.Row(job.Throttles, job.GateKey(queue, group))
	if t, ok := row.(*job.Throttle); ok {
		return t, err
	}
	return &job.Throttle{Queue: queue, Group: group}, err
}

func (r *Tx) setThrottle(t *job.Throttle) error {
	r.woken[t.Queue] = true
	if t.Blank() {
		return r.tx.Unset(job.Throttles, t.Key())
	}
	return r.tx.Set(t)
}

// breakerOf is the breaker of a queue (group "") or of its groups.
func breakerOf(q *job.Queue, group string) *job.Breaker {
	if group == "" {
		return q.Protection.Breaker
	}
	return q.Protection.GroupBreaker
}

// roomOf is the question of a take about the queues: nil where none is protected.
func (r *Tx) roomOf() func(string) rule.Room {
	if len(r.c.protection.queues)+len(r.guard.queues) == 0 {
		return nil
	}
	return func(queue string) rule.Room {
		if !r.guarded(queue) {
			return rule.Room{All: rule.NoLimit, Retried: rule.NoLimit}
		}
		room, again := r.room(queue)
		if again > 0 {
			r.wakeAt(queue, again)
		}
		return room
	}
}

// room is how much may be taken from a protected queue now. again is when time
// alone makes more of it; 0 = it does not.
func (r *Tx) room(queue string) (room rule.Room, again job.Millis) {
	room = rule.Room{All: rule.NoLimit, Retried: rule.NoLimit}
	q, err := r.queue(queue)
	if err != nil {
		return rule.Room{}, 0
	}
	t, err := r.throttle(queue, "")
	if err != nil {
		return rule.Room{}, 0
	}
	p := &q.Protection
	room.All = rule.Lets(t)
	if p.MaxRunning > 0 {
		room.All = min(room.All, p.MaxRunning-int(r.tx.Depth(queue).Leases))
	}
	if room.All <= 0 { // whoever changes that wakes the queue
		return room, 0
	}
	g := r.gauge(queue, "")
	if p.Rate.Limited() {
		if room.All = min(room.All, g.bucket.Left(p.Rate, r.steady)); room.All == 0 {
			again = g.bucket.Next(p.Rate, r.steady)
		}
	}
	if p.Budget != nil {
		if room.Retried = g.credit.Left(p.Budget, r.steady); room.Retried == 0 && room.All > 0 {
			again = g.credit.Next(p.Budget, r.steady)
		}
	}
	return room, again
}

// wakeAt notes when a queue that was cut short is looked at again.
func (r *Tx) wakeAt(queue string, at job.Millis) {
	if r.guard.due == nil {
		r.guard.due = map[string]job.Millis{}
	}
	r.guard.due[queue] = max(at, r.steady+1)
}

// wakeGuarded looks at the queues again that were cut short.
func (r *Tx) wakeGuarded() {
	for queue, at := range r.c.protection.due {
		if at <= r.steady {
			r.woken[queue] = true
			if r.guard.due == nil {
				r.guard.due = map[string]job.Millis{}
			}
			r.guard.due[queue] = 0
		}
	}
}

// nextRoom is when the first of them is to be looked at; 0 = never.
func (r *Tx) nextRoom() (soonest job.Millis) {
	sooner := func(at job.Millis) {
		if at > 0 && (soonest == 0 || at < soonest) {
			soonest = at
		}
	}
	for queue, at := range r.c.protection.due {
		if _, changed := r.guard.due[queue]; !changed {
			sooner(at)
		}
	}
	for _, at := range r.guard.due {
		sooner(at)
	}
	return soonest
}

// started counts a take against what protects its queue and group.
func (r *Tx) started(q *job.Queue, j *job.Job) error {
	if !r.guarded(q.Name) {
		return nil
	}
	p := &q.Protection
	if p.Rate.Limited() || p.Budget != nil {
		g := r.gauge(q.Name, "")
		if p.Rate.Limited() {
			g.bucket.Take(p.Rate, r.steady)
		}
		if p.Budget != nil {
			none := g.credit.Left(p.Budget, r.steady) == 0
			g.credit.Take(p.Budget, rule.EntriesOf(j).Class.Retried, r.steady)
			if none && g.credit.Left(p.Budget, r.steady) > 0 { // others may have room for a retry now
				r.woken[q.Name], r.moved = true, true
			}
		}
	}
	if err := r.letThrough(q, "", job.Rate{}); err != nil || j.Group == "" {
		return err
	}
	return r.letThrough(q, j.Group, p.GroupRate)
}

// letThrough counts a run against a breaker that is about to close, and
// against the rate of a group.
func (r *Tx) letThrough(q *job.Queue, group string, rate job.Rate) error {
	b := breakerOf(q, group)
	if b == nil && !rate.Limited() {
		return nil
	}
	t, err := r.throttle(q.Name, group)
	if err != nil {
		return err
	}
	next := t
	if b != nil {
		next = rule.Granted(b, t, r.Moment())
	}
	if rate.Limited() {
		g := r.gauge(q.Name, group)
		g.bucket.Take(rate, r.steady)
		if slow := r.slowTo(q, group); slow > 0 {
			next = new(*next)
			next.Slow = slow
		}
	}
	if next == t {
		return nil
	}
	return r.setThrottle(next)
}

// slowTo is when the rate of a group allows the next take; 0 = now.
func (r *Tx) slowTo(q *job.Queue, group string) job.Millis {
	rate := q.Protection.GroupRate
	if !rate.Limited() {
		return 0
	}
	if b := &r.gauge(q.Name, group).bucket; b.Left(rate, r.steady) == 0 {
		return b.Next(rate, r.steady)
	}
	return 0
}

// countRuns tells breakers how the runs of a job ended, and makes room.
func (r *Tx) countRuns(old *job.Job, v rule.Verb, eff rule.Effect) error {
	if old == nil || len(eff.Ended) == 0 && !eff.Late || !r.guarded(old.Queue) {
		return nil
	}
	r.woken[old.Queue] = true
	q, err := r.queue(old.Queue)
	if err != nil || q.Protection.Breaker == nil && q.Protection.GroupBreaker == nil {
		return err
	}
	runs := rule.RunsOf(old, v, eff)
	if err := r.tellBreaker(q, "", runs); err != nil || old.Group == "" {
		return err
	}
	return r.tellBreaker(q, old.Group, runs)
}

func (r *Tx) tellBreaker(q *job.Queue, group string, runs []rule.Run) error {
	b := breakerOf(q, group)
	if b == nil {
		return nil
	}
	t, err := r.throttle(q.Name, group)
	if err != nil {
		return err
	}
	g := r.c.protection.gauges.of(gaugeKey{q.Name, group})
	if changed := r.guard.gauges[gaugeKey{q.Name, group}]; changed != nil {
		g = *changed
	}
	next, window := *t, g.window
	for _, run := range runs {
		next = *rule.Ended(b, &next, &window, run, r.Moment())
	}
	if window != g.window {
		r.gauge(q.Name, group).window = window
	}
	if next == *t {
		return nil
	}
	if next.State == job.BreakerOpen && t.State != job.BreakerOpen {
		r.stats.Opened++
	}
	return r.setThrottle(&next)
}

// turnThrottle does what the clock owes a throttle.
func (r *Tx) turnThrottle(t *job.Throttle) error {
	q, err := r.queue(t.Queue)
	if err != nil {
		return err
	}
	next, err := rule.Turn(breakerOf(q, t.Group), t, r.Moment())
	if err != nil {
		return err
	}
	if rule.Idle(t) && rule.Idle(next) && t.Group != "" { // groups come and go: one without work is forgotten
		members, err := r.tx.Members(t.Queue, t.Group, 1)
		if err != nil {
			return err
		}
		if len(members) == 0 {
			next = &job.Throttle{Queue: t.Queue, Group: t.Group}
		}
	}
	return r.setThrottle(next)
}

// protect follows new settings of a queue: what breakers and rates that are
// gone have left behind is let go.
func (r *Tx) protect(q *job.Queue) error {
	p := q.Protection
	forced, gone := false, []*job.Throttle(nil)
	err := r.ofQueue(job.Throttles, q.Name, func(row job.Row) {
		t := row.(*job.Throttle)
		if t.Forced {
			forced = forced || t.Group == ""
			return
		}
		next := *t
		if breakerOf(q, t.Group) == nil {
			next = job.Throttle{Queue: t.Queue, Group: t.Group, Slow: t.Slow}
		}
		if next.Slow > 0 {
			next.Slow = r.slowTo(q, t.Group)
		}
		if next != *t {
			gone = append(gone, &next)
		}
	})
	if err != nil {
		return err
	}
	for _, t := range gone {
		if err := r.setThrottle(t); err != nil {
			return err
		}
	}
	p.Fair = nil // is decided by rules alone
	r.noteGuard(q.Name, forced || p != job.Protection{})
	return nil
}

// ofQueue calls f for every row of a queue and its groups.
func (r *Tx) ofQueue(t job.Table, queue string, f func(job.Row)) error {
	prefix := job.GateKey(queue, "")
	for after := queue; ; {
		rows, err := r.tx.Rows(t, after, tickMax)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if after = row.Key(); !strings.HasPrefix(after, prefix) { // they stand together
				return nil
			}
			f(row)
		}
		if len(rows) < tickMax {
			return nil
		}
	}
}
