package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// keyLoad is what producers of unique jobs and of batches were told.
type keyLoad struct {
	mu      sync.Mutex   // guards what follows
	sent    int          // numbers handed out
	folded  map[int]bool // numbers that were acknowledged
	faults  []string
	answers atomic.Int64
}

func (l *keyLoad) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// uniqueJobs puts jobs under a few keys, at most one of each at a time.
func (l *keyLoad) uniqueJobs(t *testing.T, c *client, down *atomic.Bool, n int) {
	for i := n; !down.Load(); i++ {
		key := fmt.Sprint("k", i%5)
		r, err := c.do(t.Context(), "POST", "/jobs", wire.Enqueue{
			Type: "t", Queue: "unique", Payload: json.RawMessage("null"), UniqueKey: key, UniqueWhile: wire.WhileActive,
		})
		var added wire.Enqueued
		switch {
		case err != nil || r.status == 503:
			continue // it is down, or about to be
		case r.into(&added) != nil || r.status != 201 && r.status != 200 || added.Duplicate != (r.status == 200):
			l.fault("a unique job was answered %s", r)
		case added.UniqueKey != key || added.Status == wire.Completed || added.Status == wire.Dead:
			l.fault("a job under key %s was told of %+v", key, added)
		}
		l.answers.Add(1)
	}
}

// batches puts numbers that become a part of whichever job waits.
func (l *keyLoad) batches(t *testing.T, c *client, down *atomic.Bool) {
	for !down.Load() {
		l.mu.Lock()
		first := l.sent
		l.sent += 2
		l.mu.Unlock()
		var list []wire.Enqueue
		for _, n := range []int{first, first + 1} {
			list = append(list, wire.Enqueue{
				Type: "t", Queue: "batch", Payload: json.RawMessage(fmt.Sprintf("[%d]", n)),
				Batch: &wire.Batch{Key: fmt.Sprint("b", n%3), When: "$existing | length < 100", Fold: "$existing + $new"},
			})
		}
		r, err := c.do(t.Context(), "POST", "/jobs/bulk", wire.Bulk{Jobs: list})
		if err != nil || r.status == 503 {
			continue
		}
		if r.status != 201 && r.status != 200 {
			l.fault("a batch was answered %s", r)
		}
		l.mu.Lock()
		l.folded[first], l.folded[first+1] = true, true
		l.mu.Unlock()
		l.answers.Add(1)
	}
}

// work takes unique jobs and finishes or gives back what it took; it takes
// batches only to give them back, which closes them.
func (l *keyLoad) work(t *testing.T, c *client, down *atomic.Bool) {
	for turn := 0; !down.Load(); turn++ {
		queue := []string{"unique", "unique", "batch"}[turn%3]
		var leased struct{ Jobs []wire.Job }
		r, err := c.do(t.Context(), "POST", "/jobs/lease", map[string]any{"queues": []string{queue}, "max": 2, "wait_ms": 100, "lease_ms": 60_000})
		if err != nil || r.into(&leased) != nil {
			continue
		}
		var ends []wire.Settle
		for i, j := range leased.Jobs {
			outcome := wire.OutcomeRelease
			if queue == "unique" && (turn+i)%2 == 0 {
				outcome = wire.OutcomeOK
			}
			ends = append(ends, wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: outcome})
		}
		if len(ends) > 0 {
			_, _ = c.do(t.Context(), "POST", "/jobs/settle", ends)
		}
	}
}

// audit holds what is there against what was told.
func (l *keyLoad) audit(t *testing.T, c *client) {
	t.Helper()
	owners := map[string]string{}
	for _, j := range c.list(t, "queue=unique&status=scheduled,ready,in_flight") {
		if other := owners[j.UniqueKey]; other != "" {
			t.Errorf("jobs %s and %s both have the key %s", other, j.ID, j.UniqueKey)
		}
		owners[j.UniqueKey] = j.ID
	}
	seen := map[int]string{}
	for _, j := range c.list(t, "queue=batch") {
		var numbers []int
		if err := json.Unmarshal(j.Payload, &numbers); err != nil {
			t.Errorf("job %s holds %s", j.ID, j.Payload)
		}
		for _, n := range numbers {
			if other := seen[n]; other != "" {
				t.Errorf("%d is in job %s and in %s", n, other, j.ID)
			}
			seen[n] = j.ID
		}
	}
	for n := range l.folded {
		if seen[n] == "" {
			t.Errorf("%d was acknowledged and is in no job", n)
		}
	}
	for _, fault := range l.faults {
		t.Error(fault)
	}
}

