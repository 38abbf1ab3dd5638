package meter

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Bounds of what one look at everything may cost.
const (
	oldestLook = 4      // ready jobs of a queue, by id, of which the longest waiting is told
	rowsLook   = 10_000 // rows of breakers and of holds
)

// Measures is what a monitoring system wants to know, at one time. Counters
// count since the start of the process.
type Measures struct {
	engine.Figures
	times

	Queues   []Queue // by name, those that have a name of their own
	Other    Queue   // all others together, without a name
	Sessions Queue   // all sessions together

	Breakers   [4]int // by job.BreakerState, of queues and groups; closed: those that are forced so
	HeldGroups int

	Working     bool // the store takes work; if not, what is there now is not known
	Free, Total int64
	Reserve     int64
}

// Queue is a queue.
type Queue struct {
	Name string
	Tally
	Depth  engine.Depth
	Oldest job.Millis // how long the longest waiting of the oldest ready jobs has waited; 0 = none is ready
	Ages   Ages
	StatusAges
	Paused  bool
	InTurns bool // its groups are given out in turns
	Held    bool
	Breaker job.BreakerState
}

// Merge adds what happened and what there is in another queue.
func (q *Queue) Merge(o *Queue) {
	q.add(&o.Tally)
	q.addDepth(o.Depth)
}

func (q *Queue) addDepth(d engine.Depth) {
	for i, n := range d.States {
		q.Depth.States[i] += n
	}
	for i, n := range d.Status {
		q.Depth.Status[i] += n
	}
	for i, n := range d.Groups {
		q.Depth.Groups[i] += n
	}
	q.Depth.Bytes += d.Bytes
	q.Depth.Grouped += d.Grouped
	q.Depth.Leases += d.Leases
}

// Measure looks at everything. It copies counters and reads indexes in memory,
// and of each named queue that has ready jobs a few of them; no command waits
// for more than one of these steps.
func (m *Meter) Measure(ctx context.Context) Measures {
	out := m.copy()
	out.Figures = m.engine.Figures()
	out.Free, out.Total, out.Reserve = m.engine.Disk()
	out.Working = m.engine.View(ctx, out.lookAt) == nil
	for i := range out.Queues {
		if q := &out.Queues[i]; out.Working && q.Depth.States != [job.States]int64{} {
			out.Working = m.engine.View(ctx, q.measureOldest) == nil
		}
	}
	return out
}

// copy returns what is counted, by queue.
func (m *Meter) copy() (out Measures) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out.Queues = make([]Queue, 0, len(m.queues)+1)
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		out.Queues = append(out.Queues, Queue{Name: name, Tally: *m.queues[name]})
	}
	out.Other.Tally, out.Sessions.Tally, out.times = m.other, m.tasks, m.times
	return out
}

// lookAt adds what is there now.
func (m *Measures) lookAt(v store.Reader) error {
	names, err := v.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		session, err := isSession(v, name)
		if err != nil {
			return err
		}
		into := &m.Sessions
		if !session {
			into = m.queue(name)
		}
		into.addDepth(v.Depth(name))
	}
	for i := range m.Queues {
		q := &m.Queues[i]
		row, err := engine.QueueOf(v, q.Name)
		if err != nil {
			return err
		}
		q.Paused, q.Held, q.InTurns = row.Paused, row.HoldUntil > v.Now(), row.Turns
	}
	return m.guards(v)
}

// queue finds the measures a queue goes into.
func (m *Measures) queue(name string) *Queue {
	i, ok := slices.BinarySearchFunc(m.Queues, name, func(q Queue, name string) int { return strings.Compare(q.Name, name) })
	if !ok {
		return &m.Other
	}
	return &m.Queues[i]
}

