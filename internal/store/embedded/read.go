package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

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
	over   map[string][]byte // failures written here; nil value = deleted
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

func (a *access) Due(h rule.Hand, until job.Millis, n int) ([]job.ID, error) {
	var out []job.ID
	for cur := a.s.index.timers[h].start(); len(out) < n; cur.next() {
		t, ok := cur.item()
		if !ok || t.at > until {
			break
		}
		out = append(out, t.id)
	}
	return out, nil
}

func (a *access) Next(h rule.Hand) job.Millis {
	t, _ := a.s.index.timers[h].first()
	return t.at
}

func (a *access) Held(holder string) ([]job.ID, error) {
	return a.s.index.held.of[holder].ids(), nil
}

func (a *access) Holders() ([]string, error) {
	out := make([]string, 0, len(a.s.index.held.of))
	for name, h := range a.s.index.held.of {
		if h.len() > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (a *access) Members(queue, group string, n int) ([]job.ID, error) {
	q := a.s.index.queues[queue]
	if q == nil || q.gates[group] == nil {
		return nil, nil
	}
	var out []job.ID
	for cur := q.gates[group].members.start(); len(out) < n; cur.next() {
		p, ok := cur.item()
		if !ok {
			break
		}
		out = append(out, p.ID)
	}
	return out, nil
}

func (a *access) GroupDepth(queue, group string) (d store.GroupDepth) {
	if q := a.s.index.queues[queue]; q != nil && q.gates[group] != nil {
		g := q.gates[group]
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
	q := a.s.index.queues[queue]
	if q == nil || q.gates[group] == nil {
		return nil
	}
	list := &q.gates[group].wanting
	cur := list.start()
	if after != nil {
		cur = list.from(wanting{inner: *after})
	}
	for ; len(ids) < n; cur.next() {
		w, ok := cur.item()
		if !ok {
			break
		}
		if after == nil || after.Before(w.inner) {
			ids = append(ids, w.inner.ID)
		}
	}
	return ids
}

func (a *access) Running(queue, group string, n int) ([]job.ID, error) {
	q := a.s.index.queues[queue]
	if q == nil || q.gates[group] == nil {
		return nil, nil
	}
	running := q.gates[group].running
	out := make([]job.ID, 0, min(max(n, 0), len(running)))
	for i := range cap(out) {
		out = append(out, running[i].ID)
	}
	return out, nil
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

func (a *access) Finished(queue string, after int64, n int) ([]job.ID, error) {
	q := a.s.index.queues[queue]
	if q == nil || after == math.MaxInt64 {
		return nil, nil
	}
	var out []job.ID
	for cur := q.finished.from(finished{number: after + 1}); len(out) < n; cur.next() {
		f, ok := cur.item()
		if !ok {
			break
		}
		out = append(out, f.id)
	}
	return out, nil
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
	lo, hi := failureKey(nil, id, 0), append(failureKey(nil, id, 1<<32-1), 0)
	switch {
	case from > 0 && desc:
		hi = failureKey(nil, id, from)
	case from > 0:
		lo = append(failureKey(nil, id, from), 0)
	}
	var out []job.Failure
	err := a.scan(lo, hi, desc, n, func(key, value []byte) (bool, error) {
		f, err := decodeFailure(binary.BigEndian.Uint32(key[17:]), value)
		if err == nil {
			out = append(out, f)
		}
		return len(out) < n, nil //nolint:nilerr // the others say enough
	})
	if a.h.unreadable(err) {
		err = nil
	}
	return out, err
}

// scan walks keys in [lo, hi) with the transaction's own writes on top, until
// f has enough; nothing at all if n is not positive.
func (a *access) scan(lo, hi []byte, desc bool, n int, f func(key, value []byte) (more bool, err error)) error {
	if n <= 0 {
		return nil
	}
	type pair struct{ key, value string }
	var list []pair
	own := map[string]bool{}
	for key, value := range a.over {
		if key >= string(lo) && key < string(hi) {
			own[key] = true
			if value != nil {
				list = append(list, pair{key, string(value)})
			}
		}
	}
	it, err := a.h.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return readError(err)
	}
	first, next := it.First, it.Next
	if desc {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		if len(own) > 0 { // merging: collect
			if !own[string(it.Key())] {
				list = append(list, pair{string(it.Key()), string(it.Value())})
			}
			continue
		}
		if more, err := f(it.Key(), it.Value()); err != nil || !more {
			return errors.Join(err, it.Close())
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return readError(err)
	}
	slices.SortFunc(list, func(x, y pair) int {
		if desc {
			x, y = y, x
		}
		return strings.Compare(x.key, y.key)
	})
	for _, p := range list {
		if more, err := f([]byte(p.key), []byte(p.value)); err != nil || !more {
			return err
		}
	}
	return nil
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

func (a *access) MaxID() job.ID {
	l := &a.s.index.listing
	if l.len() == 0 {
		return job.ID{}
	}
	last := l.chunks[len(l.chunks)-1]
	return last[len(last)-1].id
}
