package jobs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/guard"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// Explained is wire.Explanation, with the policy as the core has it.
type Explained struct {
	wire.Explanation
	Policy *job.Retry `json:"policy"`
}

// Explain says in words and as data why a job does not run, and which retry
// policy holds for it now. words are those of the door that it came in by, before
// ours; "" or nil = it has none.
func Explain(e query.Explanation, now job.Millis, words func(query.Explanation, rule.Reason) string) Explained {
	j, from := e.Job, e.Policy.From
	out := Explained{wire.Explanation{ID: j.ID.String(), Status: states[j.State], Reasons: []wire.Reason{}}, &e.Policy.Retry}
	out.PolicyFrom = wire.PolicyFrom{
		Limit: from.Limit.String(), MaxAge: from.MaxAge.String(), Place: from.Place.String(),
		Curve: from.Curve.String(), Rules: from.Rules.String(), LossLimit: from.LossLimit.String(),
	}
	var texts []string
	switch j.State {
	case job.Leased:
		texts = append(texts, fmt.Sprintf("it runs since %s", date(j.DequeuedAt)))
	case job.Done:
		texts = append(texts, fmt.Sprintf("it was completed at %s", date(j.CompletedAt)))
	case job.Dead:
		if f := e.Cancel; f != nil {
			texts = append(texts, fmt.Sprintf("it is dead: %s, at %s", f.Message, date(f.Failed)))
		} else {
			texts = append(texts, fmt.Sprintf("it is dead: %s", j.Reason))
		}
	case job.Ready, job.Scheduled, job.None, job.States:
	}
	for _, r := range e.Reasons {
		text := ""
		if words != nil {
			text = words(e, r)
		}
		told := reasonOf(j, r, cmp.Or(text, textOf(j, r)), now)
		out.Reasons = append(out.Reasons, told)
		texts = append(texts, told.Text)
	}
	if w := e.Retry; w != nil {
		out.Retry = &wire.RetryWait{
			Retry: w.Number, By: w.By.String(), Rule: w.Rule, Curve: w.Curve.Kind.String(), From: w.From.String(),
			WaitMS: int64(w.Waits), DrewMS: int64(w.Drew), MinMS: int64(w.Min), MaxMS: int64(w.Max),
		}
		if w.Rule > 0 {
			out.Retry.RuleFrom = w.Rules.String()
		}
		texts = append(texts, retryText(w))
	}
	if out.Avoids = e.Avoids; len(e.Avoids) > 0 {
		texts = append(texts, "it failed on "+strings.Join(e.Avoids, ", ")+" and goes elsewhere if an engine there is free when its turn comes")
	}
	if o := e.Overrun; o != nil {
		out.Overrun = &wire.Overrun{FromMS: int64(o.From), ByMS: int64(o.By), AllFromMS: int64(o.AllFrom), AllByMS: int64(o.AllBy)}
		texts = append(texts, overrunText(o))
	}
	out.Text = strings.Join(texts, "; ")
	return out
}

func overrunText(o *rule.OverrunWindow) string {
	text := "a run of it that takes too long is ended, or copied, " + o.From.String()
	if o.By > o.From {
		text += " to " + o.By.String()
	}
	return text + " after it began"
}

func reasonOf(j *job.Job, r rule.Reason, text string, now job.Millis) wire.Reason {
	out := wire.Reason{
		Reason: r.Is.String(), Until: int64(r.Until), Forced: r.Forced, Limit: r.Limit, Label: r.Label,
		Text: text + ends(r.Until, now),
	}
	if r.Is != rule.NotDue && r.Is != rule.Parked && r.Is != rule.ServerLimit && r.Is != rule.BudgetShort {
		out.Queue = j.Queue
	}
	if r.Group || r.Is == rule.GroupParked || r.Is == rule.BehindHead || r.Is == rule.GroupLimit {
		out.Group = j.Group
	}
	if r.Is == rule.BreakerShut {
		out.State = r.State.String()
	}
	if r.Head != nil {
		out.Head = r.Head.ID.String()
	}
	return out
}

