package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// coverage counts what occurred in the histories.
type coverage struct {
	pairs    [rule.Verbs][job.States][job.States]int // verb, from, to
	features map[string]int
}

func newCoverage() *coverage { return &coverage{features: map[string]int{}} }

func (c *coverage) pair(v rule.Verb, from, to job.State) { c.pairs[v][from][to]++ }

func (c *coverage) feature(name string) { c.features[name]++ }

func (c *coverage) add(other *coverage) {
	for v := range c.pairs {
		for from := range c.pairs[v] {
			for to := range c.pairs[v][from] {
				c.pairs[v][from][to] += other.pairs[v][from][to]
			}
		}
	}
	for name, n := range other.features {
		c.features[name] += n
	}
}

// missed lists the pairs of the table of transitions that never occurred.
func (c *coverage) missed() (list []string) {
	for v := range rule.Verbs {
		for from := range job.States {
			n := 0
			for _, to := range c.pairs[v][from] {
				n += to
			}
			if rule.Allowed(v, from) && n == 0 {
				list = append(list, fmt.Sprintf("%s from %s", v, from))
			}
		}
	}
	for _, name := range musts {
		if c.features[name] == 0 {
			list = append(list, name)
		}
	}
	return list
}

// musts are the things besides the table that a full run must have seen.
var musts = []string{
	"a key taken over", "a key that came back", "a unique key in the way", "a batch that took some in", "a batch sealed",
	"a batch inside one call", "a dead job whose key another has", "put refused: unprocessable",
	"a breaker closed", "a breaker closing", "a breaker half open", "a breaker opened", "max_running reached",
	"Retry-After not heard", "a commit failed", "a dead head: block", "a dead head: park", "a further copy", "a graceful restart", "a group held",
	"a head that waited parked its group", "a holder emptied", "a lease carried over a restart",
	"a settle held a group", "a settle held a queue", "a wait by curve", "a wait by grace", "a wait by hold", "a wait by rule", "a wait by target", "a wait by worker", "a worker's hold: dead", "a worker's hold: ok", "a worker's hold: release", "a worker's hold: retry", "a rule: dead", "a rule: hold", "a rule: release", "a rule: retry",
	"a cron entry run", "a cron tick", "a cron tick refused", "a cron tick folded in", "a tick left for a while", "a tick left before a recovery", "a tick left before a restart", "cron changed", "ticks were missed: all", "ticks were missed: once", "ticks were missed: skip",
	"a power cut", "a run cancelled", "a run finished", "delete by a run", "replay by a run", "another copy lives", "dead of cancelled", "dead of evicted", "dead of exhausted", "dead of expired", "dead of killed",
	"dead of lost", "deleted", "delivered alone", "duplicate", "failed after its expiry", "gone at once", "many at once",
	"late OK after disconnect", "late OK after lapse", "late OK after restart", "lease ended by disconnect",
	"lease ended by lapse", "lease ended by restart", "out of order", "parked", "put at the front", "put refused: exists",
	"put refused: over limit", "put refused: unavailable", "re-attached", "refused: not found", "refused: superseded", "told of a void", "progress", "begun at a checkpoint",
	"refused: token needed", "replayed out of order", "required a property", "Retry-After", "run started", "run timeout",
	"settled without a token", "start timeout", "superseded", "suppressed", "the same settle twice", "the worker's own time",
	"too old", "unary lease extended", "unary lease lapsed", "held for its fingerprint", "a rate used up", "the rate of a group used up", "a budget used up", "a group passed over in its turn", "let go by a resume",
	"a result", "a large result", "a budget changed",
	"a lock was got", "a lock was got by the same request again", "a lock was held", "a lock was extended, given back or broken", "a lock was carried over a start",
	"a turn: start", "a turn: strict", "a turn of several", "a batch that goes on: start", "a batch that goes on: strict", "cut off a turn", "recalled from a turn", "a run of several groups", "a dead head skipped", "late OK after turn",
	"may not be delivered: superseded", "may not be delivered: wrong state", "a group paused or resumed",
	"an act on a message behind the head", "an act on many messages", "a payload edited",
	"a task submitted", "a task on two engines", "a copy of a task", "a copy withdrawn", "a late result", "a run may commit", "an engine lost",
	"copies by tail", "copies by mean", "copies by stddev", "copies by median", "copies by time_left", "copies by hedge", "copies by clone",
	"a run ended by cancel", "a run ended by dead", "a run ended by evict", "a run ended by lapse", "a run ended by preempt",
	"a run ended by release", "a run ended by restart", "a run ended by retry", "a run ended by supersede", "a run ended by timeout", "a run ended by undelivered",
	"a run that its engine ended in time", "a mute run ended after the slack", "an overrun ended at once", "an overrun seen by a sweep",
	"an overrun that got a copy", "an overrun that runs on alone", "the times of a run after a recovery", "a task that its engine did not begin",
	"a task that was not begun and went elsewhere", "a task that failed and went elsewhere",
	"a task where it was before: its host", "a task where it was before: it failed", "a task where it was before: not begun",
	"a task behind a fence", "a task behind the next of its tag", "a task for which an engine of its tag was kept",
	"a task that needs others", "a task failed for one that it needs", "a task cancelled with its session", "a client given up",
	"an engine excluded", "an engine suspended", "an engine quarantined",
	"a budget used: while_in_flight", "a budget used: time_based", "put aside for a budget", "returned for a budget",
}

func (c *coverage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-15s %-10s %10s   to\n", "verb", "from", "times")
	for v := range rule.Verbs {
		for from := range job.States {
			n, to := 0, []string{}
			for st, times := range c.pairs[v][from] {
				if times > 0 {
					n += times
					to = append(to, fmt.Sprintf("%s %d", job.State(st), times))
				}
			}
			if rule.Allowed(v, from) || n > 0 {
				fmt.Fprintf(&b, "%-15s %-10s %10d   %s\n", v, from, n, strings.Join(to, ", "))
			}
		}
	}
	b.WriteString("\n")
	for _, name := range slices.Sorted(maps.Keys(c.features)) {
		fmt.Fprintf(&b, "%-40s %10d\n", name, c.features[name])
	}
	return b.String()
}
