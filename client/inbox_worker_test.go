package client

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/wire"
)

// turnOf is a server with one turn of messages m1 to m4, whose settle of m1 is
// answered with a verdict.
type turnOf struct {
	*fake
	first   wire.Verdict
	over    map[string]bool // leases that are over
	settled []string
	leases  int
}

func (s *turnOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/lease"):
		var ask wire.InboxLease
		s.read(r, &ask) // else nobody hears that the client left
		turn := wire.InboxTurn{Group: "g", Messages: []wire.InboxLeased{}}
		if s.leases++; s.leases == 1 {
			for _, id := range []string{"m1", "m2", "m3", "m4"} {
				turn.Messages = append(turn.Messages, wire.InboxLeased{InboxMessage: wire.InboxMessage{ID: id}, Lease: "t" + id})
			}
		} else {
			<-r.Context().Done()
		}
		s.write(w, 200, turn)
	case r.URL.Path == "/jobs/settle":
		var list []wire.Settle
		s.read(r, &list)
		v := wire.Verdict{ID: list[0].ID, Status: "completed"}
		if s.settled = append(s.settled, v.ID); v.ID == "m1" {
			v = s.first
		}
		s.write(w, 200, wire.Verdicts{Verdicts: []wire.Verdict{v}})
	default:
		var list wire.Extensions
		s.read(r, &list)
		var out wire.Verdicts
		for _, x := range list.Leases {
			v := wire.Verdict{ID: x.ID, Status: "in_flight"}
			if s.over[x.ID] {
				v = wire.Verdict{ID: x.ID, Code: wire.CodeSuperseded}
			}
			out.Verdicts = append(out.Verdicts, v)
		}
		s.write(w, 200, out)
	}
}

// A worker does not handle what went back while it handled another message.
func TestAnInboxWorkerLeavesOutWhatWasRecalled(t *testing.T) {
	for name, c := range map[string]struct {
		first wire.Verdict
		over  map[string]bool
	}{
		"the verdict says so":                     {first: wire.Verdict{ID: "m1", Status: "completed", Recalled: []string{"m2", "m4"}}},
		"an answer was lost, and the job is gone": {wire.Verdict{ID: "m1", Code: wire.CodeNotFound}, map[string]bool{"m2": true, "m4": true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &turnOf{fake: newWire(t.Errorf), first: c.first, over: c.over}
				server := &http.Server{Handler: s}
				done := make(chan struct{})
				go func() { defer close(done); _ = server.Serve(s.ln) }()
				cl, err := New("http://fake.test/", Options{dial: s.ln.dial})
				if err != nil {
					t.Fatal(err)
				}
				var handled []string
				worker, err := NewInboxWorker(cl, "in", func(_ context.Context, m *wire.InboxMessage) error {
					handled = append(handled, m.ID)
					return nil
				}, InboxWorkerOptions{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- worker.Run(ctx) }()
				synctest.Wait()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if got := strings.Join(handled, " ") + "; " + strings.Join(s.settled, " "); got != "m1 m3; m1 m3" {
					t.Errorf("handled and settled: %s", got)
				}
				cl.Close()
				_ = server.Close()
				<-done
			})
		})
	}
}
