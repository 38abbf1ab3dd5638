package embedded

import (
	"container/heap"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// parts is a list that is kept as several sorted ones.
type parts[T before[T]] []*sorted[T]

func (p parts[T]) len() (n int) {
	for _, s := range p {
		n += s.len()
	}
	return n
}

// rank is how many items come before the given one, and whether that is in the list.
func (p parts[T]) rank(item T) (n int, found bool) {
	for _, s := range p {
		n += s.rank(item)
		found = found || s.at(item) != nil
	}
	return n, found
}

// stepsMax is how many items at() passes one by one. Finding a part of the way by
// halves costs a look at every part for each half.
const stepsMax = 1000

// at returns a walk whose first item is the one at position k, of all parts
// together. It narrows the range of each part by the middle of the widest one,
// and passes what is left one by one.
func (p parts[T]) at(k int) *walks[T] {
	from, to, left := make([]int, len(p)), make([]int, len(p)), k
	for i, s := range p {
		to[i] = s.len()
	}
	ranks := make([]int, len(p))
	for left > max(stepsMax, len(p)) { // so the widest range has two items at least
		widest := 0
		for i := range p {
			if to[i]-from[i] > to[widest]-from[widest] {
				widest = i
			}
		}
		middle := p[widest].skip((from[widest] + to[widest]) / 2)
		pivot, ok := middle.item()
		if !ok {
			break // k is behind the last item
		}
		before := 0
		for i, s := range p {
			ranks[i] = s.rank(pivot)
			before += ranks[i]
		}
		if before > k {
			copy(to, ranks)
			continue
		}
		copy(from, ranks)
		left = k - before
	}
	w := new(walks[T])
	for i, s := range p {
		w.add(s.skip(from[i]))
	}
	heap.Init(w)
	for ; left > 0 && w.Len() > 0; left-- {
		w.advance()
	}
	return w
}

// skip returns a cursor at the item behind the first n.
func (s *sorted[T]) skip(n int) cursor[T] {
	c := 0
	for c < len(s.chunks) && n >= len(s.chunks[c]) {
		n -= len(s.chunks[c])
		c++
	}
	return cursor[T]{list: s, c: c, i: n}
}

// inLine is what is ready: the lines, and what is out of line.
func (x *index) inLine() (p parts[rule.Pos]) {
	add := func(l *line) {
		if l.jobs.len() > 0 && !l.class.Copy {
			p = append(p, &l.jobs)
		}
	}
	for _, q := range x.queues {
		for _, l := range q.lines {
			add(l)
		}
		for holder, lines := range q.own {
			for _, l := range lines {
				if l.class.Engines()[0] == holder { // it is there under each of them
					add(l)
				}
			}
		}
	}
	for _, parked := range x.parked {
		p = append(p, parked)
	}
	return p
}

// inState is what is in a state, by id.
func (x *index) inState(state job.State) (p parts[placed]) {
	for _, q := range x.queues {
		for i, s := range shelves {
			if s.state == state && q.jobs[i].len() > 0 {
				p = append(p, &q.jobs[i])
			}
		}
	}
	return p
}

// slice returns the ids of n items from a position on.
func slice[T before[T]](p parts[T], from int64, n int, id func(T) job.ID) (out []job.ID, total int64) {
	if total = int64(p.len()); from < 0 || from >= total || n <= 0 {
		return nil, total
	}
	for w := p.at(int(from)); len(out) < n && w.Len() > 0; w.advance() {
		out = append(out, id(w.list[0].item))
	}
	return out, total
}

func (a *access) Slice(list job.State, from int64, n int) ([]*job.Job, int64, error) {
	var ids []job.ID
	var total int64
	switch x := a.s.index; list {
	case job.Ready:
		ids, total = slice(x.inLine(), from, n, func(p rule.Pos) job.ID { return p.ID })
	case job.Scheduled:
		ids, total = slice(parts[timer]{&x.timers[rule.HandDue]}, from, n, func(t timer) job.ID { return t.id })
	default:
		ids, total = slice(x.inState(list), from, n, func(p placed) job.ID { return p.id })
	}
	out, err := a.load(ids)
	return out, total, err
}

func (a *access) Place(list job.State, id job.ID) (at int64, ok bool, err error) {
	j, err := a.Get(id)
	if j == nil || err != nil {
		return 0, false, err
	}
	n, x, e := 0, a.s.index, rule.EntriesOf(j)
	switch list {
	case job.Ready:
		if e.Member && e.Wants {
			e.Pos = x.queues[j.Queue].gates[j.Group].pos()
		}
		if n, ok = x.inLine().rank(e.Pos); e.Pos.ID != id {
			ok = false // another member stands for its group
		}
	case job.Scheduled:
		n, ok = parts[timer]{&x.timers[rule.HandDue]}.rank(timer{e.Timer[rule.HandDue], id})
	default:
		n, ok = x.inState(list).rank(placed{id: id})
	}
	if !ok {
		return 0, false, nil
	}
	return int64(n), true, nil
}
