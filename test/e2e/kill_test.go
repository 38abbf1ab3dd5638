package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// TestNothingAcknowledgedIsLostByKillNine kills a server under load, again and
// again, and holds what is there afterwards against the ledger (I1, I2, I4,
// I5, I7). In the end everything is worked off, so a job that nobody can reach
// any more would show.
func TestNothingAcknowledgedIsLostByKillNine(t *testing.T) {
	told(t)
	t.Parallel()
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "load.yaml"), loadConfig)
	root := filepath.Join(dir, "root")
	l, h, rnd := newLedger(), newHabits(), dice(0)
	// What a caller leased and did not hear of comes back after the window.
	args := []string{"-c", config, "--reattach-window", "10s"}
	s := start(t, root, args...)
	again := append(args, "--port", s.port())
	for round := 1; round <= *rounds && !t.Failed(); round++ {
		enough := l.until(500 + rnd.IntN(16_000))
		c := muster(l, s.url, round, h)
		select {
		case <-enough:
		case <-s.exited:
			t.Errorf("round %d: the server ended by itself", round)
		case <-time.After(patience):
			t.Errorf("round %d: the load came to a halt", round)
		}
		c.down.Store(true)
		s.kill()
		c.dismiss()
		if rnd.IntN(4) == 0 {
			killWhileStarting(t, root, rnd, again)
		}
		s = start(t, root, again...)
		l.audit(t, s, rnd)
		for _, fault := range l.faults() {
			t.Errorf("round %d: %s", round, fault)
		}
	}
	if !t.Failed() {
		workOff(t, l, s, h)
		t.Logf("%s", l.summary())
	}
}

// killWhileStarting ends a server that may not have begun to listen.
func killWhileStarting(t *testing.T, root string, rnd *rand.Rand, args []string) {
	t.Helper()
	s := launch(t, root, args...)
	select {
	case <-s.exited:
		t.Errorf("the server did not start:\n%s", s.output())
	case <-time.After(time.Duration(rnd.IntN(300)) * time.Millisecond):
		s.kill()
	}
}

// workOff finishes everything that is left: workers only.
func workOff(t *testing.T, l *ledger, s *server, h *habits) {
	t.Helper()
	l.mu.Lock()
	l.closed = true // producers stay at home, and workers sit on nothing
	l.mu.Unlock()
	c := muster(l, s.url, *rounds+1, h)
	cl := dial(s.url)
	until(t, "working everything off", func() (bool, string) {
		list := cl.list(t, "status=scheduled,ready,in_flight")
		return len(list) == 0, fmt.Sprintf("%d are left: %.1000v", len(list), list)
	})
	c.dismiss()
	for _, fault := range l.faults() {
		t.Error(fault)
	}
}

// audit compares the ledger with a server that nobody else talks to.
func (l *ledger) audit(t *testing.T, s *server, rnd *rand.Rand) {
	t.Helper()
	cl := dial(s.url)
	defer cl.close()
	there := stable(t, cl)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range there {
		l.checkListed(j)
	}
	for _, bulk := range l.bulks {
		l.checkBulk(bulk, there)
	}
	l.bulks = nil
	for _, task := range l.tasks {
		_, listed := there[task.id]
		switch {
		case task.accepted && !listed && !task.mayBeOver():
			l.violation("job %d (%s, queue %s) was acknowledged and is lost", task.n, task.id, task.queue)
		case task.queue == "kept" && task.ok.acked > 0 && !listed:
			l.violation("job %d (%s) was completed and its retention is not over, but it is gone", task.n, task.id)
		case task.dead.acked > 0 && !listed:
			l.violation("job %d (%s) was declared dead and is gone", task.n, task.id)
		}
	}
	l.lookAtSome(t, cl, there, rnd)
	l.forget()
}

