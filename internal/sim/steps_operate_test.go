package sim_test

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
)

// operate is an operator's command on any job there is.
func (w *world) operate() {
	if w.setup.inboxes && w.oneIn(3) && w.beyondHeads() {
		return
	}
	list := w.judge.book.sorted()
	if len(list) == 0 {
		w.say("    (no job)")
		return
	}
	j := pick(w, list)
	r := &request{kind: askOperate, id: j.ID}
	switch verb := w.operation(j); verb {
	case rule.Purge:
		w.remove(j)
		return
	case rule.Patch:
		r.command, r.text = w.edit(j)
	default:
		r.command = rule.Command{Verb: verb, Place: job.Place(w.dice.IntN(4)), Allow: verb == rule.Revive && !w.oneIn(4)}
		r.text = fmt.Sprintf("%s, place %s, out of order %t", verb, r.command.Place, r.command.Allow)
	}
	r.text += " of " + w.judge.name(j.ID)
	w.operated(r, func() (engine.Verdict, error) { return enginetest.Operate(w.ctx, w.e.Engine, j.ID, r.command) })
}

// operated sends what an operator asks of one job, and judges the answer.
func (w *world) operated(r *request, do func() (engine.Verdict, error)) {
	w.foretell(r, w.sure())
	w.say("    %s", r)
	var v engine.Verdict
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		switch job.KindOf(err) {
		case job.WrongState, job.NotFound, job.Exists:
			v.Err = err
		default:
			if err != nil {
				return w.refusal("operate", err)
			}
		}
		return w.verdict(r, v)
	}
	w.start(c, func() { v, err = do() })
}

// operation draws a verb, mostly one that the state of the job allows.
func (w *world) operation(j *job.Job) rule.Verb {
	verbs := []rule.Verb{rule.Offer, rule.Revive, rule.Cancel, rule.Patch, rule.Purge}
	v := pick(w, verbs)
	if j.State == job.Dead && w.oneIn(2) {
		return rule.Revive
	}
	for range 4 {
		if !rule.Allowed(v, j.State) || v == rule.Cancel && w.oneIn(2) {
			v = pick(w, verbs)
		}
	}
	return v
}

// edit draws a patch.
func (w *world) edit(j *job.Job) (rule.Command, string) {
	at := w.now() + w.between(-2*job.Second, 8*job.Second)
	p := job.PriorityDefault + uint16(w.dice.IntN(3)) - 1
	var text string
	var edit func(*job.Job)
	switch w.dice.IntN(6) {
	case 0:
		text, edit = fmt.Sprintf("patch priority %d", p), func(j *job.Job) { j.Priority = p }
	case 1:
		text, edit = "patch due "+stamp(at), func(j *job.Job) { j.ReadyAt = at }
	case 2:
		text, edit = "patch expiry "+stamp(at), func(j *job.Job) { j.ExpiresAt = at }
	case 3:
		text, edit = "patch limit 0", func(j *job.Job) { j.Retry = &job.Retry{Limit: job.LimitOf(0)} }
	default:
		text, edit = "unpark", func(j *job.Job) { j.Park = "" }
		if j.Park == "" {
			text, edit = "park under needs/x", func(j *job.Job) { j.Park = "needs/x" }
		}
	}
	if j.Park != "" { // what is aside must come back some time
		text, edit = "unpark", func(j *job.Job) { j.Park = "" }
	} else if text[:4] == "park" {
		w.judge.coverage.feature("parked")
	}
	return rule.Command{Verb: rule.Patch, Edit: edit}, text
}

// remove deletes a job, whatever state it is in.
func (w *world) remove(j *job.Job) {
	r := &request{kind: askDelete, id: j.ID, text: "delete " + w.judge.name(j.ID)}
	w.say("    %s", r)
	sure := w.sure()
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err == nil {
			w.accepted(r, false)
			return "deleted"
		}
		if sure && job.KindOf(err) == job.NotFound {
			broken("answers", "%s was answered %v", r, err)
		}
		w.judge.handOn(r)
		if job.KindOf(err) == job.NotFound && r.commit > 0 {
			if !r.doubted {
				broken("I2", "%s took effect and was refused: %v", r, err)
			}
			w.judge.blurred = true
		}
		return w.refusal("delete", err, job.NotFound)
	}
	w.start(c, func() { _, err = w.e.Desk.Do(w.ctx, job.Actor{}, desk.Delete, j.ID) })
}

// furnish gives the queues what their names promise.
func (w *world) furnish() {
	if w.grid != nil {
		w.furnishGrid()
		return
	}
	for _, f := range []struct {
		name        string
		order       job.Order
		concurrency int
	}{{"start", job.OrderStart, 2}, {"strict", job.OrderStrict, 0}, {"one", job.OrderNone, 1}} {
		onDead := job.OnDead(w.dice.IntN(3))
		what := fmt.Sprintf("order %s, concurrency %d, on_dead %s", f.order, f.concurrency, onDead)
		w.setQueue(f.name, what, func(q *job.Queue) { q.Order, q.Concurrency, q.OnDead = f.order, f.concurrency, onDead })
	}
	drop := job.OnFull(w.dice.IntN(2))
	if w.oneIn(2) {
		w.setQueue("small", "3 jobs, when full "+drop.String(), func(q *job.Queue) { q.MaxJobs, q.OnFull = 3, drop })
	} else {
		w.setQueue("small", "40 bytes, when full "+drop.String(), func(q *job.Queue) { q.MaxBytes, q.OnFull = 40, drop })
	}
	if w.oneIn(2) {
		w.setQueue("plain", "lifo at the front", func(q *job.Queue) { q.FrontOrder = job.FrontLIFO })
	}
	w.furnishInboxes()
	for what := range 4 {
		if w.oneIn(3) {
			w.limitFlow(pick(w, queueNames[:3]), what)
		}
	}
	w.settle()
}

