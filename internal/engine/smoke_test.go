package engine_test

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

func TestSmoke(t *testing.T) {
	clock := engine.SystemClock()
	fs := vfs.NewMem()
	st, err := embedded.Open(embedded.Options{Dir: "d", FS: fs, Now: clock.Wall, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	e := engine.New(st, clock, rnd.Uint64, slog.Default(), engine.Options{Server: rule.DefaultServer(), Reattach: 30 * job.Second})
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := e.Stream(t.Context(), engine.StreamOptions{Prefetch: 3})
	if err != nil {
		t.Fatal(err)
	}
	var list []engine.NewJob
	for range 5 {
		list = append(list, engine.NewJob{Job: job.Job{Queue: "q", Type: "t", Priority: 5, RetainDone: job.Unset, RetainDead: job.Unset}, Payload: []byte("{}")})
	}
	added, err := e.Put(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for got < 5 {
		ds, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if d.Job.ID != added[got].ID || string(d.Payload) != "{}" {
				t.Fatalf("got %v", d)
			}
			got++
			v, err := e.Settle(t.Context(), []engine.Settle{{ID: d.Job.ID, Outcome: job.OK}})
			if err != nil || v[0].Err != nil {
				t.Fatal(err, v)
			}
		}
	}
	names, err := e.Queues(t.Context())
	t.Log(names, err)
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
