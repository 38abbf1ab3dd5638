package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// after is a failure at which the target asked to be left alone for a span.
func after(span job.Millis) func(*Command) { return func(c *Command) { c.After = span } }

func TestARetryAfterHoldsTheQueueOrTheGroup(t *testing.T) { // retry.md section 4, Hold; core.md section 2
	for name, x := range map[string]struct {
		put   func(*job.Job)
		order job.Order
		dice  float64
		after job.Millis
		want  job.Millis // the hold, from now
		due   string
	}{
		"the queue":           {func(*job.Job) {}, job.OrderNone, 0, job.Minute, job.Minute, "scheduled due 1m attempts 1"},
		"the group":           {func(j *job.Job) { j.Group = "g" }, job.OrderNone, 0, job.Minute, job.Minute, "scheduled due 1m attempts 1"},
		"the strict group":    {func(j *job.Job) { j.Group = "g" }, job.OrderStrict, 0, job.Minute, job.Minute, "scheduled due 1m attempts 1"},
		"a tenth longer":      {func(*job.Job) {}, job.OrderNone, 0.5, job.Minute, 63 * job.Second, "scheduled due 1m3s attempts 1"},
		"an hour at most":     {func(*job.Job) {}, job.OrderNone, 0.5, 3 * job.Hour, job.Hour, "scheduled due 3h attempts 1"},
		"shorter than curve":  {func(*job.Job) {}, job.OrderNone, 0, job.Second, job.Second, "scheduled due 15s attempts 1"},
		"of a millisecond":    {func(*job.Job) {}, job.OrderNone, 0, 1, 1, "scheduled due 15s attempts 1"},
		"inside grace":        {func(j *job.Job) { j.GraceUntil = dawn + job.Day }, job.OrderNone, 0, job.Minute, job.Minute, "scheduled due 1m suppressed 1"},
		"when it is given up": {retry(job.Retry{Limit: job.LimitOf(0)}), job.OrderNone, 0, job.Minute, job.Minute, "dead exhausted attempts 1"},
		"of a killed job":     {rules(t, `{"do": "dead"}`), job.OrderNone, 0, job.Minute, job.Minute, "dead killed attempts 1"},
		"of a released job":   {rules(t, `{"do": "release", "delay": "1s"}`), job.OrderNone, 0, job.Minute, job.Minute, "scheduled due 1m evictions 1 releases 1"},
		"that nobody heard":   {rules(t, `{"do": "retry", "respect_retry_after": false}`), job.OrderNone, 0, job.Minute, 0, "scheduled due 10s attempts 1"},
		"that nobody said":    {func(*job.Job) {}, job.OrderNone, 0.5, 0, 0, "scheduled due 15s attempts 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(q *job.Queue) { q.Order = x.order })
			w.dice = x.dice
			w.put("a", x.put)
			j := w.fail("a", w.take("a", "x"), after(x.after))
			if w.expect("a", x.due); j.Group != "" {
				if g := w.gates["g"]; g == nil || g.Hold != dawn+x.want || w.queue.HoldUntil != 0 {
					t.Errorf("the gate is %+v, the queue held until %d", g, w.queue.HoldUntil)
				}
				return
			}
			if got := w.queue.HoldUntil; got != 0 && got != dawn+x.want || got == 0 && x.want != 0 {
				t.Errorf("held until %d, want %s", got, x.want)
			}
		})
	}
}

func TestARetryAfterHoldsWhileAnotherCopyLives(t *testing.T) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	x, _ := w.take("a", "x"), w.take("a", "y")
	w.fail("a", x, after(job.Minute))
	if w.expect("a", "leased leases 1 attempts 1"); w.queue.HoldUntil != dawn+job.Minute {
		t.Errorf("held until %d", w.queue.HoldUntil)
	}
}

func TestAKillHoldsToo(t *testing.T) { // the target asked to be left alone, whatever becomes of this job
	w := newWorld(t)
	w.put("a")
	w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x"), After: job.Minute})
	if w.expect("a", "dead killed attempts 1"); w.queue.HoldUntil != dawn+job.Minute {
		t.Errorf("held until %d", w.queue.HoldUntil)
	}
}

func TestAHoldNeverEndsSooner(t *testing.T) { // of two holds the longer one counts
	w := newWorld(t, func(q *job.Queue) { q.HoldUntil = dawn + 2*job.Minute })
	w.put("a")
	w.fail("a", w.take("a", "x"), after(job.Minute))
	if w.expect("a", "scheduled due 2m attempts 1"); w.queue.HoldUntil != dawn+2*job.Minute {
		t.Errorf("held until %d", w.queue.HoldUntil)
	}
}

