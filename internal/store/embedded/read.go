package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// coldMany is from how many jobs on disk one iterator is cheaper than a
// lookup each.
const coldMany = 4

// access implements store.Reader: indexes and hot values in memory, the rest
// on disk, with the writes of the running transaction on top.
type access struct {
	s   *Store
	h   *handle
	now job.Millis
	// writer: this is the one transaction that may change what is in memory.
	writer bool
	over   map[job.ID]map[uint32][]byte // failures written here, by number; nil value = deleted
	// touches are the receipts that the writer has read or written.
	touches touches
}

var _ store.Reader = (*access)(nil)

// View implements store.Store.
func (s *Store) View(_ context.Context, fn func(store.Reader) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := s.db.Load()
	if e := h.poison.Load(); e != nil {
		return e
	}
	return fn(&access{s: s, h: h, now: max(s.last, s.opts.Now())})
}

func (a *access) Now() job.Millis { return a.now }

func (a *access) Get(id job.ID) (*job.Job, error) {
	if j, ok := a.s.hot.jobs.get(id); ok {
		return j, nil
	}
	if a.s.index.listing.at(listed{id: id}) == nil {
		return nil, nil
	}
	value, err := a.h.get(jobKey(nil, id))
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, corrupt("job %s is indexed but not stored", id)
	}
	return decodeJob(id, value, a.s.names)
}

func (a *access) Ready(queues []string, s rule.Seeker, n int) ([]*job.Job, error) {
	ids, err := a.ready(queues, s, n)
	if err != nil {
		return nil, err
	}
	return a.load(ids)
}

// load gets jobs, reading those that are not hot in one pass over the disk.
func (a *access) load(ids []job.ID) ([]*job.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out := make([]*job.Job, len(ids))
	var cold []int
	for i, id := range ids {
		if out[i], _ = a.s.hot.jobs.get(id); out[i] == nil {
			cold = append(cold, i)
		}
	}
	if len(cold) < coldMany {
		for _, i := range cold {
			j, err := a.Get(ids[i])
			if err != nil {
				return nil, err
			}
			out[i] = j
		}
		return out, nil
	}
	missing := make([]job.ID, len(cold))
	for k, i := range cold {
		missing[k] = ids[i]
	}
	err := a.h.seekEach(keyJob, missing, func(k int, value []byte) (err error) {
		if value == nil {
			return corrupt("job %s is indexed but not stored", missing[k])
		}
		out[cold[k]], err = decodeJob(missing[k], value, a.s.names)
		return err
	})
	return out, err
}

func (a *access) IDs(l store.List, n int) ([]job.ID, error) {
	x, place := a.s.index, func(p rule.Pos) (job.ID, bool) { return p.ID, true }
	switch q, g := x.queues[l.Queue], x.group(l.Queue, l.Name); l.Kind {
	case store.OfDue:
		return take(x.timers[l.Hand].start(), n, func(t timer) (job.ID, bool) { return t.id, t.at <= l.Until }), nil
	case store.OfHeld:
		ids := x.held.of[l.Name].ids()
		return ids[:min(max(n, 0), len(ids))], nil
	case store.OfMembers:
		if g != nil {
			return take(g.members.start(), n, place), nil
		}
	case store.OfRunning:
		var out []job.ID
		for i := 0; g != nil && i < min(n, len(g.running)); i++ {
			out = append(out, g.running[i].ID)
		}
		return out, nil
	case store.OfParked:
		if list := x.parked[l.Name]; list != nil {
			return take(list.start(), n, place), nil
		}
	case store.OfFinished:
		if q != nil && l.After < math.MaxInt64 {
			return take(q.finished.from(finished{number: l.After + 1}), n, func(f finished) (job.ID, bool) { return f.id, true }), nil
		}
	}
	return nil, nil
}

// take returns up to n ids from a cursor on, while each says that it is wanted.
func take[T before[T]](cur cursor[T], n int, each func(T) (id job.ID, ok bool)) (out []job.ID) {
	for ; len(out) < n; cur.next() {
		item, ok := cur.item()
		if !ok {
			break
		}
		id, ok := each(item)
		if !ok {
			break
		}
		out = append(out, id)
	}
	return out
}

// group is nil if there is nothing of it.
func (x *index) group(queue, group string) *gate {
	if q := x.queues[queue]; q != nil {
		return q.gates[group]
	}
	return nil
}

func (a *access) Next(h rule.Hand) job.Millis {
	t, _ := a.s.index.timers[h].first()
	return t.at
}

func (a *access) GroupDepth(queue, group string) (d store.GroupDepth) {
	if g := a.s.index.group(queue, group); g != nil {
		head, _ := g.members.first()
		d = store.GroupDepth{Head: head.ID, Leases: g.live, Blockers: g.blockers}
	}
	return d
}

