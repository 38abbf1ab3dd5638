package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

var (
	errPower = &job.Error{Kind: job.Unavailable, Text: "the power is out"}
	errDisk  = errors.New("the disk is broken")
)

// commit is one transaction as the store took it.
type commit struct {
	number      int // counts through all lives
	life        int
	now, steady job.Millis
	durable     bool
	failed      bool // the store refused to commit it: it may be kept or not
	changes     []change
}

// change is one write of a transaction: a job, or a row.
type change struct {
	old, new *job.Job
	body     []byte  // of the payload that came with a new job
	row      job.Row // set
	table    job.Table
	key      string // of the row
}

// setsGate reports whether the change makes the row of a group this one.
func (c *change) setsGate(want *job.Gate) bool {
	if want.Blank() && c.row == nil {
		return c.table == job.Gates && c.key == want.Key()
	}
	g, ok := c.row.(*job.Gate)
	return ok && *g == *want
}

// setsQueue reports whether the change makes the settings of a queue these.
func (c *change) setsQueue(want *job.Queue) bool {
	q, ok := c.row.(*job.Queue)
	return ok && *q == *want
}

// content is what a store holds after it was opened again.
type content struct {
	jobs map[job.ID]*job.Job
	rows map[rowKey]job.Row
}

type rowKey struct {
	table job.Table
	key   string
}

// event is what the disk tells the judge, in order.
type event struct {
	commit *commit
	reopen *content // the store was opened again and holds this
	safe   int      // then: the latest commit that was known to be on disk
}

// disk stands between one life of the engine and the store: it notes what is
// written, can be slow, and can lose its power.
type disk struct {
	*mem.Store
	clock *clock
	life  int
	fault fault

	begins, syncs *rand.Rand   // how long the next transaction, and the next sync, pauses
	pausing       atomic.Int32 // how many do

	mu      sync.Mutex // guards what follows
	events  []event
	issued  *int // number of the latest commit, of all lives
	safe    int  // number of the latest commit known to be on disk
	flows   chan struct{}
	cut     bool
	panicky string // what panicked inside a transaction
}

// fault is put in between on purpose, to show that it is found.
type fault uint8

const (
	noFault       fault = iota
	earlyAnswer         // a commit is called safe before it is
	chargedTwice        // a failure is charged twice
	forgottenRow        // the end of a hold is not written
	rottenPayload       // a payload is changed
)

func (f fault) String() string {
	return [...]string{"none", "early answer", "charged twice", "forgotten row", "rotten payload"}[f]
}

func newDisk(w *world, life int) *disk {
	dice := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(life)<<8|stream)) }
	return &disk{
		Store: w.mem, clock: w.clock, life: life, fault: w.fault, begins: dice(11), syncs: dice(13),
		issued: &w.issued, flows: make(chan struct{}),
	}
}

// pause waits until everything else is at rest, because fake time goes on only
// then. So only one of the engine's two loops moves at a time, in an order that
// the dice decide and not the scheduler: transactions begin at even
// nanoseconds, and commits become safe at odd ones.
func (d *disk) pause(dice *rand.Rand, odd int64) {
	d.pausing.Add(1)
	defer d.pausing.Add(-1)
	now := time.Now().UnixNano()
	until := (now+2)&^1 + 2*dice.Int64N(2) + odd
	<-time.After(time.Duration(until - now))
}

func (d *disk) stall() { d.flows = make(chan struct{}) }

func (d *disk) flow() { closeOnce(d.flows) }

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// sever ends the connection to the store: whoever is left of this life finds
// nothing but errors.
func (d *disk) sever() {
	d.mu.Lock()
	d.cut = true
	d.mu.Unlock()
	d.flow()
}

func (d *disk) dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cut
}

func (d *disk) safeNow() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.safe
}

// heard takes what happened since it was last asked.
func (d *disk) heard() (list []event, panicky string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, d.events = d.events, nil
	return list, d.panicky
}

// Update implements store.Store.
func (d *disk) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	if d.dead() {
		return nil, errPower
	}
	if d.pause(d.begins, 0); d.dead() {
		return nil, errPower
	}
	var rec *recorder
	var refused error
	inner, err := d.Store.Update(ctx, func(tx store.Tx) error {
		rec = &recorder{Tx: tx, fault: d.fault, bodies: map[job.ID][]byte{}}
		rec.commit = &commit{life: d.life, now: tx.Now(), steady: d.clock.Steady()}
		refused = d.guarded(fn, rec)
		return refused
	})
	if refused != nil || rec == nil {
		return nil, err
	}
	if len(rec.changes) == 0 && !rec.durable {
		return inner, err // the engine looked around
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.issued++
	rec.number, rec.failed = *d.issued, err != nil
	d.events = append(d.events, event{commit: rec.commit})
	if err != nil {
		return nil, err
	}
	return &waiter{d: d, inner: inner, number: rec.number, durable: rec.durable}, nil
}

