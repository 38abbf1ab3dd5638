// Package tail reads the lines of files that others write, and goes on where it was after
// a restart. A file is known by its device and inode, and by the sum of its first bytes; how
// far it was taken is a cursor that is kept in the same transaction as its records. So
// nothing is read twice that was taken, and nothing is skipped that was not.
//
// It looks at the files every quarter of a second instead of asking the system to be told:
// that works on every file system, misses nothing when a queue of events overflows, and
// costs a few microseconds a file.
package tail

import (
	"context"
	"regexp"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
)

const (
	lookEvery      = 250 * time.Millisecond
	blockBytes     = 512 << 10
	batchBytesMax  = 2_048_000
	turnBlocksMost = 4 // of one file before the next has its turn
)

// Source reads the files of one input.
type Source struct {
	o        Options
	tagRegex *regexp.Regexp
	every    time.Duration
}

// Run reads until ctx ends or, with ExitOnEOF, until all is taken.
func (s *Source) Run(ctx context.Context, into connect.Intake) error {
	kept, err := into.Cursors(ctx)
	if err != nil {
		return err
	}
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	r := s.reader(kept)
	taken := make(chan struct{})
	go func() { // Run ends it by closing full
		defer close(taken)
		for b := range r.full {
			if err = into.Take(ctx, b.records()...); err != nil {
				cancel()
				return
			}
		}
	}()
	r.run(ctx)
	close(r.full)
	<-taken
	cancel()
	for _, f := range r.files {
		_ = f.f.Close() // it was only read
	}
	if outer.Err() != nil {
		return nil
	}
	return err
}

func (s *Source) reader(kept map[string][]byte) *reader {
	r := &reader{
		Source: s, files: map[string]*file{}, warned: map[string]bool{}, ignored: map[string]bool{}, kept: map[string]cursor{},
		block: make([]byte, max(blockBytes, s.o.BufferChunkSize, s.o.BufferMaxSize+2)),
		batch: &batch{}, full: make(chan *batch),
	}
	_, again := kept[marker]
	r.first = !again
	for key, value := range kept {
		if c, ok := decodeCursor(value); ok {
			r.kept[key] = c
		}
	}
	return r
}

// reader is a run of a source. It belongs to one goroutine; a second one has the batch
// that is being taken.
type reader struct {
	*Source
	files  map[string]*file  // by identity
	order  []*file           // that of their turns
	kept   map[string]cursor // of files that were not seen in this run yet
	warned map[string]bool   // paths of which was said that they cannot be read

	ignored map[string]bool // by identity: what is too old
	started bool            // the first look for files is done
	first   bool            // nothing was looked for in any run
	refresh time.Time

	block  []byte
	prefix []byte // of the events of a block
	batch  *batch // being filled
	other  *batch // free, or being taken
	full   chan *batch
}

func (r *reader) run(ctx context.Context) {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	r.look(ctx)
	for ctx.Err() == nil {
		more := r.read(ctx)
		done := r.o.ExitOnEOF && !more && r.finish()
		if more && !r.batch.isFull() {
			select { // to look at files now and then
			case <-tick.C:
				r.look(ctx)
			default:
			}
			continue
		}
		if done && r.batch.empty() {
			return
		}
		r.hand(ctx, tick.C)
	}
}

// hand gives the batch away, or waits for the next look at the files.
func (r *reader) hand(ctx context.Context, tick <-chan time.Time) {
	full := r.full
	if r.batch.empty() {
		full = nil
	}
	select {
	case full <- r.batch:
		if r.batch, r.other = r.other, r.batch; r.batch == nil {
			r.batch = &batch{}
		}
		r.batch.reset() // whoever takes has received another, so this one is taken
	case <-tick:
		r.look(ctx)
	case <-ctx.Done():
	}
}

// read gives each file a turn and reports whether there is more to read.
func (r *reader) read(ctx context.Context) (more bool) {
	now := r.o.Now()
	for i := 0; i < len(r.order) && ctx.Err() == nil; i++ {
		f := r.order[i]
		for turn := 0; turn < turnBlocksMost && f.active && !f.stuck; turn++ {
			if r.batch.isFull() {
				r.order = append(r.order[i:], r.order[:i]...) // this one goes on
				return true
			}
			r.fill(f, now)
		}
		r.settle(f, now)
		more = more || f.active && !f.stuck
	}
	return more
}

// finish ends all lines that wait, because nothing more is read, and reports whether the
// batch has room for them.
func (r *reader) finish() bool {
	for _, f := range r.order {
		if !f.stuck && !r.end(f, r.o.Now()) {
			return false
		}
	}
	return true
}
