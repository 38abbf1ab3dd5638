// Package local holds the sources and sinks of this process and its machine: dummies, the
// standard streams, files.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// DummyOptions are what a dummy makes, and how often. Their names are those of the original.
type DummyOptions struct {
	Tag      string
	Dummy    string // JSON; "" = {"message":"dummy"}
	Metadata string // JSON; "" = {}

	Rate         int // of ticks a second, without an interval; 0 = 1
	IntervalSec  int
	IntervalNsec int
	Samples      int // ticks, after which it ends; 0 = without end
	Copies       int // of the record at each tick; 0 = 1

	FixedTimestamp bool // all have the time of the start
	StartTimeSec   int  // of the first record; -1 = now
	StartTimeNsec  int  // -1 = none
	FlushOnStartup bool // the first tick is at once

	Now func() time.Time
}

// Dummy makes the same record again and again.
type Dummy struct {
	o          DummyOptions
	interval   time.Duration
	meta, body []byte
}

// lateMost is how much a dummy makes up for after it had to wait.
const lateMost = time.Second

// NewDummy makes a source. The error names all options that are wrong.
func NewDummy(o DummyOptions) (*Dummy, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	d := &Dummy{o: o}
	for _, j := range []struct {
		name, text, zero string
		to               *[]byte
	}{{"dummy", o.Dummy, `{"message":"dummy"}`, &d.body}, {"metadata", o.Metadata, "{}", &d.meta}} {
		if j.text == "" {
			j.text = j.zero
		}
		raw, err := record.AppendFromJSON(nil, []byte(j.text))
		if err != nil || !record.IsMap(raw) {
			fault("%s: %q is no object of JSON", j.name, j.text)
		}
		*j.to = raw
	}
	if bytes.Equal(d.meta, msgp.AppendMapHeader(nil, 0)) {
		d.meta = nil
	}
	for _, n := range []struct {
		name        string
		value, most int
	}{
		{"rate", o.Rate, 1e9},
		{"interval_sec", o.IntervalSec, 1e9},
		{"interval_nsec", o.IntervalNsec, 1e9},
		{"samples", o.Samples, 1 << 62},
		{"copies", o.Copies, 1e6},
		{"start_time_sec", max(o.StartTimeSec, 0), 1 << 40},
		{"start_time_nsec", max(o.StartTimeNsec, 0), 999_999_999},
	} {
		if n.value < 0 || n.value > n.most {
			fault("%s: %d is not between 0 and %d", n.name, n.value, n.most)
		}
	}
	d.o.Copies = max(o.Copies, 1)
	d.interval = time.Duration(o.IntervalSec)*time.Second + time.Duration(o.IntervalNsec)
	if d.interval == 0 {
		d.interval = max(time.Second/time.Duration(max(o.Rate, 1)), 1)
	}
	return d, errors.Join(faults...)
}

// Run makes records until ctx ends or all samples are taken.
func (d *Dummy) Run(ctx context.Context, into connect.Intake) error {
	const wakeEvery = 10 * time.Millisecond // several ticks at once, if they are more often
	start := d.o.Now()
	next := start.Add(d.interval)
	if d.o.FlushOnStartup {
		next = start
	}
	b := connect.Bundle{Records: connect.Records{Tag: d.o.Tag}, Into: into}
	timer := time.NewTimer(next.Sub(start))
	defer timer.Stop()
	for left := d.o.Samples; ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		now := d.o.Now()
		if now.Sub(next) > lateMost {
			next = now.Add(-lateMost)
		}
		for ; !next.After(now) && !b.Full(); next = next.Add(d.interval) {
			d.tick(&b, start, now)
			if left--; left == 0 {
				break
			}
		}
		if err := b.Take(ctx); err != nil && ctx.Err() == nil {
			return err
		} else if left == 0 {
			return nil
		}
		wait := next.Sub(now)
		if d.interval < wakeEvery {
			wait = max(wait, wakeEvery)
		}
		timer.Reset(wait)
	}
}

// tick makes the records of one tick.
func (d *Dummy) tick(b *connect.Bundle, start, now time.Time) {
	at := now
	if d.o.StartTimeSec >= 0 || d.o.StartTimeNsec >= 0 {
		first := time.Unix(int64(max(d.o.StartTimeSec, 0)), int64(max(d.o.StartTimeNsec, 0)))
		at = first.Add(now.Sub(start))
		start = first
	}
	if d.o.FixedTimestamp {
		at = start
	}
	for range d.o.Copies {
		b.Events = record.AppendEvent(b.Events, record.At(at), d.meta, d.body)
		b.Count++
	}
}
