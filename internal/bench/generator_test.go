package bench

import (
	"os"
	"testing"
	"time"
)

// BenchmarkGenerator drives single enqueues into a net/http handler that does
// nothing, in a process of its own: what remains is the cost of HTTP and of
// the generator.
func BenchmarkGenerator(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	s, err := startServer(b.Context(), self, []string{"trivial"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.kill()
	r := &run{opts: Default(), report: newReport(Default(), Machine{})}
	r.opts.Window = 3 * time.Second
	for b.Loop() {
		w, _, err := r.enqueueFor(b.Context(), s, &queue{name: "q"}, 1, r.opts.Connections)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(w.rate, "requests/s")
		b.ReportMetric(w.cost.BenchSeconds/float64(w.cost.Jobs)*1e6, "generator-us/request")
		b.ReportMetric(w.cost.ServerSeconds/float64(w.cost.Jobs)*1e6, "server-us/request")
	}
}
