package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/store"
)

// peeking looks around at the end of the function of the next transaction, when
// nothing is committed yet and the store may run it again.
type peeking struct {
	store.Store
	peek func()
}

func (p *peeking) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	defer func() { p.peek = nil }()
	return p.Store.Update(ctx, func(tx store.Tx) error {
		err := fn(tx)
		if p.peek != nil {
			p.peek()
		}
		return err
	})
}

func TestAStreamHearsOfItsEndOnlyAfterTheTransaction(t *testing.T) { // store.Update: no effects outside its Tx
	for name, end := range map[string]func(*rig){
		"the worker connects again": func(r *rig) { r.Named("w", 1) },
		"the server stops":          func(r *rig) { r.End() },
	} {
		t.Run(name, func(t *testing.T) {
			st := &peeking{}
			scenario(t, func(r *rig) {
				w := r.Named("w", 1)
				r.Pass(0)
				gone, cancel := context.WithCancel(r.Context())
				cancel()
				st.peek = func() {
					if _, err := w.Next(gone); errors.Is(err, engine.ErrStreamEnded) {
						r.Error("the stream was ended by a transaction that is not committed")
					}
				}
				end(r)
				w.IsOver()
			}, func(r *rig) { r.Around = func(s store.Store) store.Store { st.Store = s; return st } })
		})
	}
}

func TestAStopWhoseLastCommitFailsEndsTheStreams(t *testing.T) {
	for seed := range uint64(8) { // by its Update, or by its Wait
		scenario(t, func(r *rig) {
			r.AddAll("q", "a")
			w := r.Anonymous(1)
			w.Gets("a")
			r.Mem.FailNextCommit(errDisk)
			r.End()
			w.IsOver()
		}, func(r *rig) { r.Seed = seed })
	}
}
