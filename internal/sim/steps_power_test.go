package sim_test

import (
	"context"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/job"
)

// kinds are the steps a plan is made of.
var kinds []kind

type kind struct {
	name   string
	weight int
	do     func(*world)
}

func init() {
	kinds = []kind{
		{"put", 21, (*world).putSome},
		{"put under keys", 8, (*world).putUnderKeys},
		{"connect", 6, (*world).connect},
		{"disconnect", 5, (*world).disconnect},
		{"slow workers read", 2, (*world).readSlow},
		{"unary take", 3, (*world).lease},
		{"unary waiters give up", 2, (*world).giveUpWaiting},
		{"settle", 15, (*world).settleOne},
		{"settle several", 4, (*world).settleSome},
		{"settle again", 5, (*world).settleAgain},
		{"settle wrongly", 3, (*world).settleWrong},
		{"extend", 5, (*world).extend},
		{"operate", 9, (*world).operate},
		{"change or delete many", 3, (*world).many},
		{"change a queue", 7, (*world).changeQueue},
		{"hold a group", 2, (*world).holdGroup},
		{"run through the dead", 5, (*world).runDead},
		{"pause or resume a fingerprint", 4, (*world).markPrint},
		{"time passes", 20, (*world).timePasses},
		{"the clock steps", 2, (*world).clockSteps},
		{"a budget changes", 1, (*world).changeBudget},
		{"the process stands still", 1, (*world).standStill},
		{"the disk is slow", 4, (*world).diskStalls},
		{"the disk is fast again", 5, (*world).diskFlows},
		{"a commit will fail", 2, (*world).commitFails},
		{"power cut", 2, (*world).powerCut},
		{"restart", 2, (*world).restart},
		{"the disk fills up or is cleared", 2, (*world).diskFills},
		{"change cron", 5, (*world).changeCron},
		{"a tick takes long to fold", 2, (*world).foldSlowly},
		{"use a lock", 6, (*world).useLock},
		{"messages come in", 5, (*world).putMessages},
		{"take turns", 6, (*world).takeTurns},
		{"go on with a turn", 11, (*world).deliver},
		{"a run of an inbox", 2, (*world).runInbox},
		{"operate an inbox", 3, (*world).operateInbox},
	}
}

// timePasses lets time go by: up to a deadline, a moment less, or anything.
func (w *world) timePasses() {
	if w.free.Load() < 100 && w.oneIn(2) {
		w.diskFills()
		return
	}
	span := w.between(1, 3*job.Second)
	switch w.dice.IntN(10) {
	case 0, 1, 2:
		span = w.between(3*job.Second, 12*job.Second)
	case 3:
		span = w.between(12*job.Second, 40*job.Second)
	case 4:
		if w.oneIn(2) {
			w.longTimePasses()
			return
		}
	case 5, 6, 7:
		if at := w.deadline(); at > 0 {
			span = max(0, at-job.Millis(w.dice.IntN(2)))
		}
	}
	w.say("    %s", span)
	w.pass(span)
}

// longTimePasses is a night in which nobody works.
func (w *world) longTimePasses() {
	for _, h := range w.streams {
		h.closing = true
		h.s.Close()
		w.rest()
	}
	w.giveUpWaiting()
	w.settle()
	w.left()
	span := w.between(job.Minute, 100*job.Minute)
	w.say("    everybody leaves, and %s pass", span)
	w.pass(span)
}

// deadline is how long it is to some deadline of some job, 0 if there is none.
func (w *world) deadline() job.Millis {
	var list []job.Millis
	date, steady := w.now(), w.clock.Steady()
	for _, j := range w.judge.book.sorted() {
		for _, at := range []job.Millis{j.ReadyAt - date, j.ExpiresAt - date, j.PurgeAt - date} {
			if at > 0 && at < 2*job.Minute {
				list = append(list, at)
			}
		}
		for _, l := range j.Leases {
			for _, at := range []job.Millis{l.Until - steady, l.RunEnd - steady, l.StartBy - steady} {
				if at > 0 {
					list = append(list, at)
				}
			}
		}
	}
	for _, entry := range cronNames {
		e, ok := w.judge.book.rows[rowKey{job.CronEntries, job.CronKey(cronGroup, entry)}].(*job.CronEntry)
		if ok && e.Due() > date && e.Due() < date+2*job.Minute {
			list = append(list, e.Due()-date)
		}
	}
	if len(list) == 0 {
		return 0
	}
	return pick(w, list)
}

