package engine

import (
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Count is one of the things that are counted for each queue.
type Count uint8

// What is counted.
const (
	Enqueued Count = iota
	Taken
	SettledOK
	SettledRetry
	SettledDead
	SettledRelease
	RetryError // why a job is to run again: the failure's kind
	RetryTimeout
	RetryHTTP4xx
	RetryHTTP5xx
	RetryExit
	RetryGrace // not charged
	RetryLost  // its engine was, where that is charged
	EndedLapse // how a lease ended that nobody settled
	EndedDisconnect
	EndedRestart
	EndedStartTimeout
	EndedRunTimeout
	EndedSupersede
	EndedCancel
	EndedTurn
	EndedEvict
	EndedPreempt
	EndedWithdraw
	EndedUndelivered
	DeadExhausted // why a job died
	DeadKilled
	DeadExpired
	DeadLost
	DeadRejected
	DeadEvicted
	JobsCancelled // gave up by an operator, or with their session: no deaths
	Discarded     // died without being kept: retention.dead is 0
	Counts        // how many there are
)

// The edges of what is measured beside spans. Writing is in nanoseconds, for what the
// disk does.
var (
	Writing = histogram.Edges{
		100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
		100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000,
	}
	Sizes = histogram.Edges{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

// Tally is what happened in a queue since the start.
type Tally struct {
	N    [Counts]uint64
	Wait histogram.Histogram // from the time a job was due to its first take
	Run  histogram.Histogram // from the start of a run to its settle

	Turns TurnTally

	tasks bool // those of a session
}

func (t *Tally) add(u *Tally) {
	for i, n := range u.N {
		t.N[i] += n
	}
	t.Wait.Add(&u.Wait)
	t.Run.Add(&u.Run)
	t.Turns.add(&u.Turns)
}

// stage is what one run of a batch has seen. It counts for nothing until the
// transaction has been applied, for it may run twice. Its memory is used again.
type stage struct {
	names   []string
	tallies []*Tally // some more than names, for later
	at      map[string]int
	last    *Tally
	name    string  // of last
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

// note counts what a step did, and tells those who listen.
func (r *Tx) note(c *rule.Command, old *job.Job, eff *rule.Effect) {
	j := eff.Job
	if j == nil {
		if j = eff.Left; j == nil {
			j = old
		}
	}
	s := &r.c.stage
	t := s.of(j.Queue)
	t.tasks = j.Door == job.DoorGrid
	switch c.Verb {
	case rule.Put:
		t.N[Enqueued]++
	case rule.Take:
		t.N[Taken]++
		if old.Deliveries == 0 {
			t.Wait.Observe(&histogram.Spans, max(0, int64(r.now-max(old.ReadyAt, old.Created))))
		}
	case rule.SettleOK:
		t.N[SettledOK]++
		r.noteRun(t, c, eff)
	case rule.SettleRetry:
		t.N[SettledRetry]++
		r.noteRun(t, c, eff)
		if eff.Gone == job.None && j.State != job.Dead {
			t.N[retryReason(c, old, j)]++
		}
	case rule.SettleDead:
		t.N[SettledDead]++
		r.noteRun(t, c, eff)
	case rule.SettleRelease:
		t.N[SettledRelease]++
		r.noteRun(t, c, eff)
	case rule.Lapse, rule.Cancel:
		for i := max(0, len(j.Ended)-len(eff.Ended)); i < len(j.Ended); i++ {
			t.N[endingCount(j.Ended[i].How)]++
		}
		if c.Verb == rule.Lapse && eff.Gone == job.None && (j.Attempts > old.Attempts || j.Suppressed > old.Suppressed) && j.State != job.Dead {
			if n := len(eff.Failures); n > 0 && !eff.Failures[n-1].Timeout {
				t.N[RetryLost]++
			} else {
				t.N[RetryTimeout]++
			}
		}
	case rule.Extend: // a run that commits ends the others
		t.N[EndedSupersede] += uint64(len(eff.Ended))
	case rule.Promote, rule.Expire, rule.Offer, rule.Revive, rule.Patch, rule.Purge, rule.Verbs:
	}
	if old != nil {
		r.noteTurn(t, old, j, eff)
	}
	if died(old, eff) {
		if j.Reason != job.Alive {
			t.N[DeadExhausted+Count(j.Reason-job.Exhausted)]++
		}
		if eff.Gone == job.Dead && j.Reason != job.ReasonCancelled {
			t.N[Discarded]++
		}
	}
	traced := s.trace && j.Sampled()
	if !s.tell && !traced {
		return
	}
	if ev, ok := eventOf(c, old, j, eff, r.now); ok {
		if traced {
			ev.Trace = traceOf(c, old, j, eff)
		}
		s.events = append(s.events, ev)
	}
}

// died reports whether the step made the job dead.
func died(old *job.Job, eff *rule.Effect) bool {
	if old == nil || old.State == job.Dead {
		return false
	}
	return eff.Gone == job.Dead || eff.Job != nil && eff.Job.State == job.Dead
}

// noteRun measures the run of who spoke, who stands last. What a worker says
// of its start is believed only inside its lease.
func (r *Tx) noteRun(t *Tally, c *rule.Command, eff *rule.Effect) {
	t.N[EndedSupersede] += uint64(len(eff.Voided))
	if len(eff.Ended) == 0 || eff.Late { // nobody knows when a late one ended
		return
	}
	l := &eff.Ended[len(eff.Ended)-1]
	began := max(l.Since, l.Started, c.RunStart)
	t.Run.Observe(&histogram.Spans, max(0, int64(r.now-began)))
}

func retryReason(c *rule.Command, old, j *job.Job) Count {
	f := &c.Failure
	switch {
	case j.Suppressed > old.Suppressed:
		return RetryGrace
	case f.Timeout:
		return RetryTimeout
	case f.Status >= 500:
		return RetryHTTP5xx
	case f.Status >= 400:
		return RetryHTTP4xx
	case f.ExitCode != 0:
		return RetryExit
	}
	return RetryError
}

func endingCount(how job.Ending) Count {
	switch how {
	case job.ByDisconnect:
		return EndedDisconnect
	case job.ByRestart:
		return EndedRestart
	case job.ByRelease: // nobody said it: the start timeout
		return EndedStartTimeout
	case job.ByTimeout:
		return EndedRunTimeout
	case job.BySupersede:
		return EndedSupersede
	case job.ByCancel:
		return EndedCancel
	case job.ByTurn:
		return EndedTurn
	case job.ByEvict:
		return EndedEvict
	case job.ByPreempt:
		return EndedPreempt
	case job.ByWithdraw:
		return EndedWithdraw
	case job.ByUndelivered:
		return EndedUndelivered
	case job.ByLapse, job.ByOK, job.ByRetry, job.ByDead, job.Endings:
	}
	return EndedLapse
}

// meter is what the engine has counted since its start. The committer adds to
// it once for each batch, and who reads it copies it: neither waits for more
// than that.
type meter struct {
	mu      sync.Mutex
	max     int // queues with a tally of their own
	queues  map[string]*Tally
	other   Tally // of all further queues
	tasks   Tally // of all sessions: their names are ids
	recent  recent
	stats   Stats
	holders [3]int // connected streams by job.HolderKind; of unary calls those that wait
	leases  int
	commit  histogram.Histogram // Writing: one transaction, until the log has it in memory
	sync    histogram.Histogram // Writing: then until it is on disk
	batch   histogram.Histogram // Sizes: commands in one transaction
}

// MetricsQueues is how many queues are measured by name where Options say
// nothing.
const MetricsQueues = 200

// of returns the tally of a queue: its own for the first max queues that were
// seen, else the common one. The caller holds mu.
func (m *meter) of(queue string) *Tally {
	if t := m.queues[queue]; t != nil {
		return t
	}
	if len(m.queues) >= m.max {
		return &m.other
	}
	t := new(Tally)
	m.queues[queue] = t
	return t
}

// publish takes over what a batch did. The caller is the committer.
func (m *meter) publish(c *committer, steady job.Millis) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, name := range c.stage.names {
		t, into := c.stage.tallies[i], &m.tasks
		if !t.tasks {
			into = m.of(name)
		}
		into.add(t)
		m.recent.add(name, steady, t)
	}
	c.stage.clear()
	m.stats, m.leases, m.holders = c.stats, c.leases, c.streams
}

// see makes queues known that were there at the start, so that they keep their
// names whatever happens first.
func (m *meter) see(names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		m.of(name)
	}
}

// noteCommit measures one transaction.
func (m *meter) noteCommit(took time.Duration, commands int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commit.Observe(&Writing, int64(took))
	m.batch.Observe(&Sizes, int64(commands))
}

// noteSync measures one wait for the disk.
func (m *meter) noteSync(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sync.Observe(&Writing, int64(took))
}
