package inbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// many puts n messages of one group, m1 to mN, that are there together.
func (r *rig) many(n int) (ids []string) {
	r.Helper()
	r.act(wire.InboxAct{Action: "pause"})
	for i := range n {
		ids = append(ids, fmt.Sprint("m", i+1))
		r.put("g/" + ids[i])
	}
	r.act(wire.InboxAct{Action: "resume"})
	return ids
}

// Mode all goes on to the end of the batch, however many pages that is and whatever
// fails in them (the seed; inbox.md, decisions 1 and 3). A page is 100 messages.
func TestABatchGoesToItsEndBehindAFailure(t *testing.T) {
	const n = 250
	polled := `"batch":{"mode":"all","query":{"pollInitialDelay":"PT5S","pollInterval":"PT30S"}}`
	for _, c := range []struct {
		name, settings, fails string
		tried                 int
	}{
		{"in a run, the first fails", polled, "m1", n},
		{"in a run, the last of the page fails", polled, "m100", n},
		{"in a run, three fail inside their time to live", polled + `,"message":{"timeToLive":"PT1H"}`, "m1 m100 m250", n},
		{"in a run, the first fails for good", polled + `,"persistence":{"messageMaxRetries":1}`, "m1", n},
		{"in a run, as many as are asked for", polled + `,"persistence":{"messageBatchSize":120}`, "m1", 120},
		{"as soon as it is due, the first fails", anyway[:len(anyway)-1], "m1", n},
		{"fail_first stops at it", strings.Replace(polled, `"all"`, `"fail_first"`, 1), "m120", 120},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, byJSON+toHTTP+c.settings, func(r *rig) {
				r.replies(failing(c.fails))
				ids := r.many(n)
				r.put("h/x")
				r.until(6)
				var got []string
				for _, text := range strings.Split(r.arrived(), ", ") {
					if _, id, _ := strings.Cut(text, " "); id != "x" {
						got = append(got, id)
					}
				}
				if want := strings.Join(ids[:c.tried], " "); strings.Join(got, " ") != want {
					t.Errorf("%d were tried, want %d once and in order; they end with %s", len(got), c.tried, got[len(got)-1])
				}
			})
		})
	}
}

// What comes while a batch is delivered is of the next one, so no group that never
// ends keeps its receiver for itself.
func TestABatchIsWhatWasThereWhenItBegan(t *testing.T) {
	scenario(t, byJSON+toHTTP+`"batch":{"mode":"all","query":{"pollInitialDelay":"PT5S","pollInterval":"PT10S"}},"persistence":{"messageFetchPageSize":2}`, func(r *rig) {
		more := make(chan string, 9)
		r.replies(func(m *connect.Message) connect.Result {
			more <- "g/n" + m.ID[1:]
			return connect.Result{}
		})
		r.many(3)
		go func() {
			for id := range more {
				r.put(id)
			}
		}()
		r.until(6)
		r.expect("the first run", "5 m1, 5 m2, 5 m3")
		r.replies(nil)
		r.until(16)
		r.expect("the second run", "15 n1, 15 n2, 15 n3")
		close(more)
	})
}

// Workers get the rest of a batch with their next lease, also behind a failure.
func TestAWorkerGetsTheRestOfABatchBehindAFailure(t *testing.T) {
	for name, query := range map[string]string{"polled": `{"pollInitialDelay":"PT5S","pollInterval":"PT30S"}`, "at once": `"none"`} {
		t.Run(name, func(t *testing.T) {
			scenario(t, `"group":{"json":".g"},"batch":{"mode":"all","query":`+query+`}`, func(r *rig) {
				ids := r.many(rule.TurnMax + 100)
				x, _ := r.Find("in")
				lease := func() *wire.InboxTurn {
					ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
					defer cancel()
					turn, err := r.Lease(ctx, x, "w", 30*job.Second)
					if err != nil {
						t.Fatal(err)
					}
					return turn
				}
				first := lease()
				if rest := lease(); len(rest.Messages) > 0 {
					t.Errorf("%d messages were leased while the first turn goes on", len(rest.Messages))
				}
				r.settleTurn(first, "m1")
				rest := lease()
				r.settleTurn(rest, "")
				if got := append(first.Messages, rest.Messages...); !first.More || rest.More || len(got) != len(ids) || got[rule.TurnMax].MessageID != ids[rule.TurnMax] {
					t.Errorf("%d messages were leased, then %d, more %t and %t", len(first.Messages), len(rest.Messages), first.More, rest.More)
				}
				r.look("1 retrying, 1 groups backing_off")
			})
		})
	}
}

