package embedded

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// match is a filter with its names turned into numbers.
type match struct {
	states [job.States]bool
	is     [rule.Statuses]bool
	queues []uint32
	types  []uint32
	groups []uint32 // of the dead
	none   bool     // names something that does not exist
}

func (x *index) match(f *store.Filter) match {
	var m match
	for _, st := range f.States {
		m.states[st] = true
	}
	if len(f.States) == 0 {
		m.states = [job.States]bool{true, true, true, true, true, true}
	}
	for _, s := range f.Statuses {
		m.is[s] = true
	}
	if len(f.Statuses) == 0 {
		m.is = [rule.Statuses]bool{true, true, true, true, true, true, true, true}
	}
	numbers := func(texts []string) (out []uint32) {
		for _, t := range texts {
			if n, ok := x.names.known(t); ok {
				out = append(out, n)
			}
		}
		m.none = m.none || len(texts) > 0 && len(out) == 0
		return out
	}
	m.queues, m.types = numbers(f.Queues), numbers(f.Types)
	for _, print := range f.Prints {
		if g := x.dead.groups[print]; g != nil {
			m.groups = append(m.groups, g.num)
		}
	}
	if len(f.Prints) > 0 {
		m.none = m.none || len(m.groups) == 0 || !m.states[job.Dead]
		m.states = [job.States]bool{job.Dead: true}
	}
	return m
}

func (m *match) takes(l *listed) bool {
	return m.states[l.state] && m.is[l.is] &&
		(m.queues == nil || slices.Contains(m.queues, l.queue)) &&
		(m.types == nil || slices.Contains(m.types, l.typ)) &&
		(m.groups == nil || slices.Contains(m.groups, l.group))
}

// list returns ids that match, by id, until each says stop.
func (x *index) list(f *store.Filter, each func(job.ID) (more bool)) {
	m := x.match(f)
	switch {
	case m.none:
	case len(f.IDs) > 0:
		x.listNamed(f, &m, each)
	case len(f.States)+len(f.Statuses)+len(f.Queues)+len(f.Prints) > 0:
		x.listSome(f, &m, each)
	default:
		cur := begin(&x.listing, listed{id: f.From}, f)
		for l, ok := cur.pass(f.Desc); ok; l, ok = cur.pass(f.Desc) {
			if m.takes(&l) && !each(l.id) {
				return
			}
		}
	}
}

// begin returns a cursor at which a page begins: beyond From, or at the end
// where its order starts.
func begin[T before[T]](s *sorted[T], from T, f *store.Filter) cursor[T] {
	switch {
	case f.From.IsZero() && f.Desc:
		return s.end()
	case f.From.IsZero():
		return s.start()
	}
	cur := s.from(from)
	if at, ok := cur.item(); ok && !f.Desc && !from.Before(at) {
		cur.next()
	}
	return cur
}

// shelves are the lists of each queue: its jobs by state and status, as far as a
// job can be both.
var shelves = [...]struct {
	state job.State
	is    rule.Status
}{
	{job.Scheduled, rule.StatusWaiting},
	{job.Scheduled, rule.StatusRetrying},
	{job.Scheduled, rule.StatusPaused},
	{job.Ready, rule.StatusWaiting},
	{job.Ready, rule.StatusRetrying},
	{job.Ready, rule.StatusPaused},
	{job.Leased, rule.StatusRunning},
	{job.Done, rule.StatusDone},
	{job.Dead, rule.StatusDead},
	{job.Dead, rule.StatusBlocking},
	{job.Dead, rule.StatusCancelled},
}

// shelfNumbers are the places of the pairs among the shelves.
var shelfNumbers = func() (n [job.States][rule.Statuses]uint8) {
	for i, s := range shelves {
		n[s.state][s.is] = uint8(i)
	}
	return n
}()

func shelfOf(j *job.Job) uint8 { return shelfNumbers[j.State][rule.StatusOf(j)] }

// listSome lists some queues, states or statuses, by merging one sorted list for
// each queue and shelf. So what it costs is what is on the page, however rare, not
// how many jobs it is found among.
func (x *index) listSome(f *store.Filter, m *match, each func(job.ID) bool) {
	w := walks[placed]{down: f.Desc}
	for _, q := range x.queuesOf(m) {
		for i, s := range shelves {
			if m.states[s.state] && m.is[s.is] {
				w.add(begin(&q.jobs[i], placed{id: f.From}, f))
			}
		}
	}
	heap.Init(&w)
	for len(w.list) > 0 {
		p := w.list[0].item
		found := m.types == nil || slices.Contains(m.types, p.typ)
		if found && m.groups != nil {
			found = m.takes(x.listing.at(listed{id: p.id}))
		}
		if found && !each(p.id) {
			return
		}
		w.advance()
	}
}

