// Package meter is the part that counts what happens to jobs, for monitoring, and tells
// it to those who listen.
//
// All of it is memory, and begins anew with each start of the server.
package meter

import (
	"cmp"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// The edges of what is measured beside spans and tries. Writing is in nanoseconds, for
// what the disk does.
var (
	Writing = histogram.Edges{
		100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
		100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000,
	}
	Sizes = histogram.Edges{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

// namedQueues are measured by name where Meter says nothing.
const namedQueues = 200

// Meter measures an engine. The committer adds to it once for each batch, and who reads
// it copies it: neither waits for more than that.
type Meter struct {
	Named int // queues that are measured by name, the others together; 0 = 200

	engine *engine.Engine
	stage  stage
	hub    hub

	mu     sync.Mutex // guards what follows
	queues map[string]*Tally
	other  Tally // of all further queues
	tasks  Tally // of all sessions: their names are ids
	recent recent
	times  times
}

// times is how long transactions take.
type times struct {
	Commit histogram.Histogram // Writing: a transaction, until its log entry is handed on
	Sync   histogram.Histogram // Writing: from there until it is on disk
	Batch  histogram.Histogram // Sizes: commands in one transaction
}

// Join implements engine.Part.
func (m *Meter) Join(e *engine.Engine) engine.Hooks {
	m.engine, m.Named = e, cmp.Or(m.Named, namedQueues)
	m.queues = map[string]*Tally{}
	m.recent = recent{max: e.QueuesMax(), queues: map[string]*lately{}}
	return engine.Hooks{
		Load:     m.load,
		Begin:    func() { m.stage.reset(&m.hub) },
		Stepped:  m.stepped,
		Rejected: m.rejected,
		Publish:  m.publish,
		Announce: m.announce,
		Timed:    m.timed,
	}
}

// load makes queues known that were there at the start, so that they keep their names
// whatever happens first.
func (m *Meter) load(v store.Reader) error {
	names, err := v.Names()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent.since = cmp.Or(m.recent.since, m.engine.Steady())
	for _, name := range names {
		session, err := isSession(v, name)
		if err != nil {
			return err
		}
		if !session {
			m.of(name)
		}
	}
	return nil
}

// isSession reports whether a queue is one, whose name is an id.
func isSession(v store.Reader, name string) (bool, error) {
	q, err := engine.QueueOf(v, name)
	return err == nil && q.Grid != nil, err
}

// stage is what one run of a batch has seen. It counts for nothing until the
// transaction has been applied, for it may run twice. Its memory is used again.
type stage struct {
	names   []string
	tallies []*Tally // some more than names, for later
	at      map[string]int
	last    *Tally
	name    string // of last
	steady  job.Millis
	events  []Event // nil where nobody listens
	tell    bool    // somebody listens to all of them
	trace   bool    // somebody listens to those of traces
}

func (s *stage) reset(h *hub) {
	s.clear()
	s.events, s.tell, s.trace = nil, h.listening.Load() > 0, h.tracing.Load() > 0
}

func (s *stage) clear() {
	for i := range s.names {
		*s.tallies[i] = Tally{}
	}
	s.names, s.last, s.name = s.names[:0], nil, ""
	clear(s.at)
}

// of returns the tally of a queue. Jobs of one queue mostly follow each other.
func (s *stage) of(queue string) *Tally {
	if s.last != nil && s.name == queue {
		return s.last
	}
	i, ok := s.at[queue]
	if !ok {
		if s.at == nil {
			s.at = map[string]int{}
		}
		i = len(s.names)
		s.names = append(s.names, queue)
		if i == len(s.tallies) {
			s.tallies = append(s.tallies, new(Tally))
		}
		s.at[queue] = i
	}
	s.last, s.name = s.tallies[i], queue
	return s.last
}

// stepped counts what a step did, and keeps it for those who listen.
func (m *Meter) stepped(tx *engine.Tx, c rule.Command, old *job.Job, eff rule.Effect) error {
	s, j := &m.stage, cmp.Or(eff.Job, eff.Left, old)
	t := s.of(j.Queue)
	t.tasks, s.steady = j.Door == job.DoorGrid, tx.Steady()
	t.count(&c, old, j, &eff, tx.Now())
	if old != nil && old.Group != "" && (len(eff.Ended) > 0 || eff.Late) {
		q, err := tx.Queue(old.Queue)
		if err != nil {
			return err
		}
		if q.Turns {
			t.Turns.count(old, j, &eff, tx.Now())
		}
	}
	traced := s.trace && j.Sampled()
	if !s.tell && !traced {
		return nil
	}
	if ev, ok := eventOf(&c, old, j, &eff, tx.Now()); ok {
		if traced {
			ev.Trace = traceOf(&c, old, j, &eff)
		}
		s.events = append(s.events, ev)
	}
	return nil
}

// rejected counts a job that was set aside.
func (m *Meter) rejected(tx *engine.Tx, old *job.Job, eff rule.Effect) error {
	return m.stepped(tx, rule.Command{Verb: rule.Cancel, Reason: job.Rejected}, old, eff)
}

// of returns the tally of a queue: its own for the first that were seen, else the common
// one. The caller holds mu.
func (m *Meter) of(queue string) *Tally {
	if t := m.queues[queue]; t != nil {
		return t
	}
	if len(m.queues) >= m.Named {
		return &m.other
	}
	t := new(Tally)
	m.queues[queue] = t
	return t
}

// publish takes over what a batch did.
func (m *Meter) publish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, name := range m.stage.names {
		t, into := m.stage.tallies[i], &m.tasks
		if !t.tasks {
			into = m.of(name)
		}
		into.add(t)
		m.recent.add(name, m.stage.steady, t)
	}
	m.stage.clear()
}

func (m *Meter) timed(commands int, commit, sync time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times.Batch.Observe(&Sizes, int64(commands))
	m.times.Commit.Observe(&Writing, int64(commit))
	m.times.Sync.Observe(&Writing, int64(sync))
}