// settleTurn settles the messages of a turn; one of them fails.
func (r *rig) settleTurn(turn *wire.InboxTurn, fails string) {
	r.Helper()
	var list []engine.Settle
	for _, m := range turn.Messages {
		s := engine.Settle{Outcome: job.OK}
		s.ID, _ = job.ParseID(m.ID)
		s.Token, _ = job.ParseToken(m.Lease)
		if m.MessageID == fails {
			s.Outcome = job.Retried
		}
		list = append(list, s)
	}
	if v, err := r.engine.Settle(r.Context(), list); err != nil || len(v) > 0 && v[0].Err != nil {
		r.Fatal(v, err)
	}
}

// slow lets a target take so long for some messages.
func (r *rig) slow(span time.Duration, ids string, then func(*connect.Message) connect.Result) {
	r.replies(func(m *connect.Message) connect.Result {
		for _, id := range strings.Fields(ids) {
			if m.ID == id {
				r.mu.Unlock()
				<-time.After(span) // of the bubble
				r.mu.Lock()
			}
		}
		if then == nil {
			return connect.Result{}
		}
		return then(m)
	})
}

func TestASlowGroupHoldsUpNoOtherOne(t *testing.T) {
	for name, most := range map[string]job.Millis{"alone": 0, "in a cluster": job.Minute, "in a cluster, beyond the lock": 10 * job.Second} {
		t.Run(name, func(t *testing.T) {
			scenario(t, "", func(r *rig) {
				r.o.LockMost, r.o.Node = most, "node-1"
				r.set("in", byJSON+`"deliver":{"http":{"url":"http://target/","concurrent":2}},"batch":{"mode":"fail_first","query":{"pollInitialDelay":"PT5S","pollInterval":"PT5S"}}`)
				r.slow(22*time.Second, "m1", nil)
				r.put("g/m1", "g/m2")
				r.until(6)
				r.put("h/a")
				r.until(11)
				r.put("h/b", "i/c")
				r.until(16)
				r.expect("while g is slow", "5 m1, 10 a, 15 b, 15 c")
				r.until(31)
				r.expect("then", "27 m2")
				r.look("")
			})
		})
	}
}

// A lost lock is nobody's failure: the request that is under way is awaited, and
// what the receiver says counts.
func TestARequestThatOutlivesTheLockIsHonoured(t *testing.T) {
	scenario(t, "", func(r *rig) {
		r.o.LockMost, r.o.Node = 10*job.Second, "node-1"
		r.set("in", byJSON+toHTTP+`"batch":{"mode":"fail_first","query":{"pollInitialDelay":"PT5S","pollInterval":"PT30S"}}`)
		r.slow(20*time.Second, "m1", nil)
		r.put("g/m1", "g/m2")
		r.until(26)
		r.expect("the run", "5 m1")
		r.look("1 in_progress, 1 groups ready")
		r.message("m2", "in_progress attempts 0 suppressed 0")
		r.until(36)
		r.expect("the next one", "35 m2")
		r.look("")
	})
}

// An error inside the time to live, however late in the interval, is tried again in
// the very next run, and not in its own; what the receiver gives back, too.
func TestAFailureLateInTheIntervalIsTriedInTheNextRun(t *testing.T) {
	failed := failing("m1")
	back := func(*connect.Message) connect.Result { return connect.Result{Outcome: job.Released} }
	for name, reply := range map[string]func(*connect.Message) connect.Result{"fails": failed, "is given back": back} {
		t.Run(name, func(t *testing.T) {
			scenario(t, byJSON+toHTTP+`"batch":{"mode":"all","query":{"pollInitialDelay":"PT6S","pollInterval":"PT6S"}},"message":{"timeToLive":"PT1H"}`, func(r *rig) {
				r.slow(5*time.Second, "m1", reply)
				r.put("g/m1")
				r.until(20)
				r.expect("three runs", "6 m1, 12 m1, 18 m1")
			})
		})
	}
}
