//go:build unix

package tail

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
)

// counter only counts.
type counter struct{ records, bytes, takes int }

func (*counter) Cursors(context.Context) (map[string][]byte, error) { return nil, nil }
func (c *counter) Take(_ context.Context, list ...connect.Records) error {
	c.takes++
	for _, l := range list {
		c.records += l.Count
		c.bytes += len(l.Events)
	}
	return nil
}

func BenchmarkLines(b *testing.B) {
	const lines = 1 << 18
	d := dir{b, b.TempDir()}
	d.write("a.log", strings.Repeat(strings.Repeat("x", 149)+"\n", lines))
	s, err := New(Options{Path: []string{d.path + "/*.log"}, Tag: "t", ReadFromHead: true, ExitOnEOF: true, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(lines * 150)
	b.ReportAllocs()
	c := &counter{}
	for b.Loop() {
		if err := s.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	if c.records != b.N*lines {
		b.Fatalf("%d lines were taken, want %d", c.records, b.N*lines)
	}
	b.ReportMetric(float64(c.records)/b.Elapsed().Seconds(), "lines/s")
	b.ReportMetric(float64(c.bytes)/float64(c.takes), "B/take")
}

// BenchmarkIdle is what a look at files costs to which nobody writes: four a second.
func BenchmarkIdle(b *testing.B) {
	d := dir{b, b.TempDir()}
	for i := range 1000 {
		d.write(fmt.Sprintf("%d.log", i), "x\n")
	}
	s, err := New(Options{Path: []string{d.path + "/*.log"}, Tag: "t", ReadFromHead: true, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	r := s.reader(nil)
	r.look(b.Context())
	for r.read(b.Context()) {
	}
	b.ReportAllocs()
	for b.Loop() {
		r.look(b.Context())
		r.read(b.Context())
	}
	for _, f := range r.files {
		_ = f.f.Close()
	}
}
