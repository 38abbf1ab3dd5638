package rule

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// rules makes a policy that waits 10 s and has the rules of a text.
func rules(t testing.TB, text string) func(*job.Job) {
	t.Helper()
	r, err := job.ParseRetry([]byte(`{"limit": 3, "curve": {"kind": "constant", "delay": "10s"}, "rules": [` + text + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return retry(r)
}

// said is what a worker reports; patterns fit where they are part of the message.
func said(f job.Failure) func(*Command) {
	return func(c *Command) {
		c.Failure = f
		c.Match = func(p string) (bool, bool) { return strings.Contains(f.Message, p), true }
	}
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) { // core.md section 6, point 3
	const list = `{"when": {"status": [429, "500-504"]}, "do": "retry", "curve": {"kind": "constant", "delay": "1m"}},
		{"when": {"error_type": ["A", "B"]}, "do": "dead"},
		{"when": {"message": "lock", "exit_code": 75}, "do": "release", "delay": "2s"},
		{"when": {"message": "lock"}, "do": "retry", "curve": {"kind": "constant", "delay": "3s"}},
		{"when": {"timeout": true}, "do": "retry", "limit": 0},
		{"when": {"exit_code": "64-78", "timeout": false}, "do": "retry", "curve": {"kind": "constant", "delay": "4s"}}`
	for name, x := range map[string]struct {
		failure job.Failure
		want    string
	}{
		"none":                      {job.Failure{Type: "C", Message: "m"}, "scheduled due 10s attempts 1"},
		"a status":                  {job.Failure{Status: 429}, "scheduled due 1m attempts 1"},
		"inside a range":            {job.Failure{Status: 504}, "scheduled due 1m attempts 1"},
		"beside a range":            {job.Failure{Status: 505}, "scheduled due 10s attempts 1"},
		"an error type":             {job.Failure{Type: "B"}, "dead killed attempts 1"},
		"the start of a type":       {job.Failure{Type: "BB"}, "scheduled due 10s attempts 1"},
		"the first of two":          {job.Failure{Type: "A", Status: 500}, "scheduled due 1m attempts 1"},
		"every condition of a rule": {job.Failure{Message: "lock not free", ExitCode: 75}, "scheduled due 2s evictions 1 releases 1"},
		"one condition of a rule":   {job.Failure{Message: "lock not free", ExitCode: 74}, "scheduled due 3s attempts 1"},
		"a timeout":                 {job.Failure{Timeout: true, ExitCode: 64}, "dead exhausted attempts 1"},
		"no timeout":                {job.Failure{ExitCode: 78}, "scheduled due 4s attempts 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("a", rules(t, list))
			w.fail("a", w.take("a", "x"), said(x.failure))
			w.expect("a", x.want)
		})
	}
}

func TestARuleWithoutAConditionMatchesEveryFailure(t *testing.T) {
	w := newWorld(t)
	w.put("a", rules(t, `{"do": "dead"}`))
	w.fail("a", w.take("a", "x"))
	w.expect("a", "dead killed attempts 1")
}

func TestARuleOfTheJobReplacesThoseOfTheQueueWhole(t *testing.T) { // core.md section 6
	w := newWorld(t, func(q *job.Queue) { q.Retry.Rules = &job.Rules{{Do: job.DoDead}} })
	w.put("inherits")
	w.put("none", retry(job.Retry{Rules: &job.Rules{}}))
	for _, name := range []string{"inherits", "none"} {
		w.fail(name, w.take(name, "x"))
	}
	w.expect("inherits", "dead killed attempts 1")
	w.expect("none", "scheduled due 15s attempts 1")
}

func TestPatternsAreAskedForBeforeAnythingIsDecided(t *testing.T) { // core.md section 9
	w := newWorld(t)
	w.put("a", rules(t, `{"when": {"message": "p", "status": 500}, "do": "dead"}, {"when": {"message": "q"}, "do": "dead"}`))
	token := w.take("a", "x")
	ask := func(f job.Failure, known ...string) []string {
		t.Helper()
		c := Command{Verb: SettleRetry, Token: token, Failure: f}
		c.Match = func(p string) (bool, bool) { return false, slices.Contains(known, p) }
		err := w.try("a", c)
		if u, ok := errors.AsType[*Unmatched](err); ok {
			return u.Patterns
		}
		t.Errorf("answered %v", err)
		return nil
	}
	if got := ask(job.Failure{}); !slices.Equal(got, []string{"p", "q"}) {
		t.Errorf("it asks for %q", got)
	}
	if got := ask(job.Failure{Status: 500}, "q"); !slices.Equal(got, []string{"p", "q"}) {
		t.Errorf("it asks for %q", got)
	}
	w.expect("a", "leased leases 1") // nothing happened to it
	w.fail("a", token, func(c *Command) { c.Match = func(p string) (bool, bool) { return false, p == "q" } })
	w.expect("a", "scheduled due 10s attempts 1") // p is not looked at without a status
}

func TestARunTimeoutFitsByTypeAndTimeoutAndNeverByMessage(t *testing.T) { // core.md section 9: nothing matches in the writer
	for list, want := range map[string]string{
		`{"when": {"message": "run"}, "do": "dead"}`:               "scheduled due 10s attempts 1",
		`{"when": {"timeout": true}, "do": "dead"}`:                "dead killed attempts 1",
		`{"when": {"error_type": "Timeout"}, "do": "dead"}`:        "dead killed attempts 1",
		`{"when": {"timeout": false}, "do": "dead"}`:               "scheduled due 10s attempts 1",
		`{"when": {"timeout": true}, "do": "release", "delay": 7}`: "scheduled due 7ms evictions 1 releases 1",
	} {
		w := newWorld(t)
		w.put("a", rules(t, list), func(j *job.Job) { j.RunTimeout = job.Second })
		w.take("a", "x")
		w.tick(job.Second)
		w.do("a", Command{Verb: Lapse})
		w.expect("a", want)
		if f := w.failure(); f == nil || !f.Timeout || f.Type != "Timeout" {
			t.Errorf("the record is %+v", f)
		}
	}
}

func TestGraceAndKillComeBeforeTheRules(t *testing.T) { // core.md section 6, points 1 to 3
	w := newWorld(t)
	w.put("grace", rules(t, `{"do": "dead"}`), func(j *job.Job) { j.GraceUntil = dawn + job.Hour })
	w.fail("grace", w.take("grace", "x"))
	w.expect("grace", "scheduled due 6s suppressed 1")
	w.put("killed", rules(t, `{"do": "release", "delay": "1s"}`))
	w.do("killed", Command{Verb: SettleDead, Token: w.take("killed", "x")})
	w.expect("killed", "dead killed attempts 1")
}

func TestARuleComesBeforeTheWorkersOwnTime(t *testing.T) { // core.md section 6, points 3 and 5
	for list, want := range map[string]string{
		`{"do": "dead"}`:                                  "dead killed attempts 1",
		`{"do": "release", "delay": "2s"}`:                "scheduled due 2s evictions 1 releases 1",
		`{"do": "retry", "limit": 0}`:                     "scheduled due 1m attempts 1 overrides 1", // the own time skips the limit
		`{"do": "retry", "curve": {"kind": "immediate"}}`: "scheduled due 1m attempts 1 overrides 1",
	} {
		w := newWorld(t)
		w.put("a", rules(t, list))
		w.fail("a", w.take("a", "x"), func(c *Command) { c.RetryAt = dawn + job.Minute })
		w.expect("a", want)
	}
}

func TestTheLimitOfARuleCountsAllChargedFailures(t *testing.T) {
	w := newWorld(t)
	w.put("a", rules(t, `{"when": {"status": 404}, "do": "retry", "limit": 1}`))
	w.fail("a", w.due("a", "x"), said(job.Failure{Status: 404}))
	w.expect("a", "scheduled due 10s attempts 1")
	w.fail("a", w.due("a", "x"))
	w.expect("a", "scheduled due 10s attempts 2") // the policy's own limit is 3
	w.fail("a", w.due("a", "x"), said(job.Failure{Status: 404}))
	w.expect("a", "dead exhausted attempts 3")
}

func TestARetryAfterIsHeardUnlessTheRuleSaysOtherwise(t *testing.T) { // core.md section 6, point 6
	for list, want := range map[string]string{
		`{"do": "retry"}`: "scheduled due 1m attempts 1",
		`{"do": "retry", "respect_retry_after": true}`:  "scheduled due 1m attempts 1",
		`{"do": "retry", "respect_retry_after": false}`: "scheduled due 10s attempts 1",
		`{"do": "release", "delay": "1s"}`:              "scheduled due 1m evictions 1 releases 1",
	} {
		w := newWorld(t)
		w.put("a", rules(t, list))
		w.fail("a", w.take("a", "x"), func(c *Command) { c.After = job.Minute })
		w.expect("a", want)
	}
}

func TestAReleaseChargesNothingAndIsBoundedByReleaseLimitAndMaxAge(t *testing.T) { // core.md section 6
	w := newWorld(t)
	w.put("a", rules(t, `{"do": "release", "delay": "1ms"}`))
	for n := range job.ReleasesMax {
		if j := w.fail("a", w.due("a", "x")); j.State != job.Scheduled || j.Attempts != 0 {
			t.Fatalf("release %d: %s", n+1, w.tell("a"))
		}
	}
	j := w.fail("a", w.due("a", "x"))
	if j.State != job.Dead || j.Reason != job.Exhausted || j.Attempts != 0 {
		t.Errorf("after release_limit it is %s", w.tell("a"))
	}
	w.do("a", Command{Verb: Revive})
	w.fail("a", w.take("a", "x"))
	w.expect("a", "scheduled due 1ms evictions 1002 releases 1")

	w.put("old", retry(job.Retry{MaxAge: 5 * job.Second, Rules: &job.Rules{{Do: job.DoRelease, Delay: 3 * job.Second}}}))
	w.fail("old", w.take("old", "x"))
	w.expect("old", "scheduled due 3s evictions 1 releases 1")
	w.fail("old", w.due("old", "x"))
	w.expect("old", "dead exhausted evictions 2 releases 2")
}

func TestAFailureThatARuleReleasedIsRecorded(t *testing.T) { // retry.md section 2: every failure is kept
	w := newWorld(t)
	w.put("a", rules(t, `{"do": "release", "delay": "1ms"}`))
	w.fail("a", w.take("a", "x"), said(job.Failure{Type: "Lock", ExitCode: 75}))
	if f := w.failure(); f == nil || f.Number != 1 || f.Attempt != 0 || f.Type != "Lock" || f.ExitCode != 75 {
		t.Errorf("%+v", f)
	}
}

func TestARuleHoldsTheQueueOrTheGroupAndChargesTheJob(t *testing.T) { // retry.md section 4, Hold
	const list = `{"when": {"status": 503}, "do": "hold", "delay": "2m"}`
	held := said(job.Failure{Status: 503})
	t.Run("queue", func(t *testing.T) {
		w := newWorld(t)
		w.put("a", rules(t, list))
		w.put("b")
		w.fail("a", w.take("a", "x"), held)
		w.expect("a", "scheduled due 2m attempts 1")
		w.expectLine()
		if w.queue.HoldUntil != dawn+2*job.Minute {
			t.Errorf("held until %s", w.queue.HoldUntil-dawn)
		}
	})
	t.Run("group", func(t *testing.T) {
		w := newWorld(t)
		w.put("a", grouped("g"), rules(t, list))
		w.put("b", grouped("g"))
		w.put("c", grouped("h"))
		w.fail("a", w.take("a", "x"), held)
		w.expect("a", "scheduled due 2m attempts 1")
		w.expectLine("c")
		if w.gates["g"].Hold != dawn+2*job.Minute || w.queue.HoldUntil != 0 {
			t.Errorf("group %s, queue %s", w.gates["g"].Hold-dawn, w.queue.HoldUntil)
		}
	})
	t.Run("jitter", func(t *testing.T) {
		w := newWorld(t)
		w.dice = 0.5
		w.put("a", rules(t, list))
		w.fail("a", w.take("a", "x"), held)
		w.expect("a", "scheduled due 2m6s attempts 1") // half of a tenth more
	})
	t.Run("as long as the target asked for, at most an hour", func(t *testing.T) { // hold_max
		for after, want := range map[job.Millis]string{
			job.Minute: "scheduled due 2m attempts 1", 5 * job.Minute: "scheduled due 5m attempts 1", 3 * job.Hour: "scheduled due 3h attempts 1",
		} {
			w := newWorld(t)
			w.put("a", rules(t, list))
			w.fail("a", w.take("a", "x"), held, func(c *Command) { c.After = after })
			w.expect("a", want) // the job itself waits as long as it was told
			if until := min(max(after, 2*job.Minute), job.Hour); w.queue.HoldUntil != dawn+until {
				t.Errorf("held for %s", w.queue.HoldUntil-dawn)
			}
		}
	})
	t.Run("a longer hold stays", func(t *testing.T) {
		w := newWorld(t, func(q *job.Queue) { q.HoldUntil = dawn + job.Day })
		w.put("a", rules(t, list))
		w.fail("a", w.take("a", "x"), held)
		w.expect("a", "scheduled due 1d attempts 1") // due = max(that, Retry-After, hold)
	})
	t.Run("also when the job dies of it", func(t *testing.T) {
		w := newWorld(t, func(q *job.Queue) {
			q.Retry.Limit = job.LimitOf(0)
			q.Retry.Rules = &job.Rules{{Do: job.DoHold, Delay: job.Minute}}
		})
		w.put("a")
		w.fail("a", w.take("a", "x"))
		w.expect("a", "dead exhausted attempts 1")
		if w.queue.HoldUntil != dawn+job.Minute {
			t.Error("the target is asked again at once")
		}
	})
}

func TestARuleDecidesAtTheEndOfTheLastLiveCopy(t *testing.T) { // core.md section 5: while another copy lives, the job is not dead
	w := newWorld(t)
	w.put("a", rules(t, `{"when": {"error_type": "Bad"}, "do": "dead"}, {"when": {"error_type": "Lock"}, "do": "release", "delay": "1s"}`),
		func(j *job.Job) { j.Copies = 3 })
	x, y, z := w.take("a", "x"), w.take("a", "y"), w.take("a", "z")
	w.fail("a", x, said(job.Failure{Type: "Bad"}))
	w.expect("a", "leased leases 2 attempts 1")
	w.fail("a", y, said(job.Failure{Type: "Lock"}))
	w.expect("a", "leased leases 1 attempts 1 evictions 1 releases 1")
	w.fail("a", z, said(job.Failure{Type: "Bad"}))
	w.expect("a", "dead killed attempts 2 evictions 1 releases 1")
}

func TestAnImmediateCurveOfARuleStandsAtTheFront(t *testing.T) { // retry.md section 1, kind immediate
	w := newWorld(t)
	w.put("a", rules(t, `{"do": "retry", "curve": {"kind": "immediate"}}`))
	if j := w.fail("a", w.take("a", "x")); j.State != job.Ready || j.Band != job.BandFront {
		t.Errorf("%s in band %d", j.State, j.Band)
	}
}

func TestAFailureAfterItsExpiryIsDeadWhateverARuleSays(t *testing.T) { // core.md section 4, Timeouts
	w := newWorld(t)
	w.put("a", rules(t, `{"do": "release", "delay": "1s"}`), func(j *job.Job) { j.ExpiresAt = dawn + 5 })
	token := w.take("a", "x")
	w.tick(5)
	w.fail("a", token)
	w.expect("a", "dead expired evictions 1 releases 1")
}
