package jq

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"time"
)

// An evaluation that takes longer than watchEvery is watched: when the memory
// of the process has grown by growthMax since, it ends. That counts what others
// took meanwhile, but few evaluations ever get that old.
const (
	watchEvery = 4 * time.Millisecond
	growthMax  = 128 << 20
)

// watch ends an evaluation at its limits.
type watch struct {
	limit time.Duration
	end   context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	gone  time.Duration
	over  bool
	base  uint64
}

// begin starts watching and returns what ends it.
func (w *watch) begin() (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.step(), w.look)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
		w.timer.Stop()
	}
}

func (w *watch) step() time.Duration { return min(w.limit-w.gone, watchEvery) }

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone += w.step()
	memory := heap()
	if w.base == 0 {
		w.base = memory
	}
	switch {
	case w.over:
	case w.gone >= w.limit:
		w.end(fmt.Errorf("it took longer than %v (%w)", w.limit, ErrBound))
	case memory > w.base+growthMax:
		w.end(fmt.Errorf("it needs too much memory (%w)", ErrBound))
	default:
		w.timer.Reset(w.step())
	}
}

// heap is how many bytes the process has on its heap.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
