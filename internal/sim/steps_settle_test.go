package sim_test

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// settleOne ends an attempt that a worker has in hand, if it still has it.
func (w *world) settleOne() { w.settleHands(1) }

// settleSome ends several in one call.
func (w *world) settleSome() { w.settleHands(2 + w.dice.IntN(3)) }

func (w *world) settleHands(n int) {
	c := &call{}
	for range n {
		if len(w.hands) == 0 {
			break
		}
		at := w.dice.IntN(len(w.hands))
		h := w.hands[at]
		w.hands = append(w.hands[:at:at], w.hands[at+1:]...)
		w.spent = append(w.spent, h)
		c.reqs = append(c.reqs, w.outcome(h))
	}
	w.spent = w.spent[max(0, len(w.spent)-20):]
	w.sendSettles(c)
}

// settleAgain sends a second word about an attempt that was settled.
func (w *world) settleAgain() {
	c := &call{}
	if len(w.spent) > 0 {
		r := w.outcome(pick(w, w.spent))
		if w.oneIn(2) {
			r.settle.Outcome = job.OK
		}
		c.reqs = append(c.reqs, r)
	}
	w.sendSettles(c)
}

// settleWrong names a token that nobody has, that of another job, or a job
// that is not held.
func (w *world) settleWrong() {
	c := &call{}
	if list := w.judge.book.sorted(); len(list) > 0 {
		r := &request{kind: askSettle}
		r.settle.ID = pick(w, list).ID
		r.settle.Outcome = w.drawOutcome()
		switch w.dice.IntN(3) {
		case 0:
			r.settle.Token = job.NewToken(w.judge.start-uint32(w.dice.IntN(2)), w.dice.Uint64)
		case 1:
			if len(w.spent) > 0 {
				r.settle.Token = pick(w, w.spent).d.Lease.Token
			}
		}
		c.reqs = append(c.reqs, r)
	}
	w.sendSettles(c)
}

func (w *world) drawOutcome() job.Outcome {
	return pick(w, []job.Outcome{
		job.OK, job.OK, job.OK, job.OK, job.Retried, job.Retried, job.Retried, job.Retried, job.Released, job.Released, job.Died,
	})
}

// outcome draws what a worker says of an attempt.
func (w *world) outcome(h hand) *request {
	s := engine.Settle{ID: h.d.Job.ID, Token: h.d.Lease.Token, Outcome: w.drawOutcome()}
	if w.oneIn(8) {
		s.Token = job.Token{}
	}
	if w.oneIn(4) {
		s.Started = w.now()
	}
	if w.oneIn(4) {
		s.Place = pick(w, []job.Place{job.PlaceKeep, job.PlaceFront, job.PlaceBack})
	}
	if w.oneIn(16) {
		s.Hold = w.between(1, 3*job.Second)
	}
	switch s.Outcome {
	case job.Retried:
		s.Failure = w.failure()
		switch w.dice.IntN(8) {
		case 0:
			s.RetryAt = w.now() + w.between(-job.Second, 5*job.Second)
		case 1:
			s.RetryIn = w.between(1, 5*job.Second)
		case 2:
			s.RetryAfter = w.between(1, 6*job.Second)
		case 3:
			s.NotBefore = w.now() + w.between(-job.Second, 6*job.Second)
		}
	case job.Died:
		s.Failure = job.Failure{Type: "E", Message: "hopeless"}
		if w.oneIn(8) {
			s.RetryAfter = w.between(1, 3*job.Second)
		}
	case job.Released:
		if w.oneIn(2) {
			s.Delay = w.between(1, 5*job.Second)
		}
	case job.OK:
		if w.oneIn(4) {
			s.Result = resultOf(s.ID, w.dice.IntN(4)*100) // the longest is not kept in its job
		}
	}
	return &request{kind: askSettle, settle: s}
}

// failure draws what went wrong.
func (w *world) failure() job.Failure {
	f := job.Failure{Type: "E", Message: "it broke"}
	switch w.dice.IntN(6) {
	case 0:
		f.Type = "F"
	case 1:
		f.Message = "the lock of row 7 is taken"
	case 2:
		f.Status = pick(w, []int{404, 429, 429, 500, 503, 503, 599})
	case 3:
		f.ExitCode = pick(w, []int{1, 1, 1, 63, 64, 75, 78, 79})
	case 4:
		f.Timeout = true
	}
	return f
}

