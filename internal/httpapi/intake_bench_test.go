package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// BenchmarkIntake takes b.N jobs or messages in through the handler, 1,000 to a
// request, one request after the other, each answered when it is on disk: jobs
// without and with an idempotency key, messages of an inbox, ten to a group, without
// and with an id, and those with an id once more, all of which are here. What is
// measured is from the body to the answer. For the figures of the documentation:
// -benchtime 1000000x.
func BenchmarkIntake(b *testing.B) {
	for _, c := range []struct {
		name, path, list string
		again            bool
		form             string // of one: its group, its number twice
	}{
		{"jobs", "/jobs/bulk", "jobs", false, `{"queue":"plain","type":"t","payload":{"order":"o-%d","n":%d,"what":"flight booked"}}`},
		{"jobs with keys", "/jobs/bulk", "jobs", false, `{"queue":"plain","type":"t","payload":{"order":"o-%d","n":%d,"what":"flight booked"},"idempotency_key":"m%[2]d"}`},
		{"messages", "/inboxes/in/messages/bulk", "messages", false, `{"payload":{"order":"o-%d","n":%d,"what":"flight booked"}}`},
		{"messages with ids", "/inboxes/in/messages/bulk", "messages", true, `{"headers":{"X-CORRELATE-ID":"m%[2]d"},"payload":{"order":"o-%[1]d","n":%[2]d,"what":"flight booked"}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			h, stop := onDiskHandler(b)
			defer stop()
			body := &bytes.Reader{}
			r, err := http.NewRequestWithContext(b.Context(), "POST", "http://127.0.0.1:7890"+c.path, io.NopCloser(body))
			if err != nil {
				b.Fatal(err)
			}
			r.Header["Content-Type"] = []string{"application/json"}
			w := &void{head: http.Header{}}
			groups := max(b.N/10, 1)
			var text []byte
			round := func(name string, status int) {
				var took, used time.Duration
				for from := 0; from < b.N; from += 1000 {
					text = append(text[:0], `{"`+c.list+`":[`...)
					for i := from; i < min(from+1000, b.N); i++ {
						if i > from {
							text = append(text, ',')
						}
						text = fmt.Appendf(text, c.form, i%groups, i)
					}
					text = append(text, `]}`...)
					body.Reset(text)
					r.ContentLength = int64(len(text))
					clear(w.head)
					began, before := time.Now(), cpuTime()
					h.ServeHTTP(w, r)
					took += time.Since(began)
					used += cpuTime() - before
					if w.status != status {
						b.Fatalf("answered %d", w.status)
					}
				}
				b.ReportMetric(float64(b.N)/took.Seconds(), name+"/s")
				b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), name+"-cpu-ns")
			}
			b.ResetTimer()
			round("new", http.StatusCreated)
			if c.again {
				round("again", http.StatusOK)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// onDiskHandler is the handler over an engine whose store is on disk, by the clock
// of the machine, with the inbox "in".
func onDiskHandler(b *testing.B) (h http.Handler, stop func()) {
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Cache: 256 << 20, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	e := part.New(st, clock, rand.Uint64, slog.New(slog.DiscardHandler), engine.Options{Server: rule.DefaultServer()})
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	d := inboxesOf(b, e)
	s, err := inbox.ReadSettings([]byte(ordersInbox))
	if err == nil {
		err = d.Set(b.Context(), "in", s, job.Actor{})
	}
	if err != nil {
		b.Fatal(err)
	}
	return httpapi.New(httpapi.Options{Engine: e, Log: slog.New(slog.DiscardHandler), Inboxes: d}), func() {
		d.Stop()
		if err := e.Stop(b.Context()); err != nil {
			b.Error(err)
		}
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	}
}

// cpuTime is what this process has used on all cores.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
