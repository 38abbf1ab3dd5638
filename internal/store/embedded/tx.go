package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// tx is one transaction: its writes go into a batch and, at once, into the
// indexes; an undo list takes them back if it is aborted.
type tx struct {
	access
	batch   *pebble.Batch
	durable bool
	midway  bool // memory is being changed: after a panic there it cannot be taken back
	undo    []func()
	moves   []moved
	bodies  []body   // payloads that came
	refs    []job.ID // payloads that came, or lost a reference
	cool    []job.ID // jobs that are hot only until the end of the transaction
	key     []byte
	value   []byte

	receiptDue   job.Millis // when the next receipt is due; 0 = none
	receiptStale bool       // it may be later
	order        []sortable
}

// body is a payload that came, or what was added to one. All of them are written at the
// end: keys of one kind that follow each other find their place in the memory table at once.
type body struct {
	ref   job.ID
	bytes []byte
	added bool // to what is there, which is Pebble's default merge
}

// moved is a job write, for undoing. Rows use undo, payloads bodies.
type moved struct {
	old, new *job.Job
	undo     int // length of tx.undo when it happened
}

var _ store.Tx = (*tx)(nil)

// Update implements store.Store.
func (s *Store) Update(_ context.Context, fn func(store.Tx) error) (store.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.db.Load()
	if e := h.poison.Load(); e != nil {
		return nil, e
	}
	t := &s.tx
	*t = tx{
		access: access{s: s, h: h, now: max(s.last, s.opts.Now()), writer: true, touches: t.touches},
		batch:  h.db.NewBatch(), undo: t.undo[:0], moves: t.moves[:0], bodies: t.bodies[:0],
		refs: t.refs[:0], cool: t.cool[:0], key: t.key, value: t.value,
		receiptDue: s.rows.receiptDue, order: t.order,
	}
	t.touches.reset()
	s.known.begin()
	s.index.held.sweep()
	s.index.hosts.sweep()
	s.index.sweep(s.rows.tables[job.Queues])
	s.last = t.now
	kept := false
	defer func() { // also when fn panics
		if !kept {
			if t.midway {
				_ = h.fail(job.Errorf(job.Internal, "a fault of the server while the index was changed"))
			}
			t.rollback()
			_ = t.batch.Close()
		}
	}()
	if err := fn(t); err != nil {
		return nil, err
	}
	if err := t.writePayloads(); err != nil {
		return nil, err
	}
	if err := t.writeReceipts(); err != nil {
		return nil, err
	}
	kept = true
	t.keepReceipts()
	s.hot.coolDown(t.cool)
	clear(t.moves)
	clear(t.undo)
	clear(t.bodies)
	return s.commit(t)
}

// commit hands the batch to Pebble. From here on later transactions see it.
func (s *Store) commit(t *tx) (store.Commit, error) {
	c := &commit{h: t.h, batch: t.batch, durable: t.durable && s.opts.Sync == Always}
	if t.batch.Empty() {
		return c, nil
	}
	c.syncs = true
	if err := c.apply(); err != nil {
		return nil, t.h.fail(err)
	}
	if e := t.h.poison.Load(); e != nil { // Fatalf returned
		return nil, e
	}
	return c, nil
}

// commit implements store.Commit.
type commit struct {
	h       *handle
	batch   *pebble.Batch
	syncs   bool // it writes something, which must leave the process before Wait returns
	durable bool // and be on the disk
}

// apply writes to log and memory table.
func (c *commit) apply() error {
	if c.durable {
		c.h.log.need.Add(1) // before the log has it: whoever writes it out must see that
	}
	return c.h.recovering(func() error { return c.h.db.ApplyNoSyncWait(c.batch, pebble.Sync) })
}

// recovering runs f, in which Pebble may panic for what is a failed commit like any
// other.
func (h *handle) recovering(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("committing: %v", p)
			h.abandon(err)
		}
	}()
	return f()
}

// Wait implements store.Commit.
func (c *commit) Wait() error {
	if c.syncs {
		err := c.batch.SyncWait()
		if c.durable {
			c.h.log.need.Add(-1)
		}
		if err != nil {
			c.h.abandon(err)
		}
	}
	if e := c.h.poison.Load(); e != nil {
		return e
	}
	return c.batch.Close()
}

func (t *tx) Durable() { t.durable = true }

func (t *tx) Write(old, j *job.Job) error {
	at, err := t.checkOld(old, j)
	if err != nil {
		return err
	}
	if err := t.checkKey(old, j); err != nil {
		return err
	}
	t.midway = true
	x := t.s.index
	if n := len(t.refs); old == nil && n > 0 && t.refs[n-1] == j.Payload {
		t.refs = t.refs[:n-1] // the payload put just before has its job now
	}
	t.refs = x.refs.move(old, j, t.refs)
	if j != nil {
		t.key, t.value = jobKey(t.key[:0], j.ID), appendJob(t.value[:0], j)
		if err := t.batch.Set(t.key, t.value, nil); err != nil {
			return err
		}
	} else if err := t.erase(old); err != nil {
		return err
	}
	x.moveFrom(at, old, j)
	if t.s.hot.move(old, j) {
		t.cool = append(t.cool, j.ID)
	}
	t.moves = append(t.moves, moved{old, j, len(t.undo)})
	t.midway = false
	return nil
}

