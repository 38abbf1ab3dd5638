package embedded

import (
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
	held    holdings   // by holder
	hosts   holdings   // by host, of leases that name one
	refs    references // to payloads
	types   map[uint32]*[job.States]int64
	dead    deadSet
	parked  map[string]*sorted[rule.Pos] // by label
	keys    keyIndex                     // who stands under a key
	lines   []*line                      // by number; nil = the number is vacant
	vacant  []uint32                     // numbers of lines that are given back
	idle    int                          // what came or became empty since the latest giveBack
	inUse   int                          // what that left
	heads   sorted[headOf]               // the head of every line that has one, once dirty is empty
	dirty   []*line                      // lines whose head may have changed
	scratch []lineHead                   // of ready
	latest  *queue                       // the one that was asked for last
}

// listed is an entry of the listing of all jobs: enough to page by type, and
// by ids, without reading a job.
type listed struct {
	id    job.ID
	queue uint32
	typ   uint32
	state job.State
	own   bool // its payload is kept under its own id
	is    rule.Status
	group uint32 // of a dead job its deadGroup.num, else 0
}

// Before implements before: by id.
func (l listed) Before(m listed) bool { return l.id.Before(m.id) }

// placed is an entry of the jobs of one queue on one shelf.
type placed struct {
	id  job.ID
	typ uint32
}

// Before implements before: by id.
func (p placed) Before(q placed) bool { return p.id.Before(q.id) }

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
	class map[rule.Class]*line // the same by their class
	own   map[string][]*line   // of jobs that are for some holders only, by holder
	gates map[string]*gate
	jobs  [len(shelves)]sorted[placed]
	depth store.Depth

	finished sorted[finished]
}

// gate is a group: all its members, those that want a holder, and its place.
type gate struct {
	row      *job.Gate
	throttle *job.Throttle // nil = nothing slows it down
	live     int
	blockers int
	members  sorted[rule.Pos]
	wanting  sorted[wanting]
	running  []rule.Pos // members that are out with a holder, in order; mostly none or one
	at       wanting    // for whom it stands
	seq      int64      // and where, in the line
	stands   bool
	counted  bool           // in the depth of its queue, with
	is       rule.Condition // of a queue that is given out in turns
}

// wanting is a member that wants a holder: its place inside the group, and
// what its place in the queue's line would be.
type wanting struct {
	inner    rule.Pos
	seq      int64
	priority uint16
	band     uint8
	line     uint32 // in index.lines
}

// Before implements before: by the place inside the group.
func (w wanting) Before(x wanting) bool { return w.inner.Before(x.inner) }

func (w wanting) pos() rule.Pos {
	return rule.Pos{Seq: w.seq, Priority: w.priority, Band: w.band, ID: w.inner.ID}
}

// pos is where the gate stands in its line.
func (g *gate) pos() rule.Pos {
	p := g.at.pos()
	p.Seq = g.seq
	return p
}

func newIndex(n *names) *index {
	x := &index{
		names: n, queues: map[string]*queue{}, held: newHoldings(), hosts: newHoldings(),
		types: map[uint32]*[job.States]int64{}, dead: deadSet{groups: map[job.Fingerprint]*deadGroup{}}, parked: map[string]*sorted[rule.Pos]{}, keys: newKeyIndex(),
	}
	x.refs = references{map[job.ID]int{}, &x.listing}
	return x
}

// of returns the queue, made on first sight.
func (x *index) of(name string) *queue {
	if q := x.latest; q != nil && q.name == name {
		return q
	}
	if q, ok := x.queues[name]; ok {
		x.latest = q
		return q
	}
	q := &queue{name: name, num: x.names.of(name), row: job.NewQueue(name), gates: map[string]*gate{}}
	x.queues[name] = q
	for int(q.num) >= len(x.order) {
		x.order = append(x.order, nil)
	}
	x.order[q.num] = q
	x.idle++
	return q
}

// move takes a job from its old entries to its new ones; nil = not there.
func (x *index) move(old, j *job.Job) {
	var at *listed
	if old != nil {
		at = x.listing.at(listed{id: old.ID})
	}
	x.moveFrom(at, old, j)
}

// moveFrom is move for those who know where the old job is listed; nil = nowhere.
func (x *index) moveFrom(at *listed, old, j *job.Job) {
	var a, b rule.Entries
	if old != nil {
		a = rule.EntriesOf(old)
	}
	if j != nil {
		b = rule.EntriesOf(j)
	}
	x.moveTimers(old, j, &a, &b)
	x.moveHolders(old, j)
	x.moveDead(old, j, &a, &b)
	x.movePark(&a, &b)
	x.moveKey(old, j, &a, &b)
	x.moveFinished(old, j, &a, &b)
	x.moveListing(at, old, j, &a, &b)
	// In this order: a job that leaves its group may take the same place in
	// line that its gate stood at.
	stays := x.leaveGroup(old, j, &a, &b)
	x.moveInLine(old, j, &a, &b)
	x.enterGroup(j, &b, stays)
}

