package inside

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// borrower leases jobs under tokens and keeps some at hand, whatever happens to
// the date and the server meanwhile. Nobody else may get them.
type borrower struct {
	l    *ledger
	held []wire.Job
}

// work implements member: it takes one, or settles one.
func (b *borrower) work(_ context.Context, s *stack, rng *rand.Rand) bool {
	if len(b.held) == 5 || len(b.held) > 0 && rng.IntN(2) == 0 {
		return b.settle(s) //nolint:contextcheck // a call has a patience of its own
	}
	r, err := s.call("POST", "/jobs/lease", `{"queues":["q2"],"lease_ms":600000}`) //nolint:contextcheck // a call has a patience of its own
	var page wire.Page
	if err != nil || r.status != http.StatusOK || json.Unmarshal(r.body, &page) != nil {
		b.l.refused("a lease", r, err)
		return false
	}
	for _, j := range page.Jobs {
		b.l.delivered(j)
		for _, h := range b.held {
			if h.ID == j.ID {
				b.l.violation("job %s was leased while it was leased", j.ID)
			}
		}
		b.held = append(b.held, j)
	}
	return len(page.Jobs) > 0
}

func (b *borrower) settle(s *stack) bool {
	j := b.held[0]
	b.l.delivered(j) // an audit has forgotten that
	if r, err := s.call("GET", "/jobs/"+j.ID, ""); err == nil && !strings.Contains(string(r.body), `"status":"in_flight"`) {
		b.l.violation("job %s, which is leased, is %s", j.ID, r)
	}
	r, err := s.call("POST", "/jobs/settle", fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":"ok"}]`, j.ID, j.Lease))
	var v wire.Verdicts
	if err != nil || r.status != http.StatusOK || json.Unmarshal(r.body, &v) != nil || len(v.Verdicts) != 1 {
		b.l.refused("a settle", r, err)
		return false
	}
	if v.Verdicts[0].Status != wire.Completed {
		b.l.violation("settling job %s, which is leased, is answered with %+v", j.ID, v.Verdicts[0])
	}
	b.held = b.held[1:]
	b.l.note(b.l.over, j.ID)
	return true
}

// TestNothingIsEarlyLostOrRunTwiceWhileTheDateJumps sets the date forward and
// back, by seconds and by months, while everybody works, and restarts the server
// in between. No lease lapses by it, no job is given out before the date it is
// due at was ever reached, and all of them are there.
func TestNothingIsEarlyLostOrRunTwiceWhileTheDateJumps(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the dice were those of -seed %d", *seed)
		}
	})
	disk, c := vfs.NewMem(), newSetClock()
	l, rng := newLedger(), rand.New(rand.NewPCG(*seed, 9))
	hands := &borrower{l: l}
	for range *rounds {
		l.latest = c.latest.Load
		s := start(t, options{fs: disk, clock: c})
		leave := l.work(s, rng, hands.work)
		forward := false
		for range 20 {
			wait(t, "the load", l.answers.after(10))
			span := job.Second << rng.IntN(24) // up to three months
			if rng.IntN(2) == 0 {
				span = -span
			}
			forward = forward || span > 8*job.Second
			c.set.Add(int64(span))
		}
		wait(t, "the load", l.answers.after(20))
		leave()
		l.audit(s)
		n, err := enginetest.Stats(t.Context(), s.engine)
		if err != nil || n.Failed != 0 || n.Expired != 0 || forward && n.ClockSteps == 0 {
			t.Errorf("the engine counted %+v, %v", n, err)
		}
		s.stop()
		c = c.reboot()
	}
	l.latest = c.latest.Load
	s := start(t, options{fs: disk, clock: c})
	l.audit(s)
	for len(hands.held) > 0 {
		if !hands.settle(s) {
			t.Fatal("a lease cannot be settled")
		}
	}
	c.step(s, job.Millis(c.latest.Load())+31*job.Day-c.Wall()) // later than any
	until(t, "what was scheduled is ready", func() (bool, string) {
		var n wire.Count
		s.must(http.StatusOK, &n, "GET", "/jobs/count?status=scheduled", "")
		return n.Count == 0, fmt.Sprint(n.Count, " are not")
	})
	l.audit(s)
}