func TestOneTargetAsksThroughARuleAndByItself(t *testing.T) { // the longest counts, drawn once
	w := newWorld(t)
	w.put("a", rules(t, `{"do": "hold", "delay": "2m"}`))
	w.put("b", rules(t, `{"do": "hold", "delay": "2m"}`))
	w.fail("a", w.take("a", "x"), after(job.Minute))
	w.fail("b", w.take("b", "x"), after(3*job.Minute))
	w.expect("a", "scheduled due 2m attempts 1")
	w.expect("b", "scheduled due 3m attempts 1")
}

// Holds that a worker asks for.

func TestAWorkersHoldParksWithEveryOutcome(t *testing.T) { // retry.md section 4: a worker's hold
	for name, x := range map[string]struct {
		c    Command
		want string
	}{
		"ok":              {Command{Verb: SettleOK}, "done"},
		"release":         {Command{Verb: SettleRelease}, "ready evictions 1"},
		"release, later":  {Command{Verb: SettleRelease, After: job.Second}, "scheduled due 1s evictions 1"},
		"dead":            {Command{Verb: SettleDead}, "dead killed attempts 1"},
		"retry":           {Command{Verb: SettleRetry}, "scheduled due 1m attempts 1"},
		"retry, own time": {Command{Verb: SettleRetry, RetryAt: dawn + 1}, "scheduled due 1m attempts 1 overrides 1"},
	} {
		for _, group := range []string{"", "g"} {
			t.Run(name+group, func(t *testing.T) {
				w := newWorld(t)
				w.put("a", func(j *job.Job) { j.Group = group })
				x.c.Token, x.c.Hold = w.take("a", "x"), job.Minute
				w.do("a", x.c)
				w.expect("a", x.want)
				if got := max(w.queue.HoldUntil, w.held("g")); got != dawn+job.Minute || (group == "") != (w.queue.HoldUntil > 0) {
					t.Errorf("the queue is held until %d, the group until %d", w.queue.HoldUntil, w.held("g"))
				}
			})
		}
	}
}

// held is until when a group is held.
func (w *world) held(group string) job.Millis {
	if g := w.gates[group]; g != nil {
		return g.Hold
	}
	return 0
}

func TestOfAHoldAndARetryAfterTheLongerCounts(t *testing.T) {
	for _, verb := range []Verb{SettleRetry, SettleDead} {
		for _, x := range []struct{ hold, after, want job.Millis }{
			{job.Minute, 2 * job.Minute, 2 * job.Minute}, {2 * job.Minute, job.Minute, 2 * job.Minute}, {5 * job.Hour, 0, job.Hour},
		} {
			w := newWorld(t)
			w.put("a")
			w.do("a", Command{Verb: verb, Token: w.take("a", "x"), Hold: x.hold, After: x.after})
			if w.queue.HoldUntil != dawn+x.want {
				t.Errorf("%s: held until %s, want %s", verb, w.queue.HoldUntil-dawn, x.want)
			}
		}
	}
}

func TestARuleThatDoesNotHearATargetHearsTheWorker(t *testing.T) {
	w := newWorld(t)
	w.put("a", rules(t, `{"do": "retry", "respect_retry_after": false}`))
	w.fail("a", w.take("a", "x"), after(job.Hour), func(c *Command) { c.Hold = job.Minute })
	w.expect("a", "scheduled due 1m attempts 1")
}

func TestALateOKHoldsAndARepeatedOneDoesNot(t *testing.T) { // core.md section 4, Late OK
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "x")
	w.lose("a", "x", job.ByLapse)
	ok := Command{Verb: SettleOK, Token: token, Hold: job.Minute}
	if w.do("a", ok); w.queue.HoldUntil != dawn+job.Minute {
		t.Errorf("held until %d", w.queue.HoldUntil)
	}
	w.tick(job.Second)
	if w.do("a", ok); w.queue.HoldUntil != dawn+job.Minute {
		t.Errorf("the same answer again holds until %d", w.queue.HoldUntil)
	}
}

func TestARefusedSettleHoldsNobody(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "x")
	w.lose("a", "x", job.ByLapse)
	w.take("a", "y")
	if err := w.try("a", Command{Verb: SettleRetry, Token: token, Hold: job.Minute, After: job.Minute}); err == nil || w.queue.HoldUntil != 0 {
		t.Errorf("%v, held until %d", err, w.queue.HoldUntil)
	}
}