// moveInLine moves a job that stands in line itself, not behind a gate.
func (x *index) moveInLine(old, j *job.Job, a, b *rule.Entries) {
	was, is := a.Wants && !a.Member, b.Wants && !b.Member
	if was && is && a.Pos == b.Pos && a.Class == b.Class && old.Queue == j.Queue {
		return
	}
	if was {
		x.line(x.of(old.Queue), a.Class, old.Requires).remove(a.Pos)
	}
	if is {
		x.line(x.of(j.Queue), b.Class, j.Requires).insert(b.Pos)
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
			l := &old.Leases[i]
			if j == nil || !j.HeldBy(l.Holder) {
				x.held.drop(l.Holder, old.ID)
			}
			if host := l.Bars(); host != "" && (j == nil || !j.RunsOn(host)) {
				x.hosts.drop(host, old.ID)
			}
		}
	}
	if j != nil {
		for i := range j.Leases {
			l := &j.Leases[i]
			x.held.add(l.Holder, j.ID)
			if host := l.Bars(); host != "" {
				x.hosts.add(host, j.ID)
			}
		}
	}
}

// finished is an entry of the finished jobs of a queue that have a number.
type finished struct {
	number int64
	id     job.ID
}

// Before implements before: by number.
func (f finished) Before(g finished) bool {
	return f.number < g.number || f.number == g.number && f.id.Before(g.id)
}

func (x *index) moveFinished(old, j *job.Job, a, b *rule.Entries) {
	if a.Finished == b.Finished && (a.Finished == 0 || old.Queue == j.Queue) {
		return
	}
	if a.Finished != 0 {
		x.of(old.Queue).finished.remove(finished{a.Finished, old.ID})
	}
	if b.Finished != 0 {
		x.of(j.Queue).finished.insert(finished{b.Finished, j.ID})
	}
}

// moveListing keeps the listing, the counts and the payload references.
func (x *index) moveListing(at *listed, old, j *job.Job, a, b *rule.Entries) {
	if old != nil {
		x.count(old, a, -1)
		if j == nil {
			x.listing.remove(listed{id: old.ID})
		}
	}
	x.movePlaced(old, j)
	if j == nil {
		return
	}
	x.count(j, b, 1)
	entry := listed{id: j.ID, queue: x.of(j.Queue).num, typ: x.names.of(j.Type), state: j.State, own: j.Payload == j.ID, is: rule.StatusOf(j), group: x.dead.number(b)}
	switch {
	case at != nil:
		*at = entry
	case old == nil:
		x.listing.insert(entry)
	}
}

func (x *index) movePlaced(old, j *job.Job) {
	if old != nil && j != nil && shelfOf(old) == shelfOf(j) && old.Queue == j.Queue && old.Type == j.Type {
		return
	}
	if old != nil {
		x.of(old.Queue).jobs[shelfOf(old)].remove(placed{id: old.ID})
	}
	if j != nil {
		x.of(j.Queue).jobs[shelfOf(j)].insert(placed{j.ID, x.names.of(j.Type)})
	}
}

func (x *index) count(j *job.Job, e *rule.Entries, by int64) {
	d := &x.of(j.Queue).depth
	if e.Wants {
		d.Wanting += by
	}
	d.States[j.State] += by
	d.Leases += by * int64(len(j.Leases))
	d.Status[rule.StatusOf(j)] += by
	if j.State.Open() {
		d.Bytes += by * int64(j.PayloadSize)
		if j.Group != "" {
			d.Grouped += by
		}
	}
	t := x.names.of(j.Type)
	if x.types[t] == nil {
		x.types[t] = new([job.States]int64)
		x.idle++
	}
	x.types[t][j.State] += by
}

// leaveGroup takes a job out of its group. It reports whether the job stays in it:
// then enterGroup places the gate.
func (x *index) leaveGroup(old, j *job.Job, a, b *rule.Entries) (stays bool) {
	if !a.Member {
		return false
	}
	q := x.of(old.Queue)
	g := q.gate(old.Group)
	g.live -= len(old.Leases)
	g.blockers -= int(bit(old.BlocksGroup))
	g.members.remove(a.Inner)
	if a.Wants {
		w := wanting{inner: a.Inner}
		x.lines[g.wanting.at(w).line].wanting--
		g.wanting.remove(w)
	}
	if a.Runs {
		at, _ := slices.BinarySearchFunc(g.running, a.Inner, inOrder)
		g.running = slices.Delete(g.running, at, at+1)
	}
	if stays = b.Member && j.Queue == old.Queue && j.Group == old.Group; !stays {
		x.place(q, old.Group, g)
	}
	return stays
}

