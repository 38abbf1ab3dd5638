package sim_test

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/lock"
)

var lockNames = []string{"l1", "l2"}

// lockAsk is what is asked of a named lock.
type lockAsk struct {
	take   *job.LockAsk // wants it; nil = has it, or had it
	token  job.Token
	most   job.Millis // extends it; 0 = gives it back
	broken bool       // an operator takes it away
}

// useLock takes a lock, extends or gives back one that was got some time, or
// breaks one.
func (w *world) useLock() {
	name := pick(w, lockNames)
	a := &lockAsk{}
	r := &request{kind: askLock, name: name, lock: a}
	var s lock.State
	var got, again bool
	var err error
	var send func()
	switch n := w.dice.IntN(10); {
	case n < 1 && w.lockSaid != nil: // its answer may have been lost
		a.take, again = w.lockSaid, true
		r.name, r.text = a.take.Name, fmt.Sprintf("%s wants %s, the same request again", a.take.By, a.take.Name)
		send = func() { s, got, err = w.e.Locks.Take(w.ctx, *a.take) }
	case n < 5 || len(w.locked) == 0:
		w.names++
		a.take = &job.LockAsk{Name: name, By: fmt.Sprint("o", w.names), Most: w.between(1, 20*job.Second)}
		if w.oneIn(3) {
			a.take.Least = w.between(0, a.take.Most)
		}
		if w.oneIn(2) {
			a.take.Request = fmt.Sprint("the request of ", a.take.By)
			w.lockSaid = a.take
		}
		r.text = fmt.Sprintf("%s wants %s for %s, at least %s", a.take.By, name, a.take.Most, a.take.Least)
		send = func() { s, got, err = w.e.Locks.Take(w.ctx, *a.take) }
	case n < 9:
		had := pick(w, w.locked)
		r.name, a.token = had.Name, had.Token
		if n < 7 {
			a.most = w.between(1, 20*job.Second)
			r.text = fmt.Sprintf("%s extends %s for %s", had.By, had.Name, a.most)
			send = func() { s, err = w.e.Locks.Extend(w.ctx, had.Name, had.Token, a.most) }
		} else {
			r.text = fmt.Sprintf("%s gives %s back", had.By, had.Name)
			send = func() { s, err = w.e.Locks.Release(w.ctx, had.Name, had.Token) }
		}
	default:
		a.broken, r.text = true, "break "+name
		send = func() { s, err = w.e.Locks.Break(w.ctx, name, job.Actor{}) }
	}
	w.say("    %s", r)
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		switch {
		case err != nil:
			if r.commit > 0 && job.KindOf(err) != job.Unavailable {
				broken("I2", "%s took effect and was refused: %v", r, err)
			}
			return w.refusal("lock", err, job.NotFound, job.Superseded)
		case a.take != nil && !got:
			if r.commit > 0 && !w.judge.anotherGot(r) {
				broken(lockLaw, "%s got it and was told that it did not", r)
			}
			w.judge.coverage.feature("a lock was held")
			return "held by " + s.By
		case r.commit == 0 && a.take == nil && a.most == 0:
			return "it was so already"
		case r.commit == 0 && again:
			if s.By != a.take.By || s.Request != a.take.Asked() {
				broken(lockLaw, "%s was answered with the lock %+v", r, *s.Lock)
			}
			w.judge.coverage.feature("a lock was got by the same request again")
			return fmt.Sprintf("%s has it until %d, fencing %d", s.By, s.Until, s.Fence)
		}
		w.accepted(r, false)
		if a.take != nil {
			w.locked = append(w.locked, s.Lock)
		}
		return fmt.Sprintf("%s until %d, fencing %d", s.By, s.Until, s.Fence)
	}
	w.start(c, send)
}
