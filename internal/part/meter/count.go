package meter

import (
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Count is one of the things that are counted for each queue.
type Count uint8

// What is counted.
const (
	Enqueued Count = iota
	Taken
	SettledOK
	SettledRetry
	SettledRelease
	SettledDead
	RetryError // why a job is to run again: the failure's kind
	RetryTimeout
	RetryHTTP4xx
	RetryHTTP5xx
	RetryExit
	RetryGrace // not charged
	RetryLost  // its engine was, where that is charged
	EndedLapse // how a lease ended that nobody settled, in the order of job.Ending
	EndedDisconnect
	EndedRestart
	_                 // by OK: it is settled
	_                 // by retry
	EndedStartTimeout // by release: nobody said it
	_                 // by dead
	EndedCancel
	EndedSupersede
	EndedRunTimeout
	EndedTurn
	EndedEvict
	EndedPreempt
	EndedWithdraw
	EndedUndelivered
	DeadExhausted // why a job died, in the order of job.Reason
	DeadKilled
	DeadExpired
	DeadLost
	DeadRejected
	DeadEvicted
	JobsCancelled // gave up by an operator, or with their session: no deaths
	Discarded     // died without being kept: retention.dead is 0
	Counts        // how many there are
)

// Words are the labels of counts, and of which family a count is; "" = of none.
func (c Count) Words() (family, word string) {
	switch {
	case c == Enqueued:
		return "enqueued", ""
	case c == Taken:
		return "taken", ""
	case c < RetryError:
		return "settled", [...]string{"ok", "retry", "release", "dead"}[c-SettledOK]
	case c < EndedLapse:
		return "retries", retryWords[c-RetryError]
	case c < DeadExhausted:
		switch how := job.Ending(c - EndedLapse); how {
		case job.ByOK, job.ByRetry, job.ByDead:
			return "", ""
		default:
			return "ended", endingWord(how)
		}
	case c == JobsCancelled:
		return "cancelled", ""
	case c < Discarded:
		return "dead", (job.Exhausted + job.Reason(c-DeadExhausted)).String()
	}
	return "discarded", ""
}

// retryWords are the words of RetryError and what follows it. They are labels of metrics
// and reasons of events.
var retryWords = [...]string{"error", "timeout", "http_4xx", "http_5xx", "exit", "grace", "lost"}

// endingWord is how a lease ended that its holder did not settle.
func endingWord(how job.Ending) string {
	switch how {
	case job.ByRelease:
		return "start_timeout"
	case job.ByTimeout:
		return "run_timeout"
	default:
		return how.String()
	}
}

// Tally is what happened in a queue since the start.
type Tally struct {
	N    [Counts]uint64
	Wait histogram.Histogram // from the time a job was due to its first take
	Run  histogram.Histogram // from the start of a run to its settle

	Turns TurnTally

	tasks bool // those of a session
}

// TurnTally is what happened to the members of groups that are given out in turns.
type TurnTally struct {
	Latency   histogram.Histogram // Spans: from when a member was taken in until it was done
	Done      histogram.Histogram // Tries: at the how-manieth charged try it was done, 1 = the first
	Exhausted histogram.Histogram // Tries: after how many it was given up

	Ended uint64 // how many members became either
}

// Tries are the edges of attempts.
var Tries = histogram.Edges{1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500}

func (t *Tally) add(u *Tally) {
	for i, n := range u.N {
		t.N[i] += n
	}
	t.Wait.Add(&u.Wait)
	t.Run.Add(&u.Run)
	if u.Turns.Ended > 0 {
		t.Turns.Ended += u.Turns.Ended
		t.Turns.Latency.Add(&u.Turns.Latency)
		t.Turns.Done.Add(&u.Turns.Done)
		t.Turns.Exhausted.Add(&u.Turns.Exhausted)
	}
}

// count counts what a step did.
func (t *Tally) count(c *rule.Command, old, j *job.Job, eff *rule.Effect, now job.Millis) {
	switch c.Verb {
	case rule.Put:
		t.N[Enqueued]++
	case rule.Take:
		t.N[Taken]++
		if old.Deliveries == 0 {
			t.Wait.Observe(&histogram.Spans, max(0, int64(now-max(old.ReadyAt, old.Created))))
		}
	case rule.SettleOK, rule.SettleRetry, rule.SettleRelease, rule.SettleDead:
		t.countSettle(c, old, j, eff, now)
	case rule.Lapse, rule.Cancel:
		t.countEnds(c, old, j, eff)
	case rule.Extend: // a run that commits ends the others
		t.N[EndedSupersede] += uint64(len(eff.Ended))
	case rule.Promote, rule.Expire, rule.Offer, rule.Revive, rule.Patch, rule.Purge, rule.Verbs:
	}
	if !died(old, eff) {
		return
	}
	if j.Reason != job.Alive {
		t.N[DeadExhausted+Count(j.Reason-job.Exhausted)]++
	}
	if eff.Gone == job.Dead && j.Reason != job.ReasonCancelled {
		t.N[Discarded]++
	}
}

// countSettle also measures the run of who spoke, who stands last. What a worker says
// of its start is believed only inside its lease.
func (t *Tally) countSettle(c *rule.Command, old, j *job.Job, eff *rule.Effect, now job.Millis) {
	t.N[SettledOK+Count(c.Verb-rule.SettleOK)]++
	t.N[EndedSupersede] += uint64(len(eff.Voided))
	if n := len(eff.Ended); n > 0 && !eff.Late { // nobody knows when a late one ended
		l := &eff.Ended[n-1]
		t.Run.Observe(&histogram.Spans, max(0, int64(now-max(l.Since, l.Started, c.RunStart))))
	}
	if c.Verb == rule.SettleRetry && eff.Gone == job.None && j.State != job.Dead {
		t.N[retryReason(c, old, j)]++
	}
}

// countEnds counts runs that nobody settled, and the retry if one was charged.
func (t *Tally) countEnds(c *rule.Command, old, j *job.Job, eff *rule.Effect) {
	for i := max(0, len(j.Ended)-len(eff.Ended)); i < len(j.Ended); i++ {
		t.N[EndedLapse+Count(j.Ended[i].How)]++
	}
	again := c.Verb == rule.Lapse && eff.Gone == job.None && j.State != job.Dead
	if !again || j.Attempts == old.Attempts && j.Suppressed == old.Suppressed {
		return
	}
	if n := len(eff.Failures); n > 0 && !eff.Failures[n-1].Timeout {
		t.N[RetryLost]++
	} else {
		t.N[RetryTimeout]++
	}
}

// count measures what became of a member of a group that is given out in turns.
func (t *TurnTally) count(old, j *job.Job, eff *rule.Effect, now job.Millis) {
	switch {
	case j.State == job.Done || eff.Gone == job.Done:
		t.Ended++
		t.Latency.Observe(&histogram.Spans, max(0, int64(now-old.Created)))
		t.Done.Observe(&Tries, int64(old.Attempts)+1)
	case died(old, eff) && j.Reason == job.Exhausted:
		t.Ended++
		t.Exhausted.Observe(&Tries, int64(j.Attempts))
	}
}

// died reports whether the step made the job dead.
func died(old *job.Job, eff *rule.Effect) bool {
	if old == nil || old.State == job.Dead {
		return false
	}
	return eff.Gone == job.Dead || eff.Job != nil && eff.Job.State == job.Dead
}

func retryReason(c *rule.Command, old, j *job.Job) Count {
	f := &c.Failure
	switch {
	case j.Suppressed > old.Suppressed:
		return RetryGrace
	case f.Timeout:
		return RetryTimeout
	case f.Status >= 500:
		return RetryHTTP5xx
	case f.Status >= 400:
		return RetryHTTP4xx
	case f.ExitCode != 0:
		return RetryExit
	}
	return RetryError
}
