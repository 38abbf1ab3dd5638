package sim_test

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// runDead begins a run through the dead set, or cancels the one there is.
func (w *world) runDead() {
	for _, r := range w.judge.asked {
		if r.kind == askRun && r.commit == 0 {
			w.say("    (one is on its way)") // which is which could not be told
			return
		}
	}
	if list := w.judge.runs(); len(list) > 0 {
		if w.oneIn(2) {
			w.cancelRun(list[0].ID)
		} else {
			w.say("    (one runs already)")
		}
		return
	}
	ask := job.Replay{Place: job.Place(w.dice.IntN(4)), Allow: w.oneIn(2), Rate: pick(w, []float64{0, 0.5, 5})}
	if w.oneIn(3) {
		ask.Select.Queues = queueNames[w.dice.IntN(len(queueNames)):]
	}
	if w.oneIn(4) {
		ask = job.Replay{Action: job.ActionDelete, Rate: ask.Rate, Select: ask.Select}
	} else {
		ask.MaxReplays = uint32(w.dice.IntN(3))
	}
	r := &request{kind: askRun, run: &ask}
	r.text = fmt.Sprintf("%s all in %v at %g/s, place %s, out of order %t, at most %d times",
		ask.Action, ask.Select.Queues, ask.Rate, ask.Place, ask.Allow, ask.MaxReplays)
	w.say("    %s", r)
	var p *job.Replay
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err != nil {
			return w.refusal("run", err)
		}
		w.accepted(r, false)
		if p.ID != r.id {
			broken("answers", "%s was told of run %s, and it is %s", r, p.ID, r.id)
		}
		return "begun"
	}
	w.start(c, func() { p, err = w.e.Dead.StartReplay(w.ctx, ask, nil) })
}

func (w *world) cancelRun(id job.ID) {
	r := &request{kind: askCancel, id: id, text: "cancel the run"}
	w.say("    %s", r)
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err != nil {
			if r.commit > 0 && job.KindOf(err) != job.Unavailable {
				broken("I2", "%s took effect and was refused: %v", r, err)
			}
			return w.refusal("cancel", err, job.WrongState, job.NotFound)
		}
		w.accepted(r, false)
		w.judge.coverage.feature("a run cancelled")
		return "cancelled"
	}
	w.start(c, func() { _, err = w.e.Dead.CancelReplay(w.ctx, id, job.Actor{}) })
}
