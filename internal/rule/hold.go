package rule

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/job"
)

// hold keeps the group of a job out of line, or its queue if it has no group,
// for about a span that its target, its worker or a rule asks for (retry.md
// section 4). 0 asks for nothing. It charges nobody, so it holds inside a
// grace, while another copy lives and when the job is given up, too.
func hold(v View, span job.Millis, e *Effect) {
	if span <= 0 {
		return
	}
	until := HoldUntil(v.Now, v.Now.Add(span), v.Rand())
	if v.Gate != nil && v.Gate.Group != "" {
		e.Gate = HoldGate(cmp.Or(e.Gate, v.Gate), until)
		return
	}
	e.Queue = HoldQueue(v.Queue, until)
}

// heldUntil is when the line of the job is free again, as far as known.
func heldUntil(v View, e Effect) job.Millis {
	q, g := cmp.Or(e.Queue, v.Queue), cmp.Or(e.Gate, v.Gate)
	if g == nil {
		return q.HoldUntil
	}
	return max(q.HoldUntil, g.Hold)
}

// HoldQueue keeps a whole queue out of line until a time.
func HoldQueue(q *job.Queue, until job.Millis) *job.Queue {
	held := *q
	held.HoldUntil = max(q.HoldUntil, until)
	return &held
}
