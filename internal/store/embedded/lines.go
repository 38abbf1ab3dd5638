package embedded

import (
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// line is one class of a queue, in line order. Of a group, only the member its
// gate stands for is in it.
type line struct {
	x        *index
	queue    *queue
	num      uint32
	class    rule.Class
	requires []job.Requirement
	jobs     sorted[rule.Pos]
	wanting  int   // members of groups that name it, whether their gate stands for them or not
	head     stand // as entered in index.heads
	entered  bool
	dirty    bool
}

func (l *line) insert(p rule.Pos) {
	l.jobs.insert(p)
	l.touch()
}

func (l *line) remove(p rule.Pos) {
	l.jobs.remove(p)
	l.touch()
	if l.jobs.len() > 0 {
		return
	}
	if l.x.idle++; l.class.For != "" {
		l.disown()
	}
}

// listed is the place of the foremost job for those who take from all queues.
func (l *line) listed() (s stand, ok bool) {
	if !rule.ForAll(l.queue.row) {
		return s, false
	}
	return l.first()
}

// first is the place of the foremost job.
func (l *line) first() (s stand, ok bool) {
	p, ok := l.jobs.first()
	return l.shown(p), ok
}

// together reports whether the jobs of the line have one turn together.
func (l *line) together() bool { return !l.class.Member && fair(l.queue.row) }

// shown is where a job of the line stands: gates know it, jobs without a
// group of a fair queue stand where the round is with them.
func (l *line) shown(p rule.Pos) stand {
	if l.together() {
		if g, ok := l.queue.gates[""]; ok {
			return stand{rule.Stand(l.queue.row, g.row, p), p}
		}
	}
	return stand{p, p}
}

// stand is where a job stands among those of all lines, and its own place, which
// decides among those who stand together.
type stand struct{ at, own rule.Pos }

func (s stand) before(t stand) bool {
	return rule.Pick(s.at, t.at) || !rule.Pick(t.at, s.at) && s.own.Before(t.own)
}

func (l *line) touch() {
	if !l.dirty && l.class.For == "" {
		l.dirty = true
		l.x.dirty = append(l.x.dirty, l)
	}
}

// clean brings index.heads up to date. All stale heads go first: a job that
// changed its class has the same place in its old line and its new one.
func (x *index) clean() {
	for _, l := range x.dirty {
		if first, ok := l.listed(); l.entered && (!ok || first != l.head) {
			x.heads.remove(headOf{stand: l.head})
			l.entered = false
		}
	}
	for _, l := range x.dirty {
		l.dirty = false
		if first, ok := l.listed(); ok && !l.entered {
			l.head, l.entered = first, true
			x.heads.insert(headOf{first, l.num})
		}
	}
	x.dirty = x.dirty[:0]
}

// headOf is the first job of a line: a take over all queues looks only at the
// lines whose head is due for it, however many queues there are.
type headOf struct {
	stand
	line uint32
}

// Before implements before: in line order.
func (h headOf) Before(g headOf) bool { return h.before(g.stand) }

// line returns the line of a class, made on first sight.
func (x *index) line(q *queue, c rule.Class, requires []job.Requirement) *line {
	if c.For != "" {
		return x.own(q, c, requires)
	}
	if l := q.class[c]; l != nil {
		return l
	}
	if q.class == nil {
		q.class = map[rule.Class]*line{}
	}
	l := &line{x: x, queue: q, class: c, requires: requires}
	if n := len(x.vacant) - 1; n >= 0 {
		l.num, x.vacant = x.vacant[n], x.vacant[:n]
		x.lines[l.num] = l
	} else {
		l.num = uint32(len(x.lines))
		x.lines = append(x.lines, l)
	}
	q.lines, q.class[c] = append(q.lines, l), l
	x.idle++
	return l
}

// lineHead is a line that takes part in a merge.
type lineHead struct {
	stand
	line *line
	room *rule.Room // of its queue; nil = no limit
	cur  cursor[rule.Pos]
}

// merge takes the foremost jobs of several lines: a heap of line heads.
type merge struct {
	heads []lineHead
	s     rule.Seeker
	rooms map[*queue]*rule.Room // asked for so far
}

// room is that of a queue, shared by its lines.
func (m *merge) room(q *queue) *rule.Room {
	if m.s.Room == nil {
		return nil
	}
	r := m.rooms[q]
	if r == nil {
		if m.rooms == nil {
			m.rooms = map[*queue]*rule.Room{}
		}
		r = new(m.s.Room(q.name))
		m.rooms[q] = r
	}
	return r
}

// add lets a line take part, if the seeker may take from it.
func (m *merge) add(l *line) {
	if l.jobs.len() == 0 || !rule.Serves(l.queue.row, m.s) || !rule.Fits(l.class, l.requires, m.s) {
		return
	}
	room := m.room(l.queue)
	if room != nil && (room.All <= 0 || l.class.Retried && room.Retried <= 0) {
		return
	}
	cur := l.jobs.start()
	at, ok := l.next(&cur, m.s.Before)
	if !ok {
		return
	}
	m.heads = append(m.heads, lineHead{at, l, room, cur})
	for i := len(m.heads) - 1; i > 0 && m.heads[i].before(m.heads[(i-1)/2].stand); i = (i - 1) / 2 {
		m.heads[i], m.heads[(i-1)/2] = m.heads[(i-1)/2], m.heads[i]
	}
}

// next is where the job under the cursor stands, or the first one behind it that
// stands before a position; 0 = any. What has the same priority and band stands
// in order, so of those it looks at one.
func (l *line) next(cur *cursor[rule.Pos], before int64) (stand, bool) {
	for {
		p, ok := cur.item()
		if !ok {
			return stand{}, false
		}
		shown := l.shown(p)
		if before == 0 || shown.at.Seq < before {
			return shown, true
		}
		section := rule.Pos{Priority: p.Priority, Band: p.Band + 1, Seq: math.MinInt64}
		*cur = l.jobs.from(section)
	}
}

// pop takes the foremost job, unless it is passed by or there is no room for it.
func (m *merge) pop(x *index) (id job.ID, ok bool) {
	h := &m.heads[0]
	id = h.own.ID
	passed := h.line.class.Copy && x.runsFor(m.s, id)
	ok = !passed && (h.room == nil || h.room.Take(h.line.class))
	h.cur.next()
	if at, more := h.line.next(&h.cur, m.s.Before); more && (ok && !h.line.together() || passed) {
		h.stand = at
	} else {
		m.heads[0] = m.heads[len(m.heads)-1]
		m.heads = m.heads[:len(m.heads)-1]
	}
	sift(m.heads, 0)
	return id, ok
}

// runsFor reports whether a copy of the job is not for the seeker: it has one, or
// its host does.
func (x *index) runsFor(s rule.Seeker, id job.ID) bool {
	return x.held.has(s.Holder, id) || s.Host != "" && x.hosts.has(s.Host, id)
}

var noHeads sorted[headOf]

// ready returns up to n ids in line order over the queues (none = all), but no
// copy of a job the holder has already. Only the writer may bring the heads up
// to date; a reader beside it looks at every line.
func (x *index) ready(queues []string, s rule.Seeker, n int, writer bool) (out []job.ID) {
	m := merge{s: s}
	rest := noHeads.start() // lines that have not taken part yet, foremost first
	if writer {
		m.heads = x.scratch[:0]
		defer func() { x.scratch = m.heads[:0] }()
	}
	switch {
	case len(queues) > 0 || s.Turns || s.Engine:
	case writer:
		x.clean()
		rest = x.heads.start()
	default:
		for _, l := range x.lines {
			if l != nil && rule.ForAll(l.queue.row) {
				m.add(l)
			}
		}
	}
	for i, name := range queues {
		if q := x.queues[name]; q != nil && !slices.Contains(queues[:i], name) {
			for _, l := range q.lines {
				m.add(l)
			}
			for _, l := range q.own[s.Holder] {
				m.add(l)
			}
		}
	}
	for len(out) < n {
		for h, ok := rest.item(); ok && (len(m.heads) == 0 || h.before(m.heads[0].stand)); h, ok = rest.item() {
			m.add(x.lines[h.line])
			rest.next()
		}
		if len(m.heads) == 0 {
			break
		}
		if id, ok := m.pop(x); ok {
			out = append(out, id)
		}
	}
	return out
}

func sift(heads []lineHead, i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(heads); c++ {
			if heads[c].before(heads[least].stand) {
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