// guarded runs a transaction; a panic ends the simulation, not the process.
func (d *disk) guarded(fn func(store.Tx) error, rec *recorder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.panicky = fmt.Sprintf("%v\n%s", p, debug.Stack())
			err = job.Errorf(job.Internal, "panic: %v", p)
		}
	}()
	return fn(rec)
}

// View implements store.Store.
func (d *disk) View(ctx context.Context, fn func(store.Reader) error) error {
	if d.dead() {
		return errPower
	}
	return d.Store.View(ctx, fn)
}

// Payloads implements store.Store.
func (d *disk) Payloads(refs ...job.ID) ([][]byte, error) {
	if d.dead() {
		return nil, errPower
	}
	return d.Store.Payloads(refs...)
}

// Reopen implements store.Store.
func (d *disk) Reopen(ctx context.Context) error {
	if d.dead() {
		return errPower
	}
	if err := d.Store.Reopen(ctx); err != nil {
		return err
	}
	held, err := scan(ctx, d.Store)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event{reopen: held, safe: d.safe})
	d.safe = *d.issued // what is left is on disk
	return err
}

// waiter is a commit on its way to a disk that may be slow.
type waiter struct {
	d       *disk
	inner   store.Commit
	number  int
	durable bool
}

// Wait implements store.Commit.
func (w *waiter) Wait() error {
	if !w.durable {
		return w.inner.Wait()
	}
	select {
	case <-w.d.flows:
	default:
		if w.d.fault == earlyAnswer {
			return nil
		}
		<-w.d.flows
	}
	if w.d.pause(w.d.syncs, 1); w.d.dead() {
		return errPower
	}
	err := w.inner.Wait()
	if err == nil {
		w.d.mu.Lock()
		defer w.d.mu.Unlock()
		w.d.safe = max(w.d.safe, w.number)
	}
	return err
}

// recorder notes what a transaction writes.
type recorder struct {
	store.Tx
	*commit
	fault  fault
	bodies map[job.ID][]byte
}

// Durable implements store.Tx.
func (r *recorder) Durable() {
	r.durable = true
	r.Tx.Durable()
}

// Write implements store.Tx.
func (r *recorder) Write(old, new *job.Job) error {
	if r.fault == chargedTwice && old != nil && new != nil && new.Attempts > old.Attempts {
		new = new.Clone()
		new.Attempts++
	}
	c := change{old: old, new: new}
	if new != nil {
		c.body = r.bodies[new.Payload]
	}
	r.changes = append(r.changes, c)
	return r.Tx.Write(old, new)
}

// PutPayload implements store.Tx.
func (r *recorder) PutPayload(ref job.ID, body []byte) error {
	r.bodies[ref] = body
	if r.fault == rottenPayload && len(body) > 3 {
		body = append([]byte("?"), body[1:]...)
	}
	return r.Tx.PutPayload(ref, body)
}

// AppendPayload implements store.Tx.
func (r *recorder) AppendPayload(ref job.ID, more []byte) error {
	if body, came := r.bodies[ref]; came {
		r.bodies[ref] = append(slices.Clip(body), more...)
	}
	return r.Tx.AppendPayload(ref, more)
}

// Set implements store.Tx.
func (r *recorder) Set(row job.Row) error {
	if g, ok := row.(*job.Gate); ok && g.Hold == 0 && r.forgets(row.Table(), row.Key()) {
		return nil
	}
	r.changes = append(r.changes, change{row: row, table: row.Table(), key: row.Key()})
	return r.Tx.Set(row)
}

// Unset implements store.Tx.
func (r *recorder) Unset(t job.Table, key string) error {
	if r.forgets(t, key) {
		return nil
	}
	r.changes = append(r.changes, change{table: t, key: key})
	return r.Tx.Unset(t, key)
}

// forgets reports whether a row is a held group, whose end of it is not written.
func (r *recorder) forgets(t job.Table, key string) bool {
	if r.fault != forgottenRow || t != job.Gates {
		return false
	}
	row, err := r.Row(t, key)
	g, ok := row.(*job.Gate)
	return err == nil && ok && g.Hold > 0
}

const pageMax = 1000

// scan reads everything a store holds.
func scan(ctx context.Context, s store.Store) (*content, error) {
	c := &content{jobs: map[job.ID]*job.Job{}, rows: map[rowKey]job.Row{}}
	err := s.View(ctx, func(r store.Reader) error {
		list, err := r.List(store.Filter{}, pageMax)
		if err != nil {
			return err
		}
		for _, j := range list {
			c.jobs[j.ID] = j
		}
		for t := range job.Tables {
			rows, err := r.Rows(t, "", pageMax)
			if err != nil {
				return err
			}
			for _, row := range rows {
				c.rows[rowKey{t, row.Key()}] = row
			}
		}
		return nil
	})
	return c, err
}