// TestKeysAndBatchesSurviveKillNine kills a server in the middle of unique
// jobs and batches: there is never a second job under a key, and each payload
// that was acknowledged is in exactly one job.
func TestKeysAndBatchesSurviveKillNine(t *testing.T) {
	told(t)
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	s := start(t, root)
	l := &keyLoad{folded: map[int]bool{}}
	for round := range 4 {
		var down atomic.Bool
		var all sync.WaitGroup
		before := l.answers.Load()
		for n := range 3 {
			for _, run := range []func(*client){
				func(c *client) { l.uniqueJobs(t, c, &down, n) },
				func(c *client) { l.batches(t, c, &down) },
				func(c *client) { l.work(t, c, &down) },
			} {
				c := dial(s.url)
				all.Go(func() { defer c.close(); run(c) })
			}
		}
		until(t, "enough answers", func() (bool, string) {
			n := l.answers.Load() - before
			return n > 400, fmt.Sprint(n)
		})
		down.Store(true)
		s.kill()
		all.Wait()
		s = start(t, root, "--port", s.port(), "--reattach-window", "1s")
		c := dial(s.url)
		l.audit(t, c)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
		c.close()
	}
	t.Logf("%d answers, %d numbers folded", l.answers.Load(), len(l.folded))
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestAKeyOutlivesItsServer: what has a key, and what waits for a batch, is
// known again after kill -9, and what was taken is not.
func TestAKeyOutlivesItsServer(t *testing.T) { // zizq.md 7, item 15
	told(t)
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	s := start(t, root)
	c := dial(s.url)
	put := func(status int, e wire.Enqueue) (out wire.Enqueued) {
		t.Helper()
		e.Type = "t"
		if e.Payload == nil {
			e.Payload = json.RawMessage("null")
		}
		c.must(t, status, &out, "POST", "/jobs", e)
		return out
	}
	far := time.Now().Add(time.Hour).UnixMilli()
	queued := put(201, wire.Enqueue{Queue: "a", UniqueKey: "queued"})
	waits := put(201, wire.Enqueue{Queue: "b", UniqueKey: "waits", UniqueWhile: wire.WhileActive, ReadyAt: far})
	batch := wire.Enqueue{Queue: "c", Payload: json.RawMessage("[1]"), Batch: &wire.Batch{Key: "k", When: "true", Fold: "$existing + $new"}}
	open := put(201, batch)
	closed := batch
	closed.Queue, closed.Batch = "d", &wire.Batch{Key: "closed", When: "true", Fold: "$new"}
	taken := put(201, closed)
	stream := c.take(t, "", 9, "a", "d") // both run when the server dies; a stream's jobs come back
	stream.read(t, 2)
	put(201, wire.Enqueue{Queue: "x"}) // the takes before it are on disk with it
	c.close()
	s.kill()
	s = start(t, root, "--port", s.port())
	c = dial(s.url)
	if again := put(200, wire.Enqueue{Queue: "z", UniqueKey: "queued"}); again.ID != queued.ID || !again.Duplicate {
		t.Errorf("a key did not come back with its job: %+v", again)
	}
	if again := put(200, wire.Enqueue{Queue: "z", UniqueKey: "waits"}); again.ID != waits.ID {
		t.Errorf("a key was forgotten: %+v", again)
	}
	if again := put(200, batch); again.ID != open.ID || !again.Folded {
		t.Errorf("a batch was forgotten: %+v", again)
	}
	if again := put(201, closed); again.ID == taken.ID {
		t.Errorf("a batch was opened again: %+v", again)
	}
	if got := string(c.get(t, open.ID).Payload); got != "[1,1]" {
		t.Errorf("the payload is %s", got)
	}
	c.close()
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
