package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestAJobRemembersWhoChoseTheDateOfItsNextAttempt(t *testing.T) { // retry.md section 5
	const list = `{"when": {"status": 404}, "do": "dead"}, {"when": {"status": 503}, "do": "hold", "delay": "1m"},
		{"when": {"error_type": "Lock"}, "do": "release", "delay": "2s"}, {"when": {"status": 500}, "do": "retry"},
		{"when": {"status": 418}, "do": "retry", "respect_retry_after": false}`
	grace := func(j *job.Job) { j.GraceUntil = dawn + job.Day }
	for name, x := range map[string]struct {
		edit func(*job.Job)
		c    Command
		dice float64
		held job.Millis // the queue, before
		want job.Wait
	}{
		"no rule":             {want: job.Wait{By: job.WaitCurve}},
		"a rule":              {c: Command{Failure: job.Failure{Status: 500}}, want: job.Wait{By: job.WaitCurve, Rule: 4}},
		"released":            {c: Command{Failure: job.Failure{Type: "Lock"}}, want: job.Wait{By: job.WaitRule, Rule: 3}},
		"a rule holds":        {c: Command{Failure: job.Failure{Status: 503}}, want: job.Wait{By: job.WaitHold, Rule: 2}},
		"own time":            {c: Command{RetryAt: dawn + 7}, want: job.Wait{By: job.WaitWorker}},
		"own time, a rule":    {c: Command{RetryAt: dawn + 7, Failure: job.Failure{Status: 500}}, want: job.Wait{By: job.WaitWorker, Rule: 4}},
		"target":              {c: Command{After: job.Minute}, want: job.Wait{By: job.WaitTarget}},
		"target, with jitter": {c: Command{After: job.Minute}, dice: 0.9, want: job.Wait{By: job.WaitTarget}},
		"target, too short":   {c: Command{After: 1}, want: job.Wait{By: job.WaitCurve}},
		"target of released":  {c: Command{After: job.Minute, Failure: job.Failure{Type: "Lock"}}, want: job.Wait{By: job.WaitTarget, Rule: 3}},
		"target, longer":      {c: Command{After: 2 * job.Minute, Failure: job.Failure{Status: 503}}, dice: 0.5, want: job.Wait{By: job.WaitTarget, Rule: 2}},
		"target, shorter":     {c: Command{After: job.Second, Failure: job.Failure{Status: 503}}, want: job.Wait{By: job.WaitHold, Rule: 2}},
		"unheard":             {c: Command{After: job.Minute, Failure: job.Failure{Status: 418}}, want: job.Wait{By: job.WaitCurve, Rule: 5}},
		"worker's hold":       {c: Command{Hold: job.Minute}, want: job.Wait{By: job.WaitHold}},
		"both, hold longer":   {c: Command{Hold: 2 * job.Minute, After: job.Minute}, want: job.Wait{By: job.WaitHold}},
		"both, hold shorter":  {c: Command{Hold: job.Minute, After: 2 * job.Minute}, dice: 0.5, want: job.Wait{By: job.WaitTarget}},
		"held before":         {held: job.Hour, want: job.Wait{By: job.WaitHold}},
		"held, then a target": {c: Command{After: job.Minute}, held: 61 * job.Second, want: job.Wait{By: job.WaitHold}},
		"held a little":       {held: 1, want: job.Wait{By: job.WaitCurve}},
		"grace":               {edit: grace, c: Command{Failure: job.Failure{Status: 503}}, want: job.Wait{By: job.WaitGrace}},
		"target in grace":     {edit: grace, c: Command{After: job.Minute}, dice: 0.5, want: job.Wait{By: job.WaitTarget}},
		"dead by a rule":      {c: Command{Failure: job.Failure{Status: 404}}},
		"dead at the limit":   {edit: func(j *job.Job) { j.Retry.Limit = job.LimitOf(0) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("a", rules(t, list), func(j *job.Job) {
				if x.edit != nil {
					x.edit(j)
				}
			})
			x.c.Verb, x.c.Token = SettleRetry, w.take("a", "x")
			if w.dice = x.dice; x.held > 0 {
				w.queue.HoldUntil = dawn + x.held
			}
			if j := w.do("a", x.c); j.Wait != x.want {
				t.Errorf("%s: %+v, want %+v", w.tell("a"), j.Wait, x.want)
			}
		})
	}
}

func TestAWaitIsForgottenWhenItIsOverOrChanged(t *testing.T) {
	for name, end := range map[string]func(*world){
		"taken":    func(w *world) { w.due("a", "x") },
		"brought":  func(w *world) { w.do("a", Command{Verb: Revive}) },
		"moved":    func(w *world) { w.do("a", Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt += 5 }}) },
		"cancel":   func(w *world) { w.do("a", Command{Verb: Cancel}) },
		"returned": func(w *world) { w.do("a", Command{Verb: SettleRelease, Token: w.due("a", "x"), After: job.Hour}) },
	} {
		w := newWorld(t)
		w.put("a")
		w.fail("a", w.take("a", "x"))
		w.do("a", Command{Verb: Patch, Edit: func(j *job.Job) { j.Priority++ }})
		if j := w.jobs["a"]; j.Wait.By != job.WaitCurve {
			t.Errorf("another priority is no other date: %+v", j.Wait)
		}
		if end(w); w.jobs["a"].Wait != (job.Wait{}) {
			t.Errorf("%s: %+v", name, w.jobs["a"].Wait)
		}
	}
}

func TestACopyThatFailsChoosesNoDateWhileAnotherLives(t *testing.T) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	x, y := w.take("a", "x"), w.take("a", "y")
	if j := w.fail("a", x); j.Wait != (job.Wait{}) {
		t.Errorf("%+v", j.Wait)
	}
	if j := w.fail("a", y); j.Wait.By != job.WaitCurve {
		t.Errorf("%+v", j.Wait)
	}
}

func TestARunTimeoutRemembersItsRule(t *testing.T) {
	w := newWorld(t)
	w.put("a", rules(t, `{"when": {"status": 1}, "do": "dead"}, {"when": {"timeout": true}, "do": "release", "delay": "2s"}`),
		func(j *job.Job) { j.RunTimeout = job.Second })
	w.take("a", "x")
	w.tick(job.Second)
	if j := w.do("a", Command{Verb: Lapse}); j.Wait != (job.Wait{By: job.WaitRule, Rule: 2}) {
		t.Errorf("%s: %+v", w.tell("a"), j.Wait)
	}
}