// guards counts breakers and holds.
func (m *Measures) guards(v store.Reader) error {
	throttles, err := store.Rows[*job.Throttle](v, "", rowsLook)
	if err != nil {
		return err
	}
	for _, t := range throttles {
		if t.State != job.BreakerClosed || t.Forced {
			m.Breakers[t.State]++
		}
		if q := m.queue(t.Queue); t.Group == "" && q != &m.Other {
			q.Breaker = t.State
		}
	}
	held, err := v.DueRows(job.Gates, job.MaxMillis, rowsLook)
	m.HeldGroups = len(held)
	return err
}

// measureOldest looks at the first job by id in each state, and at a few ready ones.
func (q *Queue) measureOldest(v store.Reader) (err error) {
	if q.Ages, q.StatusAges, err = measureAges(v, q.Name, &q.Depth, q.InTurns); err != nil || q.Depth.States[job.Ready] == 0 {
		return err
	}
	since, err := oldestReady(v, q.Name)
	if since > 0 {
		q.Oldest = max(v.Now()-since, 1)
	}
	return err
}

// OldestReady is since when the longest waiting of the oldest ready jobs of a
// queue waits; 0 = none is ready.
func (m *Meter) OldestReady(ctx context.Context, queue string) (since job.Millis, err error) {
	err = m.engine.View(ctx, func(v store.Reader) error {
		since, err = oldestReady(v, queue)
		return err
	})
	return since, err
}

func oldestReady(v store.Reader, queue string) (since job.Millis, err error) {
	list, err := v.List(store.Filter{Queues: []string{queue}, States: []job.State{job.Ready}}, oldestLook)
	for _, j := range list {
		if at := max(j.ReadyAt, j.Created); since == 0 || at < since {
			since = at
		}
	}
	return since, err
}

// Ages are how old the oldest job of a queue is, by its state; 0 = there is none.
// Completed ones, which only wait to be forgotten, are not looked at.
type Ages [job.States]job.Millis

// StatusAges are the same by status, of a queue whose groups are given out in turns.
type StatusAges [rule.Statuses]job.Millis

// measureAges looks at the first job by id in each state, and with byStatus in each
// status, which is the oldest: one read for each that there is, however long the queue.
func measureAges(v store.Reader, queue string, there *engine.Depth, byStatus bool) (ages Ages, is StatusAges, err error) {
	f := store.Filter{Queues: []string{queue}}
	for state := job.Scheduled; state < job.States; state++ {
		if state == job.Done || there.States[state] == 0 {
			continue
		}
		f.States = []job.State{state}
		if ages[state], err = ageOfFirst(v, f); err != nil {
			return ages, is, err
		}
	}
	f.States = nil
	for status := range rule.Statuses {
		if !byStatus || there.Status[status] == 0 {
			continue
		}
		f.Statuses = []rule.Status{status}
		if is[status], err = ageOfFirst(v, f); err != nil {
			return ages, is, err
		}
	}
	return ages, is, nil
}

// ageOfFirst is how old the first job by id is that a filter chooses; 0 = there is none.
func ageOfFirst(v store.Reader, f store.Filter) (job.Millis, error) {
	list, err := v.List(f, 1)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return max(v.Now()-list[0].Created, 1), nil
}

// Queue is a queue as Measure tells of it, and the ages of its oldest jobs.
// own: it is counted by name since the start of the process; else only what there is
// now is told.
func (m *Meter) Queue(ctx context.Context, name string) (q Queue, own bool, err error) {
	q.Name = name
	q.Tally, own = m.named(name)
	err = m.engine.View(ctx, func(v store.Reader) error {
		q.Depth = v.Depth(name)
		row, err := engine.QueueOf(v, name)
		if err == nil {
			q.InTurns = row.Turns
			q.Ages, q.StatusAges, err = measureAges(v, name, &q.Depth, q.InTurns)
		}
		return err
	})
	return q, own, err
}

// named is the tally of a queue that has one of its own.
func (m *Meter) named(queue string) (Tally, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.queues[queue]
	if t == nil {
		return Tally{}, len(m.queues) < m.Named
	}
	return *t, true
}
