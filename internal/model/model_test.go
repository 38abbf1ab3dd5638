// Package model holds a deliberately dumb model of the engine, written from
// spec/core.md, and a test that lets the same random history happen to the
// model and to the engine on every store. The model keeps jobs in a map, finds
// everything by looking at all of them, and shares nothing with the engine but
// the nouns of package job. Numbers that only the engine can draw, ids and
// tokens, are told to the model; everything else it must come to by itself.
package model

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Settings of the server under test.
const (
	reattach    = 8 * job.Second
	idempotency = 12 * job.Second
	graceDelay  = 6 * job.Second
	retainDead  = 15 * job.Second
)

// model is what the engine should be.
type model struct {
	now      job.Millis
	start    uint32 // of the server, counted as in its tokens
	seq      int64  // the latest line position drawn
	jobs     map[job.ID]*job.Job
	queues   map[string]*job.Queue
	groups   map[string]*job.Gate                 // by job.GateKey
	away     map[string]job.Millis                // named holders without a connection: when they lapse
	receipts map[string]receipt                   // by queue and idempotency key
	streams  map[string]*stream                   // open ones, by the one queue each reads
	drawn    func(queue, group string) job.Millis // when the engine ends its hold, which has jitter
	made     map[job.ID][]byte                    // payloads, with what jobs took in
	results  map[job.ID][]byte                    // of those that are done
	budgets  map[string]int64                     // units of each
	stats    engine.Stats                         // since the start
	folded   uint64                               // the same
	locks    map[string]*namedLock
}

type receipt struct {
	content engine.NewJob
	id      job.ID
	expires job.Millis
}

type stream struct {
	holder   string
	kind     job.HolderKind
	prefetch int
	awaits   int // jobs that it held when it came back, to be handed to it again
}

func newModel(now job.Millis, queues []*job.Queue) *model {
	m := &model{
		now: now, start: 1,
		jobs: map[job.ID]*job.Job{}, queues: map[string]*job.Queue{}, groups: map[string]*job.Gate{},
		away: map[string]job.Millis{}, receipts: map[string]receipt{}, streams: map[string]*stream{},
		made: map[job.ID][]byte{}, locks: map[string]*namedLock{}, results: map[job.ID][]byte{},
	}
	for _, q := range queues {
		set := *q
		m.queues[q.Name] = &set
	}
	return m
}

func (m *model) draw() int64 { m.seq++; return m.seq }

// sorted returns the jobs that are asked for, oldest first.
func (m *model) sorted(want func(*job.Job) bool) (list []*job.Job) {
	for _, j := range m.jobs {
		if want(j) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *job.Job) int { return a.ID.Compare(b.ID) })
	return list
}

// before is the order of the line: priority, band, seq, id.
func before(a, b *job.Job) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Band, b.Band),
		cmp.Compare(a.Seq, b.Seq), a.ID.Compare(b.ID))
}

// inGroup is the order inside an ordered group: priority and place do not count.
// Its rank does, if it has one.
func inGroup(a, b *job.Job) int { return cmp.Or(cmp.Compare(sortOf(a), sortOf(b)), a.ID.Compare(b.ID)) }

func sortOf(j *job.Job) int64 {
	if j.Ranked {
		return j.Rank
	}
	return j.Seq
}

func wanted(j *job.Job) bool {
	return j.Park != pausePark && (j.State == job.Ready || j.State == job.Leased && len(j.Leases) < int(j.CopiesWanted))
}

// members are the jobs of a group that are open, or dead and blocking.
func (m *model) members(queue, group string) []*job.Job {
	return m.sorted(func(j *job.Job) bool {
		return j.Queue == queue && j.Group == group && (j.State.Open() || j.BlocksGroup)
	})
}

func (m *model) group(queue, group string) *job.Gate {
	key := job.GateKey(queue, group)
	if m.groups[key] == nil {
		m.groups[key] = &job.Gate{Queue: queue, Group: group}
	}
	return m.groups[key]
}

// forget drops what is known of a group that has no members and is not held.
func (m *model) forget() {
	for key, g := range m.groups {
		if g.Hold == 0 && !g.Paused && g.Group != "" && len(m.members(g.Queue, g.Group)) == 0 {
			delete(m.groups, key)
		}
	}
}

// offered reports whether the job stands in line. Of a group at most one member
// does, for all of them.
func (m *model) offered(j *job.Job) bool {
	q := m.queues[j.Queue]
	if !wanted(j) || q.Paused || q.HoldUntil > 0 {
		return false
	}
	if j.Group == "" {
		return true
	}
	if g := m.group(j.Queue, j.Group); g.Hold > 0 || g.Park != "" || g.Paused { // all of it, whoever arrives and whatever its place
		return false
	}
	members := m.members(j.Queue, j.Group)
	running, blocked := 0, false
	for _, o := range members {
		running += len(o.Leases)
		blocked = blocked || o.BlocksGroup
	}
	if q.Order == job.OrderStrict || q.Turns { // the head or nobody
		return running == 0 && slices.MinFunc(members, inGroup) == j
	}
	order := before
	if q.Order == job.OrderStart {
		order = inGroup
	}
	waiting := slices.DeleteFunc(members, func(o *job.Job) bool { return !wanted(o) })
	return !blocked && (q.Concurrency == 0 || running < q.Concurrency) && slices.MinFunc(waiting, order) == j
}

// holds are the leases of a holder.
func (m *model) holds(holder string) (list []job.Lease) {
	for _, j := range m.jobs {
		for _, l := range j.Leases {
			if l.Holder == holder {
				list = append(list, l)
			}
		}
	}
	return list
}

// next is the job that a holder gets now, nil if there is none.
func (m *model) next(holder string, queues []string) *job.Job {
	held := m.holds(holder)
	if slices.ContainsFunc(held, func(l job.Lease) bool { return l.Exclusive }) {
		return nil
	}
	line := m.sorted(func(j *job.Job) bool {
		return (len(queues) == 0 || slices.Contains(queues, j.Queue)) && !j.HeldBy(holder) &&
			!m.queues[j.Queue].Turns && m.offered(j)
	})
	if len(line) == 0 {
		return nil
	}
	first := m.firstWithUnits(line)
	if first != nil && first.Isolated && len(held) > 0 { // who has something is emptied for it: here only calls that do not wait meet such jobs
		return nil
	}
	return first
}
