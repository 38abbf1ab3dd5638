package sim_test

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// many deletes or patches all jobs of a queue: to each it is what the same call
// for one job would be, so each has a request of its own, and the answer says
// how many of them took effect.
func (w *world) many() {
	queue, patch := pick(w, queueNames), !w.oneIn(3)
	s := query.Search{Filter: engine.Filter{Queues: []string{queue}}}
	p := job.PriorityDefault + uint16(w.dice.IntN(3)) - 1
	edit := func(j *job.Job) {
		if j.Priority = p; waitsFor(j) != "" {
			j.Park = "" // it may stand elsewhere now
		}
	}
	what := "delete all of " + queue
	if patch {
		what = fmt.Sprintf("patch priority %d of all of %s", p, queue)
	}
	c := &call{}
	for _, j := range w.judge.book.sorted() {
		r := &request{kind: askDelete, id: j.ID, text: what + ", such as " + w.judge.name(j.ID)}
		if patch {
			r.kind, r.command = askOperate, rule.Command{Verb: rule.Patch, Edit: edit}
		}
		if j.Queue == queue && (!patch || j.State.Open()) {
			c.reqs = append(c.reqs, r)
		}
	}
	w.say("    %s, %d jobs", what, len(c.reqs))
	sure := w.sure()
	var n, no int64
	var err error
	c.finish = func() string {
		if err != nil {
			for _, r := range c.reqs {
				w.judge.handOn(r)
			}
			return w.refusal("many", err)
		}
		done, blurred := int64(0), w.judge.blurred
		for _, r := range c.reqs {
			blurred = blurred || r.doubted
			switch {
			case r.commit > 0:
				done++
				w.accepted(r, false)
			case sure:
				broken("answers", "%s was left alone", r)
			}
		}
		if done != n && sure && !blurred || no != 0 {
			broken("answers", "%s: %d were written, and %d answered (%d refused)", what, done, n, no)
		}
		if n > 1 {
			w.judge.coverage.feature("many at once")
		}
		return fmt.Sprintf("%d changed", n)
	}
	w.start(c, func() {
		if patch {
			n, no, err = w.e.Desk.DoAll(w.ctx, desk.Patch{Edit: func(j *job.Job, _ job.Millis) { edit(j) }}.Verb(), s)
		} else {
			n, _, err = w.e.Desk.DoAll(w.ctx, desk.Delete, s)
		}
	})
}