// texts are what keeps a job from running, in words; {breaker} is a text of its own.
var texts = [rule.Obstacles]string{
	rule.NotDue:          "it is not due",
	rule.Parked:          "it is parked as {label}",
	rule.Paused:          "{whose} is paused",
	rule.Held:            "{whose} is held",
	rule.BreakerShut:     "{breaker}",
	rule.GroupParked:     "group {group} is parked with {head}",
	rule.BehindHead:      "it stands in group {group} behind {head}",
	rule.GroupLimit:      "as many jobs of group {group} run as may at once: {limit}",
	rule.QueueLimit:      "as many jobs of queue {queue} run as may at once: {limit}",
	rule.RateUsed:        "the rate of {whose} is used up",
	rule.BudgetUsed:      "the retry budget of {whose} is used up",
	rule.BudgetShort:     "budget {label} has not what it needs, or others wait for that before it; its capacity is {limit}",
	rule.NoWorker:        "no worker is connected to {whose}",
	rule.NoFittingWorker: "none of the workers connected to {whose} meets what the job requires",
	rule.NoFreeWorker:    "all workers that may run it have as many jobs as they take",
	rule.ServerLimit:     "as many jobs run as the server allows at once: {limit}",
	rule.BehindTag:       "it waits behind the next task of its affinity tag {label}",
	rule.KeptForTag:      "it is kept for the engines that ran a task of its affinity tag {label}",
	rule.CopyHost:        "it runs, and a copy of it is due, but there is no eligible host: no other one may run it",
	rule.CopyBarred:      "it runs, and a copy of it is due, but held back: {why}",
	rule.EnginesExcluded: "its session excludes every engine that may run it, because its tasks failed there: {limit}",
	rule.InLine:          "nothing holds it back: it is given out when its turn comes",
}

func textOf(j *job.Job, r rule.Reason) string {
	whose := "queue " + strconv.Quote(j.Queue)
	if r.Group {
		whose = "group " + strconv.Quote(j.Group)
	}
	return strings.NewReplacer(
		"{queue}", strconv.Quote(j.Queue), "{group}", strconv.Quote(j.Group), "{whose}", whose, "{label}", strconv.Quote(r.Label), "{why}", r.Label,
		"{limit}", fmt.Sprint(r.Limit), "{head}", headText(r.Head), "{breaker}", breakerText(whose, r),
	).Replace(texts[r.Is])
}

func breakerText(whose string, r rule.Reason) string {
	text := "the breaker of " + whose
	switch {
	case r.Forced:
		return text + " was opened by an operator"
	case r.State == job.BreakerOpen:
		return text + " is open"
	case r.State == job.BreakerHalfOpen:
		return text + " is half open and waits for the outcome of its probe"
	}
	return text + " is closing and lets no more through just now"
}

func headText(head *job.Job) string {
	if head == nil {
		return "a dead job"
	}
	return fmt.Sprintf("job %s, which is %s", head.ID, states[head.State])
}

func ends(until, now job.Millis) string {
	if until == 0 {
		return ""
	}
	return fmt.Sprintf(" until %s (%s)", date(until), max(0, until-now))
}

func retryText(w *rule.RetryWait) string {
	text := fmt.Sprintf("retry %d waits %s", w.Number, w.Waits)
	ruled := fmt.Sprintf("rule %d of the %s", w.Rule, w.Rules)
	switch w.By {
	case job.WaitRule:
		return fmt.Sprintf("it was given back without charge and waits %s, by %s", w.Waits, ruled)
	case job.WaitGrace:
		return fmt.Sprintf("its failure is suppressed and it waits %s, inside its grace", w.Waits)
	case job.WaitWorker:
		text += ", as its worker asked for"
	case job.WaitTarget:
		text += ", as its target asked for (Retry-After)"
	case job.WaitHold:
		text += ", until the hold of its group or queue ends"
	case job.WaitFence:
		return fmt.Sprintf("it waits %s behind its fence (fence_wait), because the engine that had it may run it yet", w.Waits)
	case job.WaitCurve, job.WaitNobody, job.WaitBys:
		text += curveText(w)
	}
	if w.Rule > 0 && (!w.Ruled || w.By != job.WaitCurve) {
		text += "; the failure fits " + ruled
	}
	return text
}

func curveText(w *rule.RetryWait) string {
	whose := w.From.String()
	if w.Ruled {
		whose = fmt.Sprintf("%s's rule %d", whose, w.Rule)
	}
	if w.Changed() {
		return fmt.Sprintf("; the policy has changed since: the %s curve of the %s draws from %s to %s", w.Curve.Kind, whose, w.Min, w.Max)
	}
	return fmt.Sprintf(", drawn from %s to %s by the %s curve of the %s", w.Min, w.Max, w.Curve.Kind, whose)
}

func date(m job.Millis) string {
	return time.UnixMilli(int64(m)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// BreakerStateOf tells where a breaker is; nil where it is simply closed.
func BreakerStateOf(a guard.Aside) *wire.BreakerState {
	t := a.Throttle
	if t == nil || t.State == job.BreakerClosed && !t.Forced {
		return nil
	}
	return &wire.BreakerState{
		State: t.State.String(), Forced: t.Forced, Until: int64(a.Until), Openings: t.Openings, Allowed: t.Allowed, Running: t.Out,
	}
}

// AsideOf tells what holds a group or slows it down.
func AsideOf(a guard.Aside) wire.Aside {
	return wire.Aside{
		Group: a.Group, HoldUntil: int64(a.Hold), BreakerState: BreakerStateOf(a), RateUntil: int64(a.SlowTo),
	}
}