// changeQueue draws new settings for a queue.
func (w *world) changeQueue() {
	name := pick(w, queueNames)
	q := w.judge.book.queue(name)
	if q.Paused {
		w.setQueue(name, "resume", func(q *job.Queue) { q.Paused = false })
		return
	}
	until, n := w.now()+w.between(job.Second, 10*job.Second), w.dice.IntN(3)
	if w.setup.inboxes && w.oneIn(4) {
		w.toggleTurns(name)
		return
	}
	switch what := w.dice.IntN(24); what {
	case 0, 1:
		w.setQueue(name, "pause", func(q *job.Queue) { q.Paused = true })
	case 2, 3:
		w.setQueue(name, "hold until "+stamp(until), func(q *job.Queue) { q.HoldUntil = until })
	case 4:
		w.setQueue(name, fmt.Sprint("concurrency ", n), func(q *job.Queue) { q.Concurrency = n })
	case 5:
		w.setQueue(name, "on_dead "+job.OnDead(n).String(), func(q *job.Queue) { q.OnDead = job.OnDead(n) })
	case 6:
		w.setQueue(name, "late OK "+fmt.Sprint(q.LateOKNever), func(q *job.Queue) { q.LateOKNever = !q.LateOKNever })
	case 7:
		w.setQueue(name, "require token "+fmt.Sprint(!q.RequireToken), func(q *job.Queue) { q.RequireToken = !q.RequireToken })
	case 8:
		w.setQueue(name, "non-idempotent", func(q *job.Queue) { q.NonIdempotent = true })
	case 9:
		span := pick(w, []job.Millis{0, 3 * job.Second, 12 * job.Second})
		w.setQueue(name, "timeouts "+span.String(), func(q *job.Queue) { q.RunTimeout, q.StartTimeout = span, span/2 })
	case 10, 11:
		p := w.policy()
		w.setQueue(name, "policy "+told(&p), func(q *job.Queue) { q.Retry = p })
	case 12, 13, 14, 15, 16:
		w.protectQueue(name, (what-12)/2, n)
	case 17, 18, 19, 20:
		w.limitFlow(name, what-17)
	case 21, 22:
		w.limitFlow(name, 3*(what-21)) // a rate or fair share
	default:
		if name != "configured" { // its order is what the configuration says, at every start
			w.setQueue(name, "order "+job.Order(n).String(), func(q *job.Queue) { q.Order = job.Order(n) })
		}
	}
}

// setQueue changes the settings of a queue.
func (w *world) setQueue(name, what string, edit func(*job.Queue)) {
	r := &request{kind: askQueue, name: name, edit: edit, text: "queue " + name + ": " + what}
	w.say("    %s", r)
	sure := w.sure()
	old := *w.judge.book.queue(name)
	wanted := old
	edit(&wanted)
	grouped := false
	for _, j := range w.judge.book.jobs {
		grouped = grouped || j.Queue == name && member(j, j)
	}
	refuse := wanted.Order == job.OrderStrict && wanted.Concurrency > 1 || wanted.Order != old.Order && grouped || noTurns(&wanted)
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if sure && (err != nil) != refuse && job.KindOf(err) != job.Unavailable {
			broken("core.md 2", "%s was answered %v", r, err)
		}
		if err != nil {
			return w.refusal("queue", err, job.Invalid, job.WrongState)
		}
		w.accepted(r, false)
		return "changed"
	}
	w.start(c, func() {
		_, err = w.e.Desk.SetQueue(w.ctx, name, func(q *job.Queue) error { edit(q); return nil }, job.Actor{})
	})
}

// holdGroup keeps a group out of line.
func (w *world) holdGroup() {
	queue, group, until := pick(w, queueNames), pick(w, groupNames), w.now()+w.between(job.Second, 10*job.Second)
	r := &request{kind: askGroup, name: job.GateKey(queue, group), until: until}
	r.text = fmt.Sprintf("hold %s/%s until %s", queue, group, stamp(until))
	w.say("    %s", r)
	longer := !w.sure() || w.judge.book.gate(queue, group).Hold >= until // perhaps it is held for longer
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err != nil {
			return w.refusal("hold", err)
		}
		if r.commit > 0 || !longer {
			w.accepted(r, false)
		}
		w.judge.coverage.feature("a group held")
		return "held"
	}
	w.start(c, func() { err = enginetest.HoldGroup(w.ctx, w.e.Engine, queue, group, until) })
}