// checkListed holds a job that is there against the ledger. l.mu is held.
func (l *ledger) checkListed(j wire.Job) {
	var n int64
	_, err := fmt.Sscan(string(j.Payload), &n)
	task := l.tasks[n]
	if err != nil || task == nil {
		l.violation("job %s with payload %.100q is there, and nobody enqueued it", j.ID, j.Payload)
		return
	}
	l.identify(task, j.ID)
	l.recount(task)
	l.checkAttempts(task, j)
	open := j.Status != wire.Completed && j.Status != wire.Dead
	switch {
	case task.mustBeOver() && open:
		l.violation("job %d (%s) is %s, but that it was settled had been acknowledged", n, j.ID, j.Status)
	case j.Status == wire.Dead && !task.dead.maybe():
		l.violation("job %d (%s) is dead (%s), and nobody said so", n, j.ID, j.Reason)
	case j.Status == wire.Completed && (!task.ok.maybe() || task.queue != "kept"):
		l.violation("job %d (%s) of queue %s is completed", n, j.ID, task.queue)
	}
}

// checkBulk makes sure that a bulk without an answer was taken whole or not at
// all. l.mu is held.
func (l *ledger) checkBulk(tasks []*task, there map[string]wire.Job) {
	seen := 0
	for _, task := range tasks {
		if _, listed := there[task.id]; listed || task.mayBeOver() {
			seen++
		}
	}
	if seen != 0 && seen != len(tasks) {
		l.violation("of a bulk of %d jobs %d were taken in", len(tasks), seen)
	}
}

// lookAtSome reads some jobs one by one, there and gone. l.mu is held.
func (l *ledger) lookAtSome(t *testing.T, cl *client, there map[string]wire.Job, rnd *rand.Rand) {
	t.Helper()
	ids := slices.Sorted(maps.Keys(there))
	for range min(100, len(ids)) {
		listed := there[ids[rnd.IntN(len(ids))]]
		if j := cl.get(t, listed.ID); j.Status != listed.Status && !moved(listed.Status, j.Status) ||
			j.Queue != listed.Queue || string(j.Payload) != string(listed.Payload) || j.Attempts != listed.Attempts {
			l.violation("job %s is %+v, listed as %+v", listed.ID, j, listed)
		}
	}
	left := 50
	for _, task := range l.tasks {
		if left == 0 {
			return
		}
		if task.id != "" && task.ok.acked > 0 && task.queue != "kept" {
			left--
			cl.must(t, 404, nil, "GET", "/jobs/"+task.id, nil)
		}
	}
}

// moved reports whether the clock may move a job so while nobody works.
func moved(from, to string) bool {
	return to == wire.Ready && (from == wire.Scheduled || from == wire.InFlight)
}

// stable reads everything that is there, in a moment in which nothing moves,
// in several ways that have to agree: in one list, in one list per status, by
// counts, and by queue. Each job is in exactly one state.
func stable(t *testing.T, cl *client) map[string]wire.Job {
	t.Helper()
	all := map[string]wire.Job{}
	until(t, "a moment in which nothing moves", func() (bool, string) {
		before := census(t, cl.list(t, ""), all)
		counted, listed, queued := "", "", map[string]int64{}
		for _, status := range wire.Statuses {
			counted += fmt.Sprintf("%s %d, ", status, cl.count(t, "status="+status))
			listed += fmt.Sprintf("%s %d, ", status, len(cl.list(t, "status="+status)))
		}
		var queues wire.Queues
		cl.must(t, 200, &queues, "GET", "/queues", nil)
		for _, name := range queues.Queues {
			var state struct{ Jobs map[string]int64 }
			cl.must(t, 200, &state, "GET", "/queues/"+name, nil)
			for status, n := range state.Jobs {
				queued[status] += n
			}
		}
		summed := ""
		for _, status := range wire.Statuses {
			summed += fmt.Sprintf("%s %d, ", status, queued[status])
		}
		after := census(t, cl.list(t, ""), all)
		saw := strings.Join([]string{"listed " + before, "counted " + counted, "listed by status " + listed, "by queue " + summed, "listed " + after}, "\n")
		return before == after && before == counted && before == listed && before == summed, saw
	})
	return all
}

// census counts a list by status and checks that no job is in it twice.
func census(t *testing.T, list []wire.Job, all map[string]wire.Job) string {
	t.Helper()
	clear(all)
	counts := map[string]int{}
	for i, j := range list {
		if i > 0 && j.ID <= list[i-1].ID {
			t.Fatalf("a list goes on after %s with %s", list[i-1].ID, j.ID)
		}
		all[j.ID] = j
		counts[j.Status]++
	}
	text := ""
	for _, status := range wire.Statuses {
		text += fmt.Sprintf("%s %d, ", status, counts[status])
	}
	return text
}
