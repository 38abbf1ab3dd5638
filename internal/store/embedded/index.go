package embedded

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// index is everything about jobs that is kept in memory: lines, gates, timers,
// holders, the listing and counts. It is computed from rule.EntriesOf alone,
// so it can be dropped and loaded again at any time. It holds no job.
//
// Guarded by Store.mu.
type index struct {
	names   *names
	queues  map[string]*queue
	order   []*queue // by name number, to find a queue from a listing entry
	listing sorted[listed]
	timers  [rule.Hands]sorted[timer]
	held    map[string]map[job.ID]struct{}
	shared  map[job.ID]int // payload references, where they are not exactly one
	types   map[uint32]*[job.States]int64
	heads   []lineHead // scratch of ready
}

// listed is an entry of the listing index: enough to page by queue, state and
// type without reading a job.
type listed struct {
	id    job.ID
	queue uint32
	typ   uint32
	state job.State
	own   bool // its payload is kept under its own id
}

// Before implements before: by id.
func (l listed) Before(m listed) bool { return l.id.Before(m.id) }

type timer struct {
	at job.Millis
	id job.ID
}

// Before implements before: soonest first.
func (t timer) Before(u timer) bool {
	return t.at < u.at || t.at == u.at && t.id.Before(u.id)
}

// queue is what the index knows of a queue.
type queue struct {
	name  string
	num   uint32
	row   *job.Queue
	lines []*line
	gates map[string]*gate
	depth store.Depth
}

// line is one class of a queue, in line order. Of a group, only the member its
// gate stands for is in it.
type line struct {
	class    rule.Class
	requires []job.Requirement
	jobs     sorted[rule.Pos]
}

// gate is a group: all its members, those that want a holder, and its place.
type gate struct {
	row      *job.Gate
	order    job.Order
	live     int
	blockers int
	members  sorted[rule.Pos]
	wanting  sorted[wanting]
	at       wanting // where it stands
	stands   bool
}

// wanting is a member that wants a holder: its place inside the group, and
// what its place in the queue's line would be.
type wanting struct {
	inner    rule.Pos
	priority uint16
	band     uint8
	line     uint32 // in queue.lines
}

// Before implements before: by the place inside the group.
func (w wanting) Before(x wanting) bool { return w.inner.Before(x.inner) }

func (w wanting) pos() rule.Pos {
	return rule.Pos{Seq: w.inner.Seq, Priority: w.priority, Band: w.band, ID: w.inner.ID}
}

func newIndex(n *names) *index {
	return &index{
		names: n, queues: map[string]*queue{}, held: map[string]map[job.ID]struct{}{},
		shared: map[job.ID]int{}, types: map[uint32]*[job.States]int64{},
	}
}

// of returns the queue, made on first sight.
func (x *index) of(name string) *queue {
	if q, ok := x.queues[name]; ok {
		return q
	}
	q := &queue{name: name, num: x.names.of(name), row: job.NewQueue(name), gates: map[string]*gate{}}
	x.queues[name] = q
	for int(q.num) >= len(x.order) {
		x.order = append(x.order, nil)
	}
	x.order[q.num] = q
	return q
}

func (q *queue) line(c rule.Class, requires []job.Requirement) (uint32, *line) {
	for i, l := range q.lines {
		if l.class == c {
			return uint32(i), l
		}
	}
	l := &line{class: c, requires: requires}
	q.lines = append(q.lines, l)
	return uint32(len(q.lines) - 1), l
}

// move takes a job from its old entries to its new ones; nil = not there.
func (x *index) move(old, j *job.Job) {
	var a, b rule.Entries
	if old != nil {
		a = rule.EntriesOf(old)
	}
	if j != nil {
		b = rule.EntriesOf(j)
	}
	x.moveTimers(old, j, &a, &b)
	x.moveHolders(old, j)
	x.moveListing(old, j)
	// In this order: a job that leaves its group may take the same place in
	// line that its gate stood at.
	x.leaveGroup(old, j, &a, &b)
	x.moveInLine(old, j, &a, &b)
	x.enterGroup(j, &b)
}

// moveInLine moves a job that stands in line itself, not behind a gate.
func (x *index) moveInLine(old, j *job.Job, a, b *rule.Entries) {
	was, is := a.Wants && !a.Member, b.Wants && !b.Member
	if was && is && a.Pos == b.Pos && a.Class == b.Class && old.Queue == j.Queue {
		return
	}
	if was {
		_, l := x.of(old.Queue).line(a.Class, old.Requires)
		l.jobs.remove(a.Pos)
	}
	if is {
		_, l := x.of(j.Queue).line(b.Class, j.Requires)
		l.jobs.insert(b.Pos)
	}
}

func (x *index) moveTimers(old, j *job.Job, a, b *rule.Entries) {
	for h := range a.Timer {
		if a.Timer[h] == b.Timer[h] {
			continue
		}
		if a.Timer[h] != 0 {
			x.timers[h].remove(timer{a.Timer[h], old.ID})
		}
		if b.Timer[h] != 0 {
			x.timers[h].insert(timer{b.Timer[h], j.ID})
		}
	}
}

