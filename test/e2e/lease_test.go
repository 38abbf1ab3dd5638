package e2e

import (
	"fmt"
	"testing"
	"time"

	reprise "github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// Unary leases by the Go client against the built binary (jobs.md, core.md 4):
// they survive a kill, are kept by token and by worker, and lapse unless they are.
func TestLeasesOfTheGoClientSurviveAKillAndLapse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	c, err := reprise.New(s.url, reprise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close() }()
	put := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := reprise.EnqueueJSON(t.Context(), c, "q", "t", i); err != nil {
				t.Fatal(err)
			}
		}
	}
	lease := func(ask wire.Lease, want int) *wire.Leases {
		t.Helper()
		got, err := c.Lease(t.Context(), ask)
		if err != nil || len(got.Jobs) != want {
			t.Fatalf("%+v, %v; want %d jobs", got, err, want)
		}
		return got
	}
	coming := make(chan *wire.Leases, 1)
	go func() {
		got, _ := c.Lease(t.Context(), wire.Lease{Queues: []string{"q"}, WaitMS: 60_000, LeaseMS: 600_000})
		coming <- got
	}()
	put(1)
	waited := <-coming
	if waited == nil || len(waited.Jobs) != 1 || string(waited.Jobs[0].Payload) != "0" || waited.Jobs[0].LeaseUntil < time.Now().Add(9*time.Minute).UnixMilli() {
		t.Fatalf("who waits for a job gets %+v", waited)
	}
	put(4)
	own := lease(wire.Lease{Worker: "box", Register: true, LeaseMS: 600_000, Max: 2}, 2)
	lease(wire.Lease{Worker: "box", Secret: own.Secret, LeaseMS: 600_000}, 1)
	short := lease(wire.Lease{LeaseMS: 1}, 1).Jobs[0]
	lapsed := func() (bool, string) {
		j, err := c.Get(t.Context(), short.ID)
		return err == nil && j.Status == wire.Ready && j.Losses == 1, fmt.Sprint(j, err)
	}
	until(t, "the lapse of a lease that nobody extends", lapsed)

	put(1) // which is on disk when it is answered, and so is all before it: takes alone are not

	s.kill()
	c.Close()
	s = start(t, dir)
	if c, err = reprise.New(s.url, reprise.Options{}); err != nil {
		t.Fatal(err)
	}
	verdicts, err := c.Extend(t.Context(), []wire.Extension{
		{ID: waited.Jobs[0].ID, Lease: waited.Jobs[0].Lease, MS: 60_000}, {ID: short.ID, Lease: short.Lease, MS: 60_000},
	})
	if err != nil || verdicts[0].Status != wire.InFlight || verdicts[0].Code != "" || verdicts[1].Code != wire.CodeSuperseded {
		t.Errorf("by token: %+v, %v", verdicts, err)
	}
	verdicts, err = c.ExtendWorker(t.Context(), "box", own.Secret, time.Minute)
	if err != nil || len(verdicts) != 3 {
		t.Errorf("by worker: %+v, %v", verdicts, err)
	}
	if _, err := c.ExtendWorker(t.Context(), "box", own.Secret[1:]+"0", 0); reprise.CodeOf(err) != wire.CodeForbidden {
		t.Errorf("with a wrong secret: %v", err)
	}
	if _, err := c.Lease(t.Context(), wire.Lease{Max: 1001}); reprise.CodeOf(err) != wire.CodeInvalid {
		t.Errorf("too many: %v", err)
	}
	settled, err := c.Settle(t.Context(), []wire.Settle{{ID: own.Jobs[0].ID, Lease: own.Jobs[0].Lease, Outcome: wire.OutcomeOK}})
	if err != nil || settled[0].Status != wire.Completed {
		t.Errorf("settled: %+v, %v", settled, err)
	}
	if verdicts, err = c.ExtendWorker(t.Context(), "box", own.Secret, 0); err != nil || len(verdicts) != 2 {
		t.Errorf("after that: %+v, %v", verdicts, err)
	}
}