func (x *index) enterGroup(j *job.Job, b *rule.Entries, stayed bool) {
	if !b.Member {
		return
	}
	q := x.of(j.Queue)
	g := q.gate(j.Group)
	g.live += len(j.Leases)
	g.blockers += int(bit(j.BlocksGroup))
	g.members.insert(b.Inner)
	if b.Wants {
		l := x.line(q, b.Class, j.Requires)
		l.wanting++
		g.wanting.insert(wanting{inner: b.Inner, seq: b.Pos.Seq, priority: j.Priority, band: j.Band, line: l.num})
	}
	if b.Runs {
		at, _ := slices.BinarySearchFunc(g.running, b.Inner, inOrder)
		g.running = slices.Insert(g.running, at, b.Inner)
	}
	if stayed || len(j.Leases) > 0 || j.BlocksGroup || g.leads(b) { // who comes behind others moves no gate
		x.place(q, j.Group, g)
	}
}

// leads reports whether a member is the first, or the first that wants a holder.
func (g *gate) leads(b *rule.Entries) bool {
	first, _ := g.members.first()
	want, _ := g.wanting.first()
	return first == b.Inner || want.inner == b.Inner
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func inOrder(p, q rule.Pos) int {
	switch {
	case p.Before(q):
		return -1
	case q.Before(p):
		return 1
	}
	return 0
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
func (x *index) place(q *queue, group string, g *gate) {
	view := rule.Group{
		Gate: g.row, Throttle: g.throttle, Order: q.row.Order, Turns: q.row.Turns, Limit: q.row.Concurrency, Live: g.live, Blockers: g.blockers,
	}
	if first, ok := g.members.first(); ok {
		view.First = &first
	}
	want, ok := g.wanting.first()
	if ok {
		view.Wanting = &want.inner
	}
	stands, seq := rule.Stands(view), rule.Stand(q.row, g.row, want.pos()).Seq
	moved := g.at != want || g.seq != seq
	if g.stands && (!stands || moved) {
		x.lines[g.at.line].remove(g.pos())
	}
	x.judge(q, g, view)
	stood := g.stands && !moved
	g.stands, g.at, g.seq = stands, want, seq
	if stands && !stood {
		x.lines[want.line].insert(g.pos())
	}
	if g.members.len() == 0 && g.row.Blank() && g.throttle == nil {
		delete(q.gates, group)
	}
}

// judge counts the group by what it does.
func (x *index) judge(q *queue, g *gate, view rule.Group) {
	if g.counted {
		q.depth.Groups[g.is]--
	}
	if g.counted = q.row.Turns && view.First != nil; g.counted {
		head := job.Leased // which member runs does not matter
		if view.Live == 0 {
			head = x.listing.at(listed{id: view.First.ID}).state
		}
		g.is = rule.ConditionOf(view, head)
		q.depth.Groups[g.is]++
	}
}

// set takes new settings; a changed limit moves the gates of the queue.
func (x *index) set(row *job.Queue) {
	q := x.of(row.Name)
	moved := q.row.Concurrency != row.Concurrency || q.row.Order != row.Order || q.row.Turns != row.Turns || fair(q.row) != fair(row)
	asked := rule.ForAll(q.row) != rule.ForAll(row) // its lines come among those of all queues, or leave them
	q.row = row
	if asked {
		for _, l := range q.lines {
			l.touch()
		}
	}
	if moved {
		for group, g := range q.gates {
			x.place(q, group, g)
		}
		q.touch()
	}
}

func fair(q *job.Queue) bool { return q.Protection.Fair != nil }

// touch notes that the jobs without a group may stand elsewhere now.
func (q *queue) touch() {
	for _, l := range q.lines {
		if !l.class.Member {
			l.touch()
		}
	}
}

func (x *index) setThrottle(queueName, group string, row *job.Throttle) {
	if group == "" { // the queue itself: the engine leaves no room
		return
	}
	q := x.of(queueName)
	g := q.gate(group)
	g.throttle = row
	x.place(q, group, g)
}

func (x *index) setGate(queueName, group string, row *job.Gate) {
	q := x.of(queueName)
	g := q.gate(group)
	g.row = row
	x.place(q, group, g)
	if group == "" {
		q.touch()
	}
}