func (x *index) moveHolders(old, j *job.Job) {
	if old != nil {
		for i := range old.Leases {
			if h := old.Leases[i].Holder; j == nil || !j.HeldBy(h) {
				jobs := x.held[h]
				if delete(jobs, old.ID); len(jobs) == 0 {
					delete(x.held, h)
				}
			}
		}
	}
	if j != nil {
		for i := range j.Leases {
			h := j.Leases[i].Holder
			if x.held[h] == nil {
				x.held[h] = map[job.ID]struct{}{}
			}
			x.held[h][j.ID] = struct{}{}
		}
	}
}

// moveListing keeps the listing, the counts and the payload references.
func (x *index) moveListing(old, j *job.Job) {
	if old != nil {
		x.count(old, -1)
		if j == nil {
			x.listing.remove(listed{id: old.ID})
		}
	}
	if j == nil {
		return
	}
	x.count(j, 1)
	entry := listed{id: j.ID, queue: x.of(j.Queue).num, typ: x.names.of(j.Type), state: j.State, own: j.Payload == j.ID}
	if old == nil {
		x.listing.insert(entry)
	} else if at := x.listing.at(entry); at != nil {
		*at = entry
	}
}

func (x *index) count(j *job.Job, by int64) {
	d := &x.of(j.Queue).depth
	d.States[j.State] += by
	if j.State.Open() {
		d.Bytes += by * int64(j.PayloadSize)
		if j.Group != "" {
			d.Grouped += by
		}
	}
	t := x.names.of(j.Type)
	if x.types[t] == nil {
		x.types[t] = new([job.States]int64)
	}
	x.types[t][j.State] += by
}

// refer counts references to payloads. It returns true when the last one went (I8).
func (x *index) refer(old, j *job.Job) (gone job.ID, is bool) {
	if old != nil && j != nil && old.Payload == j.Payload {
		return gone, false
	}
	if j != nil && !j.Payload.IsZero() {
		if j.Payload != j.ID || x.shared[j.Payload] > 0 {
			x.addRef(j.Payload)
		}
	}
	if old == nil || old.Payload.IsZero() {
		return gone, false
	}
	return old.Payload, x.dropRef(old.Payload)
}

// addRef: a payload that is named after its only job is not in the map.
func (x *index) addRef(ref job.ID) {
	n := x.shared[ref]
	if l := x.listing.at(listed{id: ref}); n == 0 && l != nil && l.own {
		n = 1 // the job it is named after
	}
	x.shared[ref] = n + 1
}

// referred reports whether any job refers to the payload.
func (x *index) referred(ref job.ID) bool {
	if x.shared[ref] > 0 {
		return true
	}
	l := x.listing.at(listed{id: ref})
	return l != nil && l.own
}

func (x *index) dropRef(ref job.ID) (last bool) {
	n, ok := x.shared[ref]
	if !ok {
		return true
	}
	if n--; n == 0 {
		delete(x.shared, ref)
		return true
	}
	x.shared[ref] = n
	return false
}

func (x *index) leaveGroup(old, j *job.Job, a, b *rule.Entries) {
	if !a.Member {
		return
	}
	q := x.of(old.Queue)
	g := q.gate(old.Group)
	g.live -= len(old.Leases)
	g.blockers -= int(bit(old.Blocks))
	g.members.remove(a.Inner)
	if a.Wants {
		g.wanting.remove(wanting{inner: a.Inner})
	}
	if !b.Member || j.Queue != old.Queue || j.Group != old.Group { // else enterGroup places the gate
		q.place(old.Group, g)
	}
}

func (x *index) enterGroup(j *job.Job, b *rule.Entries) {
	if !b.Member {
		return
	}
	q := x.of(j.Queue)
	g := q.gate(j.Group)
	g.order = j.Order
	g.live += len(j.Leases)
	g.blockers += int(bit(j.Blocks))
	g.members.insert(b.Inner)
	if b.Wants {
		n, _ := q.line(b.Class, j.Requires)
		g.wanting.insert(wanting{inner: b.Inner, priority: j.Priority, band: j.Band, line: n})
	}
	q.place(j.Group, g)
}

func (q *queue) gate(group string) *gate {
	if g, ok := q.gates[group]; ok {
		return g
	}
	g := &gate{row: &job.Gate{Queue: q.name, Group: group}}
	q.gates[group] = g
	return g
}

// place puts the gate where rule.Stands says it stands now.
func (q *queue) place(group string, g *gate) {
	view := rule.Group{
		Gate: g.row, Order: g.order, Limit: q.row.Concurrency, Live: g.live, Blockers: g.blockers,
	}
	if first, ok := g.members.first(); ok {
		view.First = &first
	}
	want, ok := g.wanting.first()
	if ok {
		view.Wanting = &want.inner
	}
	stands := rule.Stands(view)
	if g.stands && (!stands || g.at != want) {
		q.lines[g.at.line].jobs.remove(g.at.pos())
	}
	if stands && (!g.stands || g.at != want) {
		q.lines[want.line].jobs.insert(want.pos())
	}
	g.stands, g.at = stands, want
	if g.members.len() == 0 && g.row.Blank() {
		delete(q.gates, group)
	}
}