// checkOld refuses a write that does not start from what is stored. It returns
// where that is listed; nil = it is not there.
func (t *tx) checkOld(old, j *job.Job) (at *listed, err error) {
	var id job.ID
	switch {
	case old != nil && j != nil && old.ID != j.ID, old == nil && j == nil:
		return nil, job.Errorf(job.Internal, "a write of two different jobs, or of none")
	case old != nil:
		id = old.ID
	default:
		id = j.ID
	}
	at = t.s.index.listing.at(listed{id: id})
	if old == nil && at != nil || old != nil && (at == nil || at.state != old.State) {
		return nil, job.Errorf(job.Internal, "job %s is not stored as the write supposes", id)
	}
	return at, nil
}

// erase deletes a job and its failure records.
func (t *tx) erase(old *job.Job) error {
	if old.Failures > 0 || t.over[old.ID] != nil {
		found, some, err := t.failures(old.ID)
		if some {
			lo, hi := failureRange(old.ID)
			err = errors.Join(err, t.batch.DeleteRange(lo, hi, nil))
		}
		for number := range found {
			err = errors.Join(err, t.setFailure(old.ID, number, nil))
		}
		if err != nil {
			return err
		}
	}
	t.key = jobKey(t.key[:0], old.ID)
	return t.batch.Delete(t.key, nil)
}

func (t *tx) PutPayload(ref job.ID, bytes []byte) error {
	t.s.hot.keepBody(ref, bytes)
	t.bodies = append(t.bodies, body{ref: ref, bytes: bytes})
	t.refs = append(t.refs, ref)
	return nil
}

func (t *tx) AppendPayload(ref job.ID, more []byte) error {
	t.s.hot.dropBody(ref)
	t.bodies = append(t.bodies, body{ref, more, true})
	return nil
}

// writePayloads writes, at the end of the transaction, the payloads that came,
// and deletes those that no job refers to (I8).
func (t *tx) writePayloads() error {
	for i := range t.bodies {
		b := &t.bodies[i]
		write := t.batch.Set
		if b.added {
			write = t.batch.Merge
		}
		t.key = payloadKey(t.key[:0], b.ref)
		if err := write(t.key, b.bytes, nil); err != nil {
			return err
		}
	}
	for _, ref := range t.refs {
		if t.s.index.refs.referred(ref) {
			continue
		}
		t.key = payloadKey(t.key[:0], ref)
		if err := t.batch.Delete(t.key, nil); err != nil {
			return err
		}
		t.s.hot.dropBody(ref)
	}
	return nil
}

func (t *tx) PutFailure(id job.ID, f *job.Failure) error {
	return t.setFailure(id, f.Number, appendFailure(nil, f))
}

func (t *tx) DropFailure(id job.ID, number uint32) error { return t.setFailure(id, number, nil) }

// setFailure writes a record; nil deletes it.
func (t *tx) setFailure(id job.ID, number uint32, value []byte) error {
	if t.over == nil {
		t.over = map[job.ID]map[uint32][]byte{}
	}
	if t.over[id] == nil {
		t.over[id] = map[uint32][]byte{}
	}
	t.over[id][number] = value
	key := failureKey(nil, id, number)
	if value == nil {
		return t.batch.Delete(key, nil)
	}
	return t.batch.Set(key, value, nil)
}

func (t *tx) Set(row job.Row) error {
	if r, ok := row.(*job.Receipt); ok {
		return t.writeReceipt(&r.Hash, r)
	}
	table, key := row.Table(), row.Key()
	value, err := appendRow(t.value[:0], row)
	if err != nil {
		return err
	}
	t.key, t.value = rowKey(t.key[:0], table, key), value
	t.remember(table, key)
	t.midway = true
	t.s.rows.put(row)
	t.s.applyRow(row)
	t.midway = false
	return t.batch.Set(t.key, t.value, nil)
}

func (t *tx) Unset(table job.Table, key string) error {
	if table == job.Receipts {
		if len(key) != 16 {
			return nil
		}
		return t.writeReceipt((*[16]byte)([]byte(key)), nil)
	}
	if t.s.rows.tables[table][key] == nil {
		return nil
	}
	t.remember(table, key)
	t.forget(table, key)
	return t.batch.Delete(rowKey(nil, table, key), nil)
}

// forget takes a row out of memory, and its effect on the index.
func (t *tx) forget(table job.Table, key string) {
	old := t.s.rows.tables[table][key]
	t.s.rows.forget(table, key)
	switch r := old.(type) {
	case *job.Queue:
		t.s.index.set(job.NewQueue(r.Name))
	case *job.Gate:
		t.s.index.setGate(r.Queue, r.Group, &job.Gate{Queue: r.Queue, Group: r.Group})
	case *job.Throttle:
		t.s.index.setThrottle(r.Queue, r.Group, nil)
	}
}

// remember makes a row write undoable.
func (t *tx) remember(table job.Table, key string) {
	old := t.s.rows.tables[table][key]
	t.undo = append(t.undo, func() {
		t.forget(table, key)
		if old != nil {
			t.s.rows.put(old)
			t.s.applyRow(old)
		}
	})
}

// rollback takes back what the transaction did to memory, latest first.
func (t *tx) rollback() {
	for i := len(t.moves) - 1; i >= 0; i-- {
		m := t.moves[i]
		t.undoTo(m.undo)
		t.s.index.refs.move(m.new, m.old, nil)
		t.s.index.move(m.new, m.old)
		if m.new != nil {
			t.s.hot.jobs.drop(m.new.ID)
		}
		if m.old != nil && m.old.State == job.Leased {
			t.s.hot.jobs.set(m.old.ID, m.old)
		}
	}
	t.undoTo(0)
	for i := range t.bodies {
		t.s.hot.dropBody(t.bodies[i].ref)
	}
}

func (t *tx) undoTo(n int) {
	for len(t.undo) > n {
		last := len(t.undo) - 1
		t.undo[last]()
		t.undo = t.undo[:last]
	}
}
