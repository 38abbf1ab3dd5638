package inbox

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// A turn holds at most rule.TurnMax messages and says when there are more; the
// next lease has them, in order, and in a polled inbox in the same run.
func TestAGroupThatIsLongerThanATurnGoesOnInTheNextOne(t *testing.T) {
	scenario(t, byJSON+`"batch":{"mode":"all","query":{"pollInitialDelay":"PT10S","pollInterval":"PT5S"}}`, func(r *rig) {
		list := make([]Message, rule.TurnMax+2)
		for i := range list {
			list[i] = Message{Payload: []byte(`{"g":"long"}`)}
			list[i].put(wire.CorrelateID, fmt.Sprint("m", i))
		}
		r.accept("in", list...)
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		for _, want := range []struct {
			first, last int
			more        bool
		}{{0, rule.TurnMax - 1, true}, {rule.TurnMax, rule.TurnMax + 1, false}} {
			turn := r.lease(ctx)
			n, at := len(turn.Messages), time.Since(r.began).Truncate(time.Second)
			if n != want.last-want.first+1 || turn.More != want.more || at != 10*time.Second {
				t.Fatalf("at %s come %d messages, more: %v; want %+v at 10s", at, n, turn.More, want)
			}
			if first, last := turn.Messages[0].MessageID, turn.Messages[n-1].MessageID; first != fmt.Sprint("m", want.first) || last != fmt.Sprint("m", want.last) {
				t.Fatalf("they are %s to %s", first, last)
			}
			r.settleAll(turn)
		}
	})
}

func (r *rig) lease(ctx context.Context) *wire.InboxTurn {
	r.Helper()
	x, err := r.Find("in")
	if err != nil {
		r.Fatal(err)
	}
	turn, err := r.Lease(ctx, x, "w", 30*job.Second)
	if err != nil || len(turn.Messages) == 0 {
		r.Fatalf("%+v, %v", turn, err)
	}
	return turn
}

func (r *rig) settleAll(turn *wire.InboxTurn) {
	r.Helper()
	list := make([]engine.Settle, len(turn.Messages))
	for i, m := range turn.Messages {
		list[i].ID, _ = job.ParseID(m.ID)
		list[i].Token, _ = job.ParseToken(m.Lease)
	}
	verdicts, err := r.engine.Settle(r.Context(), list)
	if err != nil {
		r.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Err != nil {
			r.Fatal(v.Err)
		}
	}
}

// The page bounds what is fetched of a batch of all; a batch of a given size is one.
func TestABatchIsAsLargeAsItIsSaidToBe(t *testing.T) { // inbox.md 4 and 5
	scenario(t, byJSON+toHTTP+`"persistence":{"messageBatchSize":3,"messageFetchPageSize":2},"batch":{"mode":"all","query":{"pollInitialDelay":"PT5S","pollInterval":"PT5S"}}`, func(r *rig) {
		r.put("g/m1", "g/m2", "g/m3", "g/m4", "g/m5")
		r.until(6)
		r.expect("in the first run", "5 m1, 5 m2, 5 m3")
		r.until(11)
		r.expect("in the second one", "10 m4, 10 m5")
	})
}