// set takes new settings; a changed limit moves the gates of the queue.
func (x *index) set(row *job.Queue) {
	q := x.of(row.Name)
	moved := q.row.Concurrency != row.Concurrency
	q.row = row
	if moved {
		for group, g := range q.gates {
			q.place(group, g)
		}
	}
}

func (x *index) setGate(queueName, group string, row *job.Gate) {
	q := x.of(queueName)
	g := q.gate(group)
	g.row = row
	q.place(group, g)
}

// lineHead is a line that takes part in a merge.
type lineHead struct {
	pos rule.Pos
	cur cursor[rule.Pos]
}

// ready returns up to n ids in line order over the queues (none = all).
func (x *index) ready(queues []string, s rule.Seeker, n int) []job.ID {
	heads := x.heads[:0]
	add := func(q *queue) {
		if q == nil || !rule.Open(q.row) {
			return
		}
		for _, l := range q.lines {
			if l.jobs.len() > 0 && rule.Fits(l.class, l.requires, s) {
				cur := l.jobs.start()
				pos, _ := cur.item()
				heads = append(heads, lineHead{pos, cur})
			}
		}
	}
	if len(queues) == 0 {
		for _, q := range x.order {
			add(q)
		}
	}
	for i, name := range queues {
		if !slices.Contains(queues[:i], name) {
			add(x.queues[name])
		}
	}
	out := mergeHeads(heads, n, x.held[s.Holder])
	x.heads = heads[:0]
	return out
}

// mergeHeads takes the n foremost of several lines, but no copy of a job the
// holder has already: a heap of line heads.
func mergeHeads(heads []lineHead, n int, has map[job.ID]struct{}) []job.ID {
	for i := len(heads)/2 - 1; i >= 0; i-- {
		sift(heads, i)
	}
	var out []job.ID
	for len(out) < n && len(heads) > 0 {
		id := heads[0].pos.ID
		if _, own := has[id]; !own {
			out = append(out, id)
		}
		heads[0].cur.next()
		pos, ok := heads[0].cur.item()
		if ok {
			heads[0].pos = pos
		} else {
			heads[0] = heads[len(heads)-1]
			heads = heads[:len(heads)-1]
		}
		sift(heads, 0)
	}
	return out
}

func sift(heads []lineHead, i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(heads); c++ {
			if rule.Pick(heads[c].pos, heads[least].pos) {
				least = c
			}
		}
		if least == i {
			return
		}
		heads[i], heads[least] = heads[least], heads[i]
		i = least
	}
}

// match is a filter with its names turned into numbers.
type match struct {
	states [job.States]bool
	queues []uint32
	types  []uint32
	none   bool // names something that does not exist
}

func (x *index) match(f *store.Filter) match {
	var m match
	for _, st := range f.States {
		m.states[st] = true
	}
	if len(f.States) == 0 {
		m.states = [job.States]bool{true, true, true, true, true, true}
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
	return m
}

func (m *match) takes(l *listed) bool {
	return m.states[l.state] &&
		(m.queues == nil || slices.Contains(m.queues, l.queue)) &&
		(m.types == nil || slices.Contains(m.types, l.typ))
}

// list returns ids that match, by id, until keep says stop.
func (x *index) list(f *store.Filter, each func(job.ID) (more bool)) {
	m := x.match(f)
	if m.none {
		return
	}
	if len(f.IDs) > 0 {
		x.listNamed(f, &m, each)
		return
	}
	cur := x.listing.start()
	switch {
	case !f.From.IsZero():
		cur = x.listing.from(listed{id: f.From})
	case f.Desc:
		cur = cursor[listed]{list: &x.listing, c: len(x.listing.chunks)}
	}
	if f.Desc {
		for cur.prev() {
			if l, ok := cur.item(); ok && m.takes(&l) && !each(l.id) {
				return
			}
		}
		return
	}
	for l, ok := cur.item(); ok; l, ok = cur.item() {
		if l.id != f.From && m.takes(&l) && !each(l.id) {
			return
		}
		cur.next()
	}
}

func (x *index) listNamed(f *store.Filter, m *match, each func(job.ID) bool) {
	ids := slices.Clone(f.IDs)
	slices.SortFunc(ids, func(a, b job.ID) int {
		if f.Desc {
			return cmp.Compare(b.Compare(a), 0)
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
// type are both given, so the listing must be walked.
func (x *index) counted(f *store.Filter) (n int64, ok bool) {
	m := x.match(f)
	if m.none {
		return 0, true
	}
	if len(f.IDs) > 0 || m.queues != nil && m.types != nil {
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
	case m.types != nil:
		for t := range slices.Values(unique(m.types)) {
			if states := x.types[t]; states != nil {
				add(states)
			}
		}
	case m.queues != nil:
		for q := range slices.Values(unique(m.queues)) {
			if int(q) < len(x.order) && x.order[q] != nil {
				add(&x.order[q].depth.States)
			}
		}
	default:
		for _, q := range x.queues {
			add(&q.depth.States)
		}
	}
	return n, true
}

func unique(list []uint32) []uint32 {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
