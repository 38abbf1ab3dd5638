package jobs

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// states are Zizq's five words.
var states = [job.States]string{
	job.Scheduled: "scheduled", job.Ready: "ready", job.Leased: "in_flight", job.Done: "completed", job.Dead: "dead",
}

// StatusOf is the word of a state on the wire; "" for None.
func StatusOf(s job.State) string { return states[s] }

// AppendJob appends a job object without its payload.
func AppendJob(b []byte, j *job.Job) []byte { return append(members(b, j, nil), '}') }

// AppendListed appends a job object with its payload and what it waits for.
func AppendListed(b []byte, l query.Listed) []byte { return AppendWhole(b, l, nil) }

// AppendWhole appends a job object with its payload, what it waits for, and what
// it made; nil = nothing.
func AppendWhole(b []byte, l query.Listed, result []byte) []byte {
	b = appendMembers(b, l.Job, l.Is, orNull(l.Payload))
	if result != nil {
		b = append(append(b, `,"result":`...), result...)
	}
	return append(b, '}')
}

// AppendAdded appends the answer to one enqueue. Of a duplicate whose job is
// gone only what was asked for is left to tell, which is the same content.
func AppendAdded(b []byte, a engine.Added, asked *engine.NewJob) []byte {
	if a.Job != nil {
		b = members(b, a.Job, nil)
	} else {
		was := asked.Job
		was.ID, was.State = a.ID, job.Done
		b = append(members(b, &was, nil), `,"gone":true`...)
	}
	return append(b, [...]string{
		`,"duplicate":false,"folded":false}`, `,"duplicate":true,"folded":false}`, `,"duplicate":false,"folded":true}`,
	}[bit(a.Duplicate)|bit(a.Folded)<<1]...)
}

// AppendAddedAll appends the answer to a bulk.
func AppendAddedAll(b []byte, list []engine.Added, asked []engine.NewJob) []byte {
	b = append(b, `{"jobs":[`...)
	for i := range list {
		b = AppendAdded(comma(b), list[i], &asked[i])
	}
	return append(b, `]}`...)
}

// AppendLine appends one line of a take stream, with the token for a holder
// that settles by token.
func AppendLine(b []byte, d *engine.Delivery, token bool) []byte {
	return append(appendDelivery(b, d, token), '\n')
}

// AppendLeases appends the answer to POST /jobs/lease.
func AppendLeases(b []byte, list []engine.Delivery) []byte {
	b = append(b, `{"jobs":[`...)
	for i := range list {
		b = appendDelivery(comma(b), &list[i], true)
	}
	return append(b, `]}`...)
}

// AppendRegistered appends the answer to POST /jobs/lease with register.
func AppendRegistered(b []byte, list []engine.Delivery, secret string) []byte {
	b = AppendLeases(b, list)
	return append(word(b[:len(b)-1], `,"secret":"`, secret), '}')
}

func appendDelivery(b []byte, d *engine.Delivery, token bool) []byte {
	if d.Voided {
		b = d.Job.ID.AppendTo(append(b, `{"id":"`...))
		b = d.Lease.Token.AppendTo(append(b, `","lease":"`...))
		return append(word(b, `","voided":"`, d.Ending.String()), '}')
	}
	b = members(b, d.Job, orNull(d.Payload))
	if token {
		b = append(d.Lease.Token.AppendTo(append(b, `,"lease":"`...)), '"')
		b = positive(b, `,"lease_until":`, int64(d.Lease.Until))
		b = positive(b, `,"run_until":`, int64(d.Lease.RunEnd))
		b = positive(b, `,"start_by":`, int64(d.Lease.StartBy))
		b = positive(b, `,"stop_after_ms":`, int64(d.StopAfter))
		if d.Held {
			b = append(b, `,"held":true`...)
		}
	}
	return append(b, '}')
}

