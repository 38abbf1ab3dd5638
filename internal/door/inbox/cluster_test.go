package inbox

import (
	"context"
	"testing"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
)

// A run whose lock somebody else has hands nothing more over, though nothing
// told it: the lock is asked for before each delivery and each turn (inbox.md,
// decision 11).
func TestARunThatOutlivesItsLockDeliversNothingMore(t *testing.T) {
	for _, mode := range []string{"all", "fail_first"} {
		t.Run(mode, func(t *testing.T) {
			scenario(t, "", func(r *rig) {
				r.o.LockMost, r.o.Node = 30*job.Second, "node-1"
				r.set("in", byJSON+toHTTP+`"batch":{"mode":"`+mode+`","query":{"pollInitialDelay":"PT5S","pollInterval":"PT5S"}}`)
				r.put("g/m1", "g/m2", "g/m3", "h/n1")
				r.replies(func(m *connect.Message) connect.Result {
					if m.ID == "m1" {
						r.stealLock()
					}
					return connect.Result{}
				})
				r.until(21)
				r.expect("until the lock was lost", "5 m1") // and the runs that followed did not begin
				r.look("3 in_progress, 2 groups ready")
				r.message("m2", "in_progress attempts 0 suppressed 0")
				r.until(26)
				r.expect("when the other has given it back", "25 n1, 25 m2, 25 m3")
				r.look("")
			})
		})
	}
}

// stealLock is another server that takes the lock for 18 s, because an operator
// thought that its holder is gone.
func (r *rig) stealLock() {
	r.Helper()
	ctx := context.Background()
	if _, err := r.engine.Locks.Break(ctx, "inbox/in", job.Actor{}); err != nil {
		r.Error(err)
	}
	if _, got, err := r.engine.Locks.Take(ctx, job.LockAsk{Name: "inbox/in", By: "node-2", Most: 18 * job.Second}); err != nil || !got {
		r.Error(got, err)
	}
}
