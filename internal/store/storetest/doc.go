// Package storetest is what every store must pass: a suite by subject
// (Exercise), random histories on two stores that must give the same answers
// (Compare), and the invariants of a whole store, whatever happened to it
// (Check). It uses a store through its contract only.
//
// Jobs in here are made and changed by rule.Step, so they are legal ones, and
// what a step asks for is written as the engine writes it (world.go).
package storetest

import (
	"flag"
	"testing"

	"github.com/reprisehq/reprise/internal/store"
)

var seedFlag = flag.Uint64("seed", 0, "replay the one history of this seed")

// Seeds returns n seeds for Compare, or the one that -seed names.
func Seeds(n int) []uint64 {
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(i) + 1
	}
	return list
}

// subject is one thing a store must do.
type subject struct {
	name string
	run  func(x *site)
}

// Exercise runs the suite. open returns an empty store and closes it when the
// test is over.
func Exercise(t *testing.T, open func(t *testing.T) store.Store) {
	for _, area := range []struct {
		name     string
		subjects []subject
	}{
		{"write", writes},
		{"line", lines},
		{"gate", gates},
		{"copy", copies},
		{"session", sessions},
		{"hand", hands},
		{"key", keys},
		{"holder", holders},
		{"list", lists},
		{"count", counts},
		{"dead", deads},
		{"row", rows},
		{"receipt", receipts},
		{"payload", payloads},
		{"failure", failures},
		{"reopen", reopens},
	} {
		for _, s := range area.subjects {
			t.Run(area.name+"/"+s.name, func(t *testing.T) {
				x := &site{T: t, world: newWorld(1), s: open(t)}
				s.run(x)
				if x.closed {
					return
				}
				if err := Check(t.Context(), x.s); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}
