package mem

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// tx changes the state in place and remembers how to do it once more, for the
// durable state, and how to take it back.
type tx struct {
	reader
	redo    []func(*state)
	undo    []func(*state)
	touched map[job.ID]bool // payloads put, and those a job let go of
	durable bool
}

func (s *Store) begin() *tx {
	return &tx{reader: reader{state: s.state, now: s.clock.now()}, touched: map[job.ID]bool{}}
}

// run runs fn. After an error or a panic of fn everything is as it was.
func (t *tx) run(fn func(store.Tx) error) (err error) {
	done := false
	defer func() {
		if !done || err != nil {
			t.rollBack()
		}
	}()
	err = fn(t)
	done = true
	if err == nil {
		t.dropPayloads()
	}
	return err
}

func (t *tx) rollBack() {
	for _, f := range slices.Backward(t.undo) {
		f(t.state)
	}
	t.undo, t.redo = nil, nil
}

// dropPayloads forgets the payloads that lost their last job (I8).
func (t *tx) dropPayloads() {
	if len(t.touched) == 0 {
		return
	}
	refs := t.state.referred()
	for ref := range t.touched {
		if !refs[ref] {
			unset(t, payloadsOf, ref)
		}
	}
}

// set puts a value into one of the maps of the state.
func set[K comparable, V any](t *tx, in func(*state) map[K]V, k K, v V) {
	remember(t, in, k)
	t.do(func(s *state) { in(s)[k] = v })
}

func unset[K comparable, V any](t *tx, in func(*state) map[K]V, k K) {
	remember(t, in, k)
	t.do(func(s *state) { delete(in(s), k) })
}

func remember[K comparable, V any](t *tx, in func(*state) map[K]V, k K) {
	before, had := in(t.state)[k]
	t.undo = append(t.undo, func(s *state) {
		if had {
			in(s)[k] = before
		} else {
			delete(in(s), k)
		}
	})
}

func (t *tx) do(f func(*state)) {
	t.redo = append(t.redo, f)
	f(t.state)
}

// Write implements store.Tx. An old that is not what the store holds is
// refused and changes nothing.
func (t *tx) Write(old, new *job.Job) error {
	if old == nil && new == nil || old != nil && new != nil && old.ID != new.ID {
		return job.Errorf(job.Internal, "a write speaks of one job")
	}
	id := cmp.Or(old, new).ID
	if !sameJob(old, t.state.jobs[id]) {
		return job.Errorf(job.Internal, "writing job %s: what the writer read is not what the store holds", id)
	}
	if new != nil {
		if owner, taken := t.Owner(rule.KeyOf(new)); taken && owner != id {
			return job.Errorf(job.Internal, "job %s would stand under the key of job %s", id, owner)
		}
	}
	if old != nil && (new == nil || new.Payload != old.Payload) {
		t.touch(old.Payload)
	}
	if was := old.ResultRef(); was != new.ResultRef() {
		t.touch(was)
	}
	if new != nil {
		set(t, jobsOf, id, new.Clone())
		return nil
	}
	unset(t, jobsOf, id)
	for _, number := range t.state.numbersOf(id) {
		unset(t, failuresOf, failureKey{id, number})
	}
	return nil
}

func (t *tx) touch(ref job.ID) {
	if !ref.IsZero() {
		t.touched[ref] = true
	}
}

// PutPayload implements store.Tx.
func (t *tx) PutPayload(ref job.ID, body []byte) error {
	if ref.IsZero() {
		return job.Errorf(job.Internal, "a payload needs a name")
	}
	t.touch(ref)
	set(t, payloadsOf, ref, copyOf(body))
	return nil
}

// AppendPayload implements store.Tx.
func (t *tx) AppendPayload(ref job.ID, more []byte) error {
	body := t.state.payloads[ref]
	if body == nil {
		return job.Errorf(job.Internal, "payload %s grows and is not there", ref)
	}
	set(t, payloadsOf, ref, append(copyOf(body), more...))
	return nil
}

// copyOf is never nil: a payload that is empty is not a payload that is gone.
func copyOf(body []byte) []byte { return append([]byte{}, body...) }

// PutFailure implements store.Tx. A job that does not exist has no failures.
func (t *tx) PutFailure(id job.ID, f *job.Failure) error {
	if t.state.jobs[id] == nil || f.Number == 0 {
		return job.Errorf(job.Internal, "failure record %d of job %s belongs to nobody", f.Number, id)
	}
	set(t, failuresOf, failureKey{id, f.Number}, *f)
	return nil
}

// DropFailure implements store.Tx.
func (t *tx) DropFailure(id job.ID, number uint32) error {
	unset(t, failuresOf, failureKey{id, number})
	return nil
}

// Set implements store.Tx.
func (t *tx) Set(row job.Row) error {
	set(t, rowsOf, rowKey{row.Table(), row.Key()}, row)
	return nil
}

// Unset implements store.Tx.
func (t *tx) Unset(table job.Table, key string) error {
	unset(t, rowsOf, rowKey{table, key})
	return nil
}

// Durable implements store.Tx.
func (t *tx) Durable() { t.durable = true }

func sameJob(a, b *job.Job) bool { return reflect.DeepEqual(a, b) }
