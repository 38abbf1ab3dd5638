package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// BenchmarkMessages takes b.N messages in, ten to a group and 1,000 to a call,
// and delivers them to a sink in this process: each of the messages of a group is
// settled by itself, or all of a turn together. For the figures of the
// documentation: -benchtime 1000000x. intake/s beside plain/s is what the door
// costs over bulks of plain jobs.
func BenchmarkMessages(b *testing.B) {
	for _, send := range []string{"message", "batch"} {
		b.Run(send, func(b *testing.B) {
			clock := engine.SystemClock()
			st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Cache: 256 << 20, Logf: b.Logf})
			if err != nil {
				b.Fatal(err)
			}
			e := part.New(st, clock, rand.Uint64, slog.New(slog.DiscardHandler), engine.Options{Server: rule.DefaultServer()})
			if err := e.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			done := &counting{all: int64(b.N), end: make(chan struct{})}
			d := New(Options{Engine: e, Log: slog.New(slog.DiscardHandler), Sinks: func(*HTTP, bool) (connect.Sink, error) { return done, nil }})
			s, err := ReadSettings([]byte(`{"group":{"json":".order"},"batch":{"mode":"fail_first","query":"none"},"deliver":{"http":{"url":"http://x/","send":"` + send + `","concurrent":1000}}}`))
			if err == nil {
				err = d.Set(b.Context(), "in", s, job.Actor{})
			}
			if err == nil {
				_, err = e.Desk.SetQueue(b.Context(), "in", func(q *job.Queue) error { q.Paused = true; return nil }, job.Actor{})
			}
			if err != nil {
				b.Fatal(err)
			}
			const bulk = 1000
			x := d.Get("in")
			took := func(put func(from, n int) error) float64 {
				began := time.Now()
				for from := 0; from < b.N; from += bulk {
					if err := put(from, min(bulk, b.N-from)); err != nil {
						b.Fatal(err)
					}
				}
				return float64(b.N) / time.Since(began).Seconds()
			}
			groups := max(b.N/10, 1)
			body := func(i int) []byte {
				return fmt.Appendf(nil, `{"order":"o-%d","n":%d,"what":"flight booked"}`, i%groups, i)
			}
			b.ResetTimer()
			plain := took(func(from, n int) error {
				list := make([]engine.NewJob, n)
				for i := range list {
					list[i] = engine.NewJob{Job: job.Job{Queue: "plain", Type: "t", RetainDone: job.Unset, RetainDead: job.Unset}, Payload: body(from + i)}
				}
				_, err := e.Put(b.Context(), list)
				return err
			})
			intake := took(func(from, n int) error {
				list := make([]Message, n)
				for i := range list {
					list[i].Payload = body(from + i)
					list[i].put("X-CORRELATE-ID", fmt.Sprint("m", from+i))
					list[i].seal()
				}
				return x.NewIntake(b.Context(), list, e.Now()).Put(b.Context(), e.Put)
			})
			began := time.Now()
			if _, err := e.Desk.SetQueue(b.Context(), "in", func(q *job.Queue) error { q.Paused = false; return nil }, job.Actor{}); err != nil {
				b.Fatal(err)
			}
			<-done.end
			b.ReportMetric(plain, "plain/s")
			b.ReportMetric(intake, "intake/s")
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "delivered/s")
			b.StopTimer()
			d.Stop()
			if err := e.Stop(b.Context()); err != nil {
				b.Error(err)
			}
			if err := st.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// counting is a sink that takes everything.
type counting struct {
	got, all int64 // messages
	end      chan struct{}
}

func (c *counting) Deliver(_ context.Context, b *connect.Batch) []connect.Result {
	if atomic.AddInt64(&c.got, int64(len(b.Messages))) == c.all {
		close(c.end)
	}
	return make([]connect.Result, len(b.Messages))
}

func (c *counting) Close() error { return nil }