func (a *access) Wanting(queue, group string, after *rule.Pos, n int) ([]*job.Job, error) {
	return a.load(a.wanting(queue, group, after, n))
}

// wanting is the ids of Wanting.
func (a *access) wanting(queue, group string, after *rule.Pos, n int) (ids []job.ID) {
	g := a.s.index.group(queue, group)
	if g == nil {
		return nil
	}
	cur := g.wanting.start()
	if after != nil {
		cur = g.wanting.from(wanting{inner: *after})
		if w, ok := cur.item(); ok && !after.Before(w.inner) {
			cur.next()
		}
	}
	return take(cur, n, func(w wanting) (job.ID, bool) { return w.inner.ID, true })
}

func (a *access) List(f store.Filter, n int) ([]*job.Job, error) {
	var out []*job.Job
	var failed error
	a.s.index.list(&f, func(id job.ID) bool {
		if len(out) == n {
			return false
		}
		j, err := a.Get(id)
		if err != nil {
			failed = err
			return false
		}
		if !f.Hides(j) {
			out = append(out, j)
		}
		return len(out) < n
	})
	return out, failed
}

func (a *access) Count(f store.Filter) (int64, error) {
	n, ok := a.s.index.counted(&f)
	if !ok {
		f.From = job.ID{}
		a.s.index.list(&f, func(job.ID) bool { n++; return true })
	}
	return n - a.s.index.hidden(&f), nil
}

func (a *access) Depth(queue string) store.Depth {
	if q := a.s.index.queues[queue]; q != nil {
		return q.depth
	}
	return store.Depth{}
}

func (a *access) Standing(queue string, is []rule.Condition, after string, n int) ([]store.Standing, error) {
	q := a.s.index.queues[queue]
	if q == nil || n <= 0 {
		return nil, nil
	}
	var out []store.Standing
	byName := func(x, y store.Standing) int { return strings.Compare(x.Group, y.Group) }
	for name, g := range q.gates {
		if !g.counted || name <= after || len(is) > 0 && !slices.Contains(is, g.is) {
			continue
		}
		head, _ := g.members.first()
		out = append(out, store.Standing{Group: name, Is: g.is, Members: int64(g.members.len()), Head: head.ID})
		if len(out) >= 2*n+64 { // what does not make it into the page
			slices.SortFunc(out, byName)
			out = out[:n]
		}
	}
	slices.SortFunc(out, byName)
	return out[:min(n, len(out))], nil
}

func (a *access) Names() ([]string, error) {
	var out []string
	for name, q := range a.s.index.queues {
		var n int64
		for _, c := range q.depth.States {
			n += c
		}
		if n > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (a *access) Peek(ref job.ID) []byte {
	body, _ := a.s.hot.bodies.get(ref)
	return body
}

func (a *access) Failures(id job.ID, from uint32, desc bool, n int) ([]job.Failure, error) {
	found, _, err := a.failures(id)
	numbers := slices.Sorted(maps.Keys(found))
	if desc {
		slices.Reverse(numbers)
	}
	var out []job.Failure
	for _, number := range numbers {
		if from > 0 && (number == from || number < from != desc) {
			continue
		}
		if len(out) >= n {
			break
		}
		if f, err := decodeFailure(number, found[number]); err == nil { // the others say enough
			out = append(out, f)
		}
	}
	return out, err
}

// failures are the records of a job by their numbers: few, as the engine drops those in
// the middle. Some may be missing, because they cannot be read.
func (a *access) failures(id job.ID) (found map[uint32][]byte, some bool, err error) {
	found = map[uint32][]byte{}
	lo, hi := failureRange(id)
	gaps, err := a.h.scanAround(lo, hi, func(key, value []byte) error {
		found[binary.BigEndian.Uint32(key[17:])] = bytes.Clone(value)
		return nil
	})
	maps.Copy(found, a.over[id])
	maps.DeleteFunc(found, func(_ uint32, value []byte) bool { return value == nil })
	return found, len(gaps) > 0, err
}

func (a *access) Row(t job.Table, key string) (job.Row, error) {
	if t != job.Receipts {
		return a.s.rows.tables[t][key], nil
	}
	return a.receiptRow(key)
}

func (a *access) Rows(t job.Table, after string, n int) ([]job.Row, error) {
	if t != job.Receipts {
		return a.s.rows.page(t, after, n), nil
	}
	return a.receiptRows(after, n)
}

func (a *access) DueRows(t job.Table, until job.Millis, n int) ([]job.Row, error) {
	if t != job.Receipts {
		return a.s.rows.dueRows(t, until, n), nil
	}
	return a.dueReceipts(until, n)
}

func (a *access) NextRow(t job.Table) job.Millis {
	if t == job.Receipts {
		return a.s.rows.receiptDue
	}
	d, _ := a.s.rows.due[t].first()
	return d.at
}