// clockSteps sets the date forward or back.
func (w *world) clockSteps() {
	step := pick(w, []job.Millis{2 * job.Second, 8 * job.Second, 2 * job.Minute, job.Hour, -job.Second, -3 * job.Second})
	w.say("    by %d ms", step)
	if step < 0 {
		w.behind = max(w.behind, w.now()-3*step)
	}
	w.clock.step.Add(int64(step))
	w.excuse()
	w.poke()
}

// standStill is a process that was stopped, or a machine that slept.
func (w *world) standStill() {
	span := w.between(2*job.Second, 80*job.Second)
	w.say("    for %s", span)
	w.clock.stood.Add(int64(span))
	w.excuse()
	w.poke()
}

// excuse gives expiry, purge and lapse the time that core.md 8 gives them.
func (w *world) excuse() { w.excused = max(w.excused, w.clock.Steady()+61*job.Second) }

// diskStalls lets commits wait until the disk is fast again.
func (w *world) diskStalls() {
	if !w.stalled && !w.stopping {
		w.stalled = true
		w.disk.stall()
	}
}

func (w *world) diskFlows() {
	w.foldFast()
	if !w.stalled {
		return
	}
	w.excuse() // it looks like a process that stood still
	w.stalled = false
	w.disk.flow()
	w.settle()
	w.poke()
	w.settle()
	w.left()
}

// left notes that the engine knows who has gone.
func (w *world) left() {
	if !w.up() {
		return
	}
	for _, h := range w.holders {
		h.gone = h.gone || h.closing
	}
}

// commitFails lets the next commit fail; it may be kept or not.
func (w *world) commitFails() {
	if w.low || w.doomed > 0 {
		return
	}
	w.doomed, w.troubled = w.judge.epoch, true
	w.mem.FailNextCommit(errDisk)
	w.judge.coverage.feature("a commit failed")
}

// powerCut ends this life without a word.
func (w *world) powerCut() {
	w.troubled = true
	w.mem.PowerCut(rand.New(rand.NewPCG(w.dice.Uint64(), 3)))
	w.disk.sever()
	w.folds.open() // what is being folded ends with the process: nobody hears of it in the next life
	w.stopDead()
	w.judge.coverage.feature("a power cut")
	w.again()
}

// restart ends this life gracefully: nothing is lost.
func (w *world) restart() {
	if w.doomed > 0 || w.troubled {
		return
	}
	w.diskFlows()
	w.stopping, w.troubled = true, true
	var err error
	done := false
	go func() { err = w.e.Stop(context.Background()); done = true }()
	w.settle()
	if !done || err != nil {
		broken("answers", "the engine does not stop: %v", err)
	}
	for _, c := range w.calls {
		broken("answers", "the engine stopped and did not answer: %v", c.reqs)
	}
	if safe := w.disk.safeNow(); safe < w.issued-1 {
		broken("I5", "the engine stopped; %d of %d commits are on disk", safe, w.issued)
	}
	w.disk.sever()
	w.judge.coverage.feature("a graceful restart")
	w.again()
}

// again begins another life, now or later.
func (w *world) again() {
	w.settle()
	w.streams = nil
	for _, h := range w.holders {
		h.gone, h.closing = true, h.closing || h.kind == job.Anonymous
	}
	w.joining, w.polling = nil, nil
	if w.oneIn(2) {
		away := w.between(1, 50*job.Second)
		w.say("    away for %s", away)
		<-time.After(time.Duration(away) * time.Millisecond)
		synctest.Wait()
	}
	w.live(w.disk.life + 1)
}

// diskFills lets free space fall below the reserve, or clears it.
func (w *world) diskFills() {
	if w.doomed > 0 || w.troubled {
		return
	}
	if w.free.Load() < 100 {
		w.free.Store(1000)
		w.say("    cleared")
		w.pass(1100)
		w.poke()
		w.settle()
		w.low = w.stalled
		return
	}
	w.free.Store(50)
	w.low = true
	w.say("    %d free of 1000", w.free.Load())
}

// end brings a history to a quiet end.
func (w *world) end() {
	w.say("the end")
	w.free.Store(1000)
	w.diskFlows()
	if w.grid != nil {
		w.endGrid()
	}
	for range 10 {
		w.pass(2 * job.Second)
	}
	w.poke()
	w.settle()
	w.low = false
	w.look(0)
	w.restart()
	w.look(0)
	w.giveUp()
	w.settle()
}