// queuesOf returns the queues that a filter names, each once; all if it names none.
func (x *index) queuesOf(m *match) []*queue {
	if m.queues == nil {
		return slices.Collect(maps.Values(x.queues))
	}
	var out []*queue
	for _, n := range unique(m.queues) {
		if int(n) < len(x.order) && x.order[n] != nil {
			out = append(out, x.order[n])
		}
	}
	return out
}

// walk is one of the lists that are merged, at the item that comes next.
type walk[T before[T]] struct {
	item T
	cur  cursor[T]
}

// walks is a heap of them: in front is the one whose item comes first.
type walks[T before[T]] struct {
	list []walk[T]
	down bool
}

// add takes a list in, unless it is at its end.
func (w *walks[T]) add(cur cursor[T]) {
	if p, ok := cur.pass(w.down); ok {
		w.list = append(w.list, walk[T]{p, cur})
	}
}

// advance passes the item in front.
func (w *walks[T]) advance() {
	front := &w.list[0]
	var ok bool
	if front.item, ok = front.cur.pass(w.down); ok {
		heap.Fix(w, 0)
		return
	}
	heap.Pop(w)
}

func (w *walks[T]) Len() int           { return len(w.list) }
func (w *walks[T]) Less(i, j int) bool { return w.list[i].item.Before(w.list[j].item) != w.down }
func (w *walks[T]) Swap(i, j int)      { w.list[i], w.list[j] = w.list[j], w.list[i] }
func (w *walks[T]) Push(x any)         { w.list = append(w.list, x.(walk[T])) }
func (w *walks[T]) Pop() any           { w.list = w.list[:len(w.list)-1]; return nil }

func (x *index) listNamed(f *store.Filter, m *match, each func(job.ID) bool) {
	ids := slices.Clone(f.IDs)
	slices.SortFunc(ids, func(a, b job.ID) int {
		if f.Desc {
			return b.Compare(a)
		}
		return a.Compare(b)
	})
	for _, id := range slices.Compact(ids) {
		l := x.listing.at(listed{id: id})
		if l == nil || !m.takes(l) {
			continue
		}
		past := f.From.IsZero() || f.Desc && id.Before(f.From) || !f.Desc && f.From.Before(id)
		if past && !each(id) {
			return
		}
	}
}

// counted answers a count from the counters; ok = false means that queue and
// type are both given, so the lists of the queue must be walked.
func (x *index) counted(f *store.Filter) (n int64, ok bool) {
	m := x.match(f)
	if m.none {
		return 0, true
	}
	if len(f.IDs)+len(f.Statuses) > 0 || m.queues != nil && m.types != nil || m.groups != nil && (m.queues != nil || m.types != nil) {
		return 0, false
	}
	add := func(states *[job.States]int64) {
		for st := range states {
			if m.states[st] {
				n += states[st]
			}
		}
	}
	switch {
	case m.groups != nil:
		if !m.states[job.Dead] {
			return 0, true
		}
		prints := slices.Clone(f.Prints)
		slices.Sort(prints)
		for _, print := range slices.Compact(prints) {
			if g := x.dead.groups[print]; g != nil {
				n += int64(g.died.len())
			}
		}
	case m.types != nil:
		for t := range slices.Values(unique(m.types)) {
			if states := x.types[t]; states != nil {
				add(states)
			}
		}
	default:
		for _, q := range x.queuesOf(&m) {
			add(&q.depth.States)
		}
	}
	return n, true
}

// hidden counts the jobs that match and whose time to be purged has come: few,
// unless the clock was told to wait.
func (x *index) hidden(f *store.Filter) (n int64) {
	if f.Alive == 0 {
		return 0
	}
	m := x.match(f)
	if m.none {
		return 0
	}
	for cur := x.timers[rule.HandPurge].start(); ; cur.next() {
		t, ok := cur.item()
		if !ok || t.at > f.Alive {
			return n
		}
		named := len(f.IDs) == 0 || slices.Contains(f.IDs, t.id)
		if l := x.listing.at(listed{id: t.id}); named && l != nil && m.takes(l) {
			n++
		}
	}
}

func unique(list []uint32) []uint32 {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
