package policy

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// What "reprise work" gives up by itself, for the command, which knows no rules.
const FinalExit = rule.FinalExit

// FinalStatus is rule.FinalStatus.
func FinalStatus(status int) bool { return rule.FinalStatus(status) }

// Case is a failure as a worker would report it.
type Case struct {
	Failure    job.Failure
	RetryAfter job.Millis // what the target asked for; 0 = nothing
	Earlier    uint32     // failures that were charged before it
}

// Decision is what a policy makes of a Case. Its JSON is the answer of
// "reprise policy decide --json"; times are in milliseconds from the failure.
type Decision struct {
	Rule     *int       `json:"rule"` // place of the rule that decides, from 0; nil = none matches
	Do       string     `json:"do"`   // retry where none matches
	Charged  bool       `json:"charged"`
	Attempts uint32     `json:"attempts"`         // charged ones, this one included if it is
	Reason   string     `json:"reason,omitempty"` // why the job is dead; "" = it is not
	Min      job.Millis `json:"min_ms"`           // until the next attempt
	Max      job.Millis `json:"max_ms"`
	HoldMin  job.Millis `json:"hold_min_ms,omitempty"` // how long the queue, or the group, is held
	HoldMax  job.Millis `json:"hold_max_ms,omitempty"`
}

// Decide asks rule.Step, as the server does, what becomes of a job that fails
// so. What the policy leaves open is the default's.
func Decide(r job.Retry, c Case) (Decision, error) {
	r = r.Over(job.DefaultRetry())
	d := Decision{Do: job.DoRetry.String()}
	match := matchOf(c.Failure.Message)
	if r.Rules != nil {
		at, err := rule.FirstRule(*r.Rules, &c.Failure, match)
		if err != nil {
			return d, err
		}
		if at >= 0 {
			d.Rule, d.Do = &at, (*r.Rules)[at].Do.String()
		}
	}
	first, err := fail(r, c, match, 0)
	if err != nil {
		return d, err
	}
	last, err := fail(r, c, match, 1-1.0/(1<<53))
	if err != nil {
		return d, err
	}
	j := first.Job
	d.Attempts, d.Reason = j.Attempts, j.Reason.String()
	d.Charged = j.Attempts > c.Earlier
	if j.State != job.Dead {
		d.Min, d.Max = j.ReadyAt-began, last.Job.ReadyAt-began
	}
	if first.Queue != nil {
		d.HoldMin, d.HoldMax = first.Queue.HoldUntil-began, last.Queue.HoldUntil-began
	}
	return d, nil
}

const began job.Millis = 1_000_000_000_000 // any date will do

// fail lets a job on paper fail, with given luck.
func fail(r job.Retry, c Case, match rule.Match, luck float64) (rule.Effect, error) {
	server := rule.DefaultServer()
	server.Retry = r
	j := &job.Job{
		State: job.Leased, Copies: 1, CopiesWanted: 1, Created: began, Attempts: c.Earlier, Leases: make([]job.Lease, 1),
		RetainDone: job.Unset, RetainDead: job.Unset,
	}
	return rule.Step(rule.View{
		Now: began, Steady: began, Job: j, Queue: job.NewQueue(""), Server: &server,
		Rand: func() float64 { return luck }, Seq: func() int64 { return 1 },
	}, rule.Command{Verb: rule.SettleRetry, Failure: c.Failure, After: c.RetryAfter, Match: match})
}

// matchOf tries patterns on the head of a message.
func matchOf(message string) rule.Match {
	message = message[:min(len(message), job.MatchBytesMax)]
	return func(pattern string) (fits, known bool) {
		re, err := job.CompilePattern(pattern)
		return err == nil && re.MatchString(message), true
	}
}

// String says it in words.
func (d Decision) String() string {
	text := "no rule matches: the policy decides"
	if d.Rule != nil {
		text = fmt.Sprintf("rules[%d] decides: %s", *d.Rule, d.Do)
	}
	if d.Charged {
		text += fmt.Sprintf("\ncharged as attempt %d", d.Attempts)
	} else {
		text += "\nnot charged"
	}
	if d.Reason != "" {
		text += "; dead, reason " + d.Reason
	} else {
		text += "; tried again " + span(d.Min, d.Max) + " later"
	}
	if d.HoldMax > 0 {
		text += "\nits group, or else its queue, is held for " + span(d.HoldMin, d.HoldMax)
	}
	return text
}

func span(least, most job.Millis) string {
	if least == most {
		return least.String()
	}
	return least.String() + " to " + most.String()
}
