package engine

import (
	"slices"
	"sync"
)

// op is one command on its way through the committer.
type op struct {
	run   func(*Tx) error // refusals are errors; it may run twice
	err   error
	bytes int
	final bool
	fault bool // it is at fault, and refused
	done  chan struct{}
}

// commands wait for the committer, in their order.
type commands struct {
	kick  chan struct{}
	spare sync.Pool // of *op that nobody waits for

	mu    sync.Mutex // guards what follows
	list  []*op
	final bool // the last one has come
}

func (q *commands) init() {
	q.kick = make(chan struct{}, 1)
	q.spare.New = func() any { return &op{done: make(chan struct{}, 1)} }
}

// make is a new command.
func (q *commands) make(f func(*Tx) error) *op {
	o := q.spare.Get().(*op)
	o.run, o.err, o.bytes, o.final, o.fault = f, nil, 0, false, false
	return o
}

// poke wakes the committer.
func (q *commands) poke() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// add takes a command in, unless the last one has come.
func (q *commands) add(o *op) bool {
	q.mu.Lock()
	if q.final {
		q.mu.Unlock()
		return false
	}
	q.list = append(q.list, o)
	first := len(q.list) == 1
	q.mu.Unlock()
	if first {
		q.poke()
	}
	return true
}

// end takes the last command in. It reports whether there was none yet.
func (q *commands) end(f func(*Tx) error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.final {
		return false
	}
	q.final = true
	last := q.make(f)
	last.final = true
	q.list = append(q.list, last)
	return true
}

// ended reports whether the last command has come.
func (q *commands) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.final
}

// waiting reports whether there are any.
func (q *commands) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) > 0
}

// take is the next batch: up to most commands, the last of which is the first behind so
// many bytes.
func (q *commands) take(most, bytesMax int) (list []*op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.list) && n < most && (n == 0 || bytes < bytesMax) {
		bytes += q.list[n].bytes
		n++
	}
	if n == len(q.list) {
		list, q.list = q.list, nil
		return list
	}
	list = q.list[:n:n]
	q.list = append([]*op(nil), q.list[n:]...)
	return list
}

// putBack makes commands that were taken the next ones.
func (q *commands) putBack(list []*op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(slices.Clone(list), q.list...)
}
