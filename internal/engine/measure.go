package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
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
	Queues   []QueueMeasures // by name, those that have a name of their own
	Other    QueueMeasures   // all others together, without a name
	Sessions QueueMeasures   // all sessions together
	Stats    Stats
	Holders  [3]int // connected streams by job.HolderKind; unary: calls that wait
	Leases   int

	Commit histogram.Histogram // Writing: a transaction, until its log entry is handed on
	Sync   histogram.Histogram // Writing: from there until it is on disk
	Batch  histogram.Histogram // Sizes: commands in one transaction

	Breakers   [4]int // by job.BreakerState, of queues and groups; closed: those that are forced so
	HeldGroups int

	Working     bool // the store takes work; if not, what is there now is not known
	Free, Total int64
	Reserve     int64
}

// QueueMeasures is a queue.
type QueueMeasures struct {
	Name string
	Tally
	Depth  Depth
	Oldest job.Millis // how long the longest waiting of the oldest ready jobs has waited; 0 = none is ready
	Ages   Ages
	StatusAges
	Paused  bool
	InTurns bool // its groups are given out in turns
	Held    bool
	Breaker job.BreakerState
}

// Merge adds what happened and what there is in another queue.
func (q *QueueMeasures) Merge(o *QueueMeasures) {
	q.add(&o.Tally)
	q.addDepth(o.Depth)
}

func (q *QueueMeasures) addDepth(d Depth) {
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

// Words are the labels of counts, and of which family a count is.
func (c Count) Words() (family, word string) {
	switch {
	case c == Enqueued:
		return "enqueued", ""
	case c == Taken:
		return "taken", ""
	case c < RetryError:
		return "settled", [...]string{"ok", "retry", "dead", "release"}[c-SettledOK]
	case c < EndedLapse:
		return "retries", retryWords[c-RetryError]
	case c < DeadExhausted:
		return "ended", endingWords[c-EndedLapse]
	case c == JobsCancelled:
		return "cancelled", ""
	case c < Discarded:
		return "dead", (job.Exhausted + job.Reason(c-DeadExhausted)).String()
	}
	return "discarded", ""
}

// Measure looks at everything. It copies counters and reads indexes in memory,
// and of each named queue that has ready jobs a few of them; no command waits
// for more than one of these steps.
func (e *Engine) Measure(ctx context.Context) Measures {
	m := e.meter.copy()
	if free, total, err := e.store.Free(); err == nil {
		m.Free, m.Total, m.Reserve = free, total, e.reserve(total)
	}
	m.Working = e.state.Load() == nil && e.measureStore(ctx, &m) == nil
	return m
}

// copy returns what is counted, by queue.
func (m *meter) copy() (out Measures) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out.Queues = make([]QueueMeasures, 0, len(m.queues)+1)
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		out.Queues = append(out.Queues, QueueMeasures{Name: name, Tally: *m.queues[name]})
	}
	out.Other.Tally, out.Sessions.Tally = m.other, m.tasks
	out.Stats, out.Holders, out.Leases = m.stats, m.holders, m.leases
	out.Commit, out.Sync, out.Batch = m.commit, m.sync, m.batch
	return out
}

// measureStore adds what is there now.
func (e *Engine) measureStore(ctx context.Context, m *Measures) error {
	err := e.store.View(ctx, func(v store.Reader) (err error) {
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
			row, err := QueueOf(v, m.Queues[i].Name)
			if err != nil {
				return err
			}
			m.Queues[i].Paused, m.Queues[i].Held, m.Queues[i].InTurns = row.Paused, row.HoldUntil > v.Now(), row.Turns
		}
		return m.guards(v)
	})
	for i := range m.Queues {
		if q := &m.Queues[i]; err == nil && q.Depth.States != [job.States]int64{} {
			err = e.store.View(ctx, q.measureOldest)
		}
	}
	return err
}

// isSession reports whether a queue is one, whose name is an id.
func isSession(v store.Reader, name string) (bool, error) {
	q, err := QueueOf(v, name)
	return err == nil && q.Grid != nil, err
}

// queue finds the measures a queue goes into.
func (m *Measures) queue(name string) *QueueMeasures {
	i, ok := slices.BinarySearchFunc(m.Queues, name, func(q QueueMeasures, name string) int {
		switch {
		case q.Name < name:
			return -1
		case q.Name > name:
			return 1
		}
		return 0
	})
	if !ok {
		return &m.Other
	}
	return &m.Queues[i]
}

// guards counts breakers and holds.
func (m *Measures) guards(v store.Reader) error {
	rows, err := v.Rows(job.Throttles, "", rowsLook)
	if err != nil {
		return err
	}
	for _, row := range rows {
		t := row.(*job.Throttle)
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
func (q *QueueMeasures) measureOldest(v store.Reader) (err error) {
	if q.Ages, q.StatusAges, err = measureAges(v, q.Name, &q.Depth, q.InTurns); err != nil || q.Depth.States[job.Ready] == 0 {
		return err
	}
	list, err := v.List(store.Filter{Queues: []string{q.Name}, States: []job.State{job.Ready}}, oldestLook)
	for _, j := range list {
		q.Oldest = max(q.Oldest, v.Now()-max(j.ReadyAt, j.Created), 1)
	}
	return err
}