// AppendVerdicts appends the answer to settle and extend: one verdict per
// entry of the request, whose ids are given by id.
func AppendVerdicts(b []byte, list []engine.Verdict, id func(i int) job.ID) []byte {
	b = append(b, `{"verdicts":[`...)
	for i := range list {
		b = append(id(i).AppendTo(append(comma(b), `{"id":"`...)), '"')
		if v := &list[i]; v.Err != nil {
			b = word(b, `,"code":"`, FaultOf(v.Err).Code)
			b = quote(b, `,"error":`, TextOf(v.Err))
		} else {
			b = word(b, `,"status":"`, states[v.State])
			if len(v.Recalled) > 0 {
				b = appendIDs(append(b, `,"recalled":`...), v.Recalled)
			}
		}
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func appendIDs(b []byte, list []job.ID) []byte {
	b = append(b, '[')
	for _, id := range list {
		b = append(id.AppendTo(append(comma(b), '"')), '"')
	}
	return append(b, ']')
}

// AppendVerdictJob appends the job of a verdict; of one that left, its end.
func AppendVerdictJob(b []byte, id job.ID, v engine.Verdict) []byte {
	if v.Job != nil {
		return AppendJob(b, v.Job)
	}
	b = append(id.AppendTo(append(b, `{"id":"`...)), '"')
	return append(word(b, `,"status":"`, states[v.State]), '}')
}

// AppendMissing appends the answer to a bulk success that was not whole.
func AppendMissing(b []byte, missing []string, why error) []byte {
	b = append(b, `{"not_found":[`...)
	for _, id := range missing {
		b = quote(comma(b), "", id)
	}
	b = append(b, ']')
	if why != nil {
		b = quote(b, `,"error":`, TextOf(why))
		b = word(b, `,"code":"`, FaultOf(why).Code)
	}
	return append(b, '}')
}

// members appends a job object without its end, in the order of reference 1.6;
// what Zizq does not have follows. Optional members are left out, not null.
func members(b []byte, j *job.Job, payload []byte) []byte {
	return appendMembers(b, j, rule.NotDue, payload)
}

// appendMembers also says what keeps a ready job from running.
func appendMembers(b []byte, j *job.Job, is rule.Obstacle, payload []byte) []byte {
	enqueued := !j.ID.IsZero() // else it is a template, of which there is less to tell
	b = append(b, '{')
	if enqueued {
		b = append(j.ID.AppendTo(append(b, `"id":"`...)), `",`...)
	}
	b = quote(b, `"type":`, j.Type)
	b = quote(b, `,"queue":`, j.Queue)
	b = number(b, `,"priority":`, int64(j.Priority))
	if enqueued {
		b = word(b, `,"status":"`, states[j.State])
	}
	if payload != nil {
		b = append(append(b, `,"payload":`...), payload...)
	}
	if enqueued {
		b = number(b, `,"ready_at":`, int64(j.ReadyAt))
		b = number(b, `,"attempts":`, int64(j.Attempts))
	}
	if j.Retry != nil {
		b = appendRetry(b, j.Retry)
	}
	b = positive(b, `,"dequeued_at":`, int64(j.DequeuedAt))
	b = positive(b, `,"failed_at":`, int64(j.FailedAt))
	b = appendRetention(b, j)
	b = positive(b, `,"purge_at":`, int64(j.PurgeAt))
	b = positive(b, `,"completed_at":`, int64(j.CompletedAt))
	if j.Extras != nil {
		b = appendKeys(b, j.Extras)
	}
	if j.Group != "" {
		b = quote(b, `,"group":`, j.Group)
	}
	b = positive(b, `,"expires_at":`, int64(j.ExpiresAt))
	b = positive(b, `,"run_timeout_ms":`, int64(j.RunTimeout))
	b = positive(b, `,"start_timeout_ms":`, int64(j.StartTimeout))
	if j.Copies > 1 {
		b = number(b, `,"copies":`, int64(j.Copies))
	}
	for i, r := range j.Requires {
		b = quote(append(b, [...]string{`,"requires":[`, `,`}[min(i, 1)]...), "", r.Property+" "+r.Op+" "+r.Value)
		if i == len(j.Requires)-1 {
			b = append(b, ']')
		}
	}
	if j.Extras != nil {
		b = appendExtras(b, j.Extras)
	}
	b = positive(b, `,"losses":`, int64(j.Losses))
	b = positive(b, `,"evictions":`, int64(j.Evictions))
	b = positive(b, `,"reschedules":`, int64(j.Reschedules))
	if j.Reason != job.Alive {
		b = word(b, `,"reason":"`, j.Reason.String())
	}
	if wait := waitOf(j, is); wait != "" {
		b = word(b, `,"wait":"`, wait)
	}
	return b
}

// appendRetry tells a policy in Zizq's words where they suffice.
func appendRetry(b []byte, r *job.Retry) []byte {
	rest := *r
	if n, counted := r.Limit.Count(); counted {
		b = number(b, `,"retry_limit":`, int64(n))
		rest.Limit = job.Limit{}
	}
	if c := r.Curve; c != nil && c.Kind == job.CurvePolynomial &&
		c.Base <= math.MaxUint32 && c.Spread <= math.MaxUint32 {
		b = append(b, `,"backoff":{"exponent":`...)
		b = jsontext.AppendFloat(b, c.Exponent, 64)
		b = number(b, `,"base_ms":`, int64(c.Base))
		b = append(number(b, `,"jitter_ms":`, int64(c.Spread)), '}')
		if c.Count == job.CountPrevious { // the other count is told by `retry` too
			rest.Curve = nil
		}
	}
	if rest.IsZero() {
		return b
	}
	if whole, err := r.MarshalJSON(); err == nil {
		b = append(append(b, `,"retry":`...), whole...)
	}
	return b
}

// appendRetention tells what was given: nothing, or also an object without members.
func appendRetention(b []byte, j *job.Job) []byte {
	if j.RetainDone == job.Unset && j.RetainDead == job.Unset && (j.Extras == nil || !j.Extras.NoRetention) {
		return b
	}
	b = append(b, `,"retention":{`...)
	if j.RetainDone != job.Unset {
		b = number(b, `"completed_ms":`, int64(j.RetainDone))
	}
	if j.RetainDead != job.Unset {
		b = number(comma(b), `"dead_ms":`, int64(j.RetainDead))
	}
	return append(b, '}')
}

// AppendFailure appends an error record. Its number counts all failures of the
// job and never falls; it differs from the attempts charged after a grace or
// a revive.
func AppendFailure(b []byte, f job.Failure) []byte {
	b = number(b, `{"attempt":`, int64(f.Number))
	b = quote(b, `,"message":`, f.Message)
	if f.Type != "" || f.Blank&job.BlankType != 0 {
		b = quote(b, `,"error_type":`, f.Type)
	}
	if f.Backtrace != "" || f.Blank&job.BlankBacktrace != 0 {
		b = quote(b, `,"backtrace":`, f.Backtrace)
	}
	b = number(b, `,"dequeued_at":`, int64(f.Started))
	b = number(b, `,"failed_at":`, int64(f.Failed))
	b = positive(b, `,"status":`, int64(f.Status))
	b = positive(b, `,"exit_code":`, int64(f.ExitCode))
	if f.Timeout {
		b = append(b, `,"timeout":true`...)
	}
	if name := job.WorkerOf(f.Holder); name != "" && f.Holder[0] != 'a' { // an anonymous stream has no name
		b = quote(b, `,"worker":`, name)
	}
	if f.Attempt != f.Number {
		b = number(b, `,"attempts":`, int64(f.Attempt))
	}
	return append(b, '}')
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

func orNull(payload []byte) []byte {
	if len(payload) == 0 {
		return []byte("null")
	}
	return payload
}

// comma parts an entry from the one before it, if there is one.
func comma(b []byte) []byte {
	if last := b[len(b)-1]; last != '[' && last != '{' {
		return append(b, ',')
	}
	return b
}

func number(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

func positive(b []byte, key string, n int64) []byte {
	if n <= 0 {
		return b
	}
	return number(b, key, n)
}

// word appends a string of ours, which needs no escapes; key opens the quotes.
func word(b []byte, key, s string) []byte {
	return append(append(append(b, key...), s...), '"')
}

func quote(b []byte, key, s string) []byte {
	b, _ = jsontext.AppendQuote(append(b, key...), s) // what is not UTF-8 is replaced
	return b
}
