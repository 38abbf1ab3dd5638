package embedded

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/reprisehq/reprise/internal/job"
)

func pebbleOptions(h *handle, cache *pebble.Cache, s *Store) *pebble.Options {
	o := &pebble.Options{
		FS:                          &logFS{FS: h.fence, log: &h.log},
		Cache:                       cache,
		FormatMajorVersion:          pebble.FormatWALSyncChunks, // tells a torn tail from a corrupt middle
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		Logger:                      &logger{handle: h, logf: s.opts.Logf},
	}
	o.EventListener = &pebble.EventListener{
		// Whoever asked is told as well: what else is there goes on.
		DataCorruption:  func(info pebble.DataCorruptionInfo) { s.damage.found(info.Path, info.Details, s.opts.Logf) },
		BackgroundError: func(err error) { s.backgroundError(h, err) },
	}
	o.Levels[0].FilterPolicy = bloom.FilterPolicy(10) // receipts are looked up and mostly absent
	return o
}

// logger turns Pebble's "end the process" into a poisoned handle.
type logger struct {
	handle *handle
	logf   func(string, ...any)
}

// Infof implements pebble.Logger: Pebble's diary is not for operators.
func (l *logger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l *logger) Errorf(format string, args ...any) {
	if l.handle.poison.Load() == nil {
		l.logf("%s", firstLine(fmt.Sprintf(format, args...)))
	}
}

// Fatalf implements pebble.Logger. Pebble expects it not to return; we let it
// go on behind the fence, where it can do no harm, and give the handle up.
func (l *logger) Fatalf(format string, args ...any) {
	for _, a := range args {
		if err, ok := a.(error); ok && pebble.IsCorruptionError(err) {
			l.handle.giveUp(err, l.logf)
			return
		}
	}
	l.handle.giveUp(errors.New(firstLine(fmt.Sprintf(format, args...))), l.logf)
}

// giveUp poisons the handle for a reason that no caller is told of directly,
// and cuts it off from its files.
func (h *handle) giveUp(err error, logf func(string, ...any)) {
	if h.poison.Load() != nil {
		return
	}
	if pebble.IsCorruptionError(err) {
		err = corrupt("%s", firstLine(err.Error()))
	}
	logf("%s", firstLine(err.Error()))
	h.abandon(err)
}

// reason is the corruption that made the handle useless, if that is why err
// came to be.
func (h *handle) reason(err error) error {
	if p := h.poison.Load(); err != nil && p != nil && job.KindOf(p.Cause) == job.Corrupt {
		return p.Cause
	}
	return err
}

// firstLine drops the stack that Pebble's errors print.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// ticker calls f at an interval until stopped.
type ticker struct {
	done chan struct{}
	end  sync.Once
	wait sync.WaitGroup
}

func startTicker(every time.Duration, f func()) *ticker {
	t := &ticker{done: make(chan struct{})}
	t.wait.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-t.done:
				return
			}
		}
	})
	return t
}

func (t *ticker) stop() {
	t.end.Do(func() { close(t.done) })
	t.wait.Wait()
}

// syncNow makes everything written so far durable.
func (s *Store) syncNow() {
	h := s.db.Load()
	if h.log.unsynced.Load() == 0 {
		return
	}
	h.log.need.Add(1)
	defer h.log.need.Add(-1)
	_ = h.guarded(func(db *pebble.DB) error {
		err := h.recovering(func() error { return db.LogData(nil, pebble.Sync) })
		if err != nil {
			h.abandon(err)
		}
		return err
	})
}