// sendSettles sends settles in one call.
func (w *world) sendSettles(c *call) {
	if len(c.reqs) == 0 {
		w.say("    (nothing to settle)")
		return
	}
	sure := w.sure() && len(c.reqs) == 1
	list := make([]engine.Settle, len(c.reqs))
	for i, r := range c.reqs {
		r.id = r.settle.ID
		s := r.settle
		r.text = fmt.Sprintf("settle %s of %s", s.Outcome, w.judge.name(r.id))
		if s.Token.IsZero() {
			r.text += " without a token"
		} else {
			r.text += fmt.Sprintf(" by %x", s.Token[:6])
		}
		if s.Place != job.PlaceUnset {
			r.text += ", place " + s.Place.String()
		}
		for _, m := range []job.Millis{s.RetryIn, s.RetryAfter, s.Delay} {
			if m > 0 {
				r.text += ", in " + m.String()
			}
		}
		if s.Result != nil {
			r.text += fmt.Sprintf(", made %d bytes", len(s.Result))
		}
		if s.Hold > 0 {
			r.text += ", hold for " + s.Hold.String()
		}
		if s.RetryAt > 0 {
			r.text += ", at " + stamp(s.RetryAt)
		}
		if s.NotBefore > 0 {
			r.text += ", not before " + stamp(s.NotBefore)
		}
		if f := s.Failure; f != (job.Failure{}) {
			r.text += fmt.Sprintf(", %s %q, status %d, exit code %d, timeout %t", f.Type, f.Message, f.Status, f.ExitCode, f.Timeout)
		}
		w.say("    %s", r)
		w.foretell(r, sure)
		list[i] = s
	}
	var out []engine.Verdict
	var err error
	c.finish = func() string {
		if err != nil {
			return w.refusal("settle", err)
		}
		said := []string{}
		for i, r := range c.reqs {
			said = append(said, w.verdict(r, out[i]))
		}
		return strings.Join(said, ", ")
	}
	w.start(c, func() { out, err = w.e.Settle(w.ctx, list) })
}

// foretell works out what a request on one job must be told.
func (w *world) foretell(r *request, sure bool) {
	s := &scene{
		judge: w.judge, commit: &commit{now: w.now(), steady: w.clock.Steady()}, old: w.judge.book.jobs[r.id],
	}
	r.sure = sure
	if s.old == nil {
		r.told, r.kindOf = refused, job.NotFound
		return
	}
	s.q, s.g = s.book.queue(s.old.Queue), s.book.gate(s.old.Queue, s.old.Group)
	switch r.kind {
	case askSettle:
		_, r.told, r.kindOf = s.settled(r)
	case askExtend:
		if s.old.LeaseOf(r.extension.Token) < 0 {
			r.told, r.kindOf = refused, job.Superseded
		}
	case askOperate:
		if r.kindOf = job.WrongState; len(s.requested(r)) == 0 {
			r.told = refused
		}
	case askPut, askDelete, askQueue, askGroup, askRun, askCancel, askMark, askCron, askLock, askPauseGroup:
	}
}

// extend is a heartbeat of a lease, or the word that its run began.
func (w *world) extend() {
	if len(w.hands) == 0 {
		w.say("    (nothing to extend)")
		return
	}
	h := pick(w, w.hands)
	for range 3 { // rather a unary one: streams have no heartbeat of their own
		if h.d.Lease.Kind != job.Unary {
			h = pick(w, w.hands)
		}
	}
	x := engine.Extension{ID: h.d.Job.ID, Token: h.d.Lease.Token, Started: w.oneIn(2)}
	if !x.Started || w.oneIn(2) {
		x.For = w.between(job.Second, 10*job.Second)
	}
	r := &request{kind: askExtend, id: x.ID, extension: x}
	r.text = fmt.Sprintf("extend %s by %x for %s, started %t", w.judge.name(x.ID), x.Token[:6], x.For, x.Started)
	if w.oneIn(3) {
		p := &job.RunProgress{Fraction: pick(w, []float64{job.FractionUnset, 0, 0.5})}
		if w.oneIn(2) {
			p.Checkpoint = fmt.Appendf(nil, "%d", w.dice.IntN(100))
		}
		x.Progress, r.extension.Progress = p, p
		r.text += fmt.Sprintf(", progress %v %s", p.Fraction, p.Checkpoint)
	}
	w.foretell(r, w.sure())
	w.say("    %s", r)
	var out []engine.Verdict
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err != nil {
			return w.refusal("extend", err)
		}
		return w.verdict(r, out[0])
	}
	w.start(c, func() { out, err = w.e.Extend(w.ctx, []engine.Extension{x}) })
}
