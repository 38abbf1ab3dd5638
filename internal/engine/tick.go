package engine

import (
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// tickMax bounds the clock's work on one hand in one transaction.
const tickMax = 1000

// lowEvery is how often the free disk space is looked at.
const lowEvery = job.Second

// look notices steps of the clock, and the state of the disk.
func (r *run) look() {
	if r.watch.look(r.e.clock.Wall(), r.steady) > 0 {
		r.stats.ClockSteps++
		// Restarted, no timer of a holder ends before its whole time (core.md section 8).
		r.watch.lapses = max(r.watch.lapses, r.steady.Add(max(r.e.opts.Reattach, r.e.opts.lostAfter())))
	}
	if skew, news := r.watch.drift(); news {
		r.noteSkew(skew)
	}
	if r.steady-r.disk.at >= lowEvery || r.disk.at == 0 {
		r.disk = disk{low: r.e.low(), at: r.steady}
	}
}

// skewName is the row that holds how far the date is ahead of the steady
// clock: the next start needs it to read the ends of leases.
const skewName = "clock skew"

func (r *run) noteSkew(skew job.Millis) {
	r.watch.skew = skew
	if err := r.tx.Set(&job.Reserve{Name: skewName, Next: int64(skew)}); err != nil {
		panic(err) // rows of this table have no refusal
	}
	r.tx.Durable()
}

// report tells an operator what look noticed, once it is true.
func (r *run) report() {
	if r.stats.ClockSteps > 0 {
		r.e.log.Warn("the clock stepped or the process stood still; holders, expiry and purging get extra time")
	}
	r.reportCrons()
	if was := r.c.disk.low; was != r.disk.low {
		r.e.log.Warn("free disk space crossed the reserve", "enqueues_refused", r.disk.low)
	}
}

// low reports whether free space is below the reserve.
func (e *Engine) low() bool {
	free, total, err := e.store.Free()
	if err != nil || total == 0 {
		return false
	}
	return free < e.reserve(total)
}

// Reserve is the free disk space, in bytes, below which enqueues are refused.
func (e *Engine) Reserve() int64 {
	_, total, err := e.store.Free()
	if err != nil {
		return e.keep.Load().Bytes
	}
	return e.reserve(total)
}

// reserve is the free space that is kept, of a disk of total bytes.
func (e *Engine) reserve(total int64) int64 {
	keep := e.keep.Load()
	return max(keep.Bytes, int64(keep.Share*float64(total)))
}

// blocked reports until when a hand waits after a clock step.
func (w *watch) blocked(h rule.Hand) job.Millis {
	switch h {
	case rule.HandExpire, rule.HandPurge:
		return w.guard
	case rule.HandLapse:
		return w.lapses
	default:
		return 0
	}
}

// timeOf is the time on the timeline a hand points on: leases run on the steady one.
func (r *run) timeOf(h rule.Hand, date job.Millis) job.Millis {
	if h == rule.HandTimeout || h == rule.HandLapse {
		return r.steady
	}
	return date
}

// commandOf is what is done to the jobs a hand points at. A timeout never
// waits; the soft ends of the same job do while holders have extra time.
func (r *run) commandOf(h rule.Hand) rule.Command {
	switch h {
	case rule.HandTimeout:
		c := rule.Command{Verb: rule.Lapse}
		if r.steady < r.watch.lapses {
			c.Ending = job.ByTimeout
		}
		return c
	case rule.HandLapse:
		return rule.Command{Verb: rule.Lapse}
	case rule.HandExpire:
		return rule.Command{Verb: rule.Expire}
	case rule.HandPurge:
		return rule.Command{Verb: rule.Purge}
	case rule.HandDue, rule.Hands:
	}
	return rule.Command{Verb: rule.Promote}
}

// tick does what is due on every hand (I6: never before its time). Rows come
// first: what a lapsed holder gives back may have expired meanwhile.
func (r *run) tick() error {
	r.wakeGuarded()
	r.dueBudgets()
	if err := r.tickRows(); err != nil {
		return err
	}
	if err := r.turnCrons(); err != nil {
		return err
	}
	if err := r.tickClients(); err != nil {
		return err
	}
	for h := range rule.Hands {
		until := r.timeOf(h, r.now)
		if next := r.tx.Next(h); next == 0 || next > until || r.steady < r.watch.blocked(h) {
			continue
		}
		ids, err := r.tx.Due(h, until, tickMax)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := r.tickJob(h, id); err != nil {
				return err
			}
		}
		r.ticked = r.ticked || len(ids) == tickMax
	}
	return nil
}

func (r *run) tickJob(h rule.Hand, id job.ID) error {
	r.doing.job = id
	j, err := r.tx.Get(id)
	if err != nil || j == nil {
		return err
	}
	if h == rule.HandTimeout || h == rule.HandLapse { // its turn may have been cut by one before it
		if at := rule.EntriesOf(j).Timer[h]; at == 0 || at > r.steady {
			return nil
		}
	}
	eff, err := r.step(j, r.commandOf(h))
	if err != nil {
		return err
	}
	switch h {
	case rule.HandTimeout, rule.HandLapse:
		r.countLapse(j, &eff)
	case rule.HandExpire:
		r.stats.Expired++
	case rule.HandPurge:
		if j.State == job.Dead { // one that was done is no loss
			r.stats.Purged++
		}
	case rule.HandDue, rule.Hands:
	}
	return nil
}

// tickRows ends holds, moves breakers on, lapses holders, forgets receipts and moves on what runs
// through the dead set.
func (r *run) tickRows() error {
	tables := [...]job.Table{
		job.Queues, job.Gates, job.Throttles, job.Holders, job.Receipts, job.Replays, job.Marks, job.Audits, job.Locks,
		job.Sessions, job.Affinities,
	}
	for _, t := range tables {
		until := r.now
		if t == job.Replays || t == job.Throttles || t == job.Locks || t == job.Affinities {
			until = r.steady
		}
		if t == job.Holders {
			if err := r.keepMachines(); err != nil { // who was heard of is not silent
				return err
			}
			until = r.steady
			if r.steady < r.watch.lapses {
				continue
			}
		}
		if next := r.tx.NextRow(t); next == 0 || next > until {
			continue
		}
		rows, err := r.tx.DueRows(t, until, tickMax)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if len(r.c.faults.rest) > 0 && r.c.faults.rest[restingRow(row)] > r.steady {
				continue
			}
			r.doing.row, r.doing.job = row, job.ID{}
			if err := r.tickRow(row); err != nil {
				return err
			}
		}
		r.doing.row = nil
		r.ticked = r.ticked || len(rows) == tickMax
	}
	return nil
}

func (r *run) tickRow(row job.Row) error {
	switch t := row.(type) {
	case *job.Queue:
		awake, err := rule.WakeQueue(t, r.now)
		if err != nil {
			return err
		}
		r.forgetQueue(t.Name)
		r.woken[t.Name] = true
		return r.tx.Set(awake)
	case *job.Gate:
		awake, err := rule.WakeGate(t, r.now)
		if err != nil {
			return err
		}
		r.woken[t.Queue] = true
		if err := r.setGate(awake); err != nil {
			return err
		}
		return r.sweepGate(t.Queue, t.Group)
	case *job.Session:
		return r.turnSession(t)
	case *job.Holder:
		if t.Machine != nil {
			return r.lapseMachine(t)
		}
		ids, err := r.tx.Held(t.Name)
		if err != nil {
			return err
		}
		if err := r.endLeases(t.Name, ids, job.ByLapse); err != nil {
			return err
		}
		return r.tx.Unset(job.Holders, t.Name)
	case *job.Throttle:
		return r.turnThrottle(t)
	case *job.Receipt:
		return r.tx.Unset(job.Receipts, t.Key())
	case *job.Replay:
		return r.advance(t)
	case *job.Mark:
		return r.releaseSome(t)
	case *job.Audit:
		r.audits.add(authorOf(t), -1)
		return r.tx.Unset(job.Audits, t.Key())
	case *job.AffinityTag:
		return r.endAffinity(t)
	case *job.Lock:
		return r.forgetLock(t)
	}
	return nil
}

// sleep is how long the committer may sleep: until the soonest deadline of
// any hand. 0 = until something happens.
func (r *run) sleep() time.Duration {
	soonest := job.MaxMillis
	sooner := func(at, now, blocked job.Millis) {
		if at == 0 {
			return
		}
		wait := max(at-now, blocked-r.steady, 1)
		soonest = min(soonest, wait)
	}
	date := min(r.now, r.watch.wall) // after a step back, the engine's date stands still until the clock's is there
	for h := range rule.Hands {
		sooner(r.tx.Next(h), r.timeOf(h, date), r.watch.blocked(h))
	}
	for _, t := range []job.Table{job.Queues, job.Gates, job.Sessions, job.Receipts, job.Marks, job.Audits, job.CronEntries} {
		sooner(r.tx.NextRow(t), date, 0)
	}
	sooner(r.tx.NextRow(job.Throttles), r.steady, 0)
	sooner(r.nextRoom(), r.steady, 0)
	sooner(r.nextBudget(), r.steady, 0)
	sooner(r.nextStraggler(), r.steady, 0)
	sooner(r.preemptAt, r.steady, 0)
	sooner(r.nextClient(), r.steady, r.watch.lapses)
	sooner(r.tx.NextRow(job.Holders), r.steady, r.watch.lapses)
	sooner(r.tx.NextRow(job.Replays), r.steady, 0)
	sooner(r.tx.NextRow(job.Locks), r.steady, 0)
	sooner(r.tx.NextRow(job.Affinities), r.steady, 0)
	if r.c.faults.rests(r.steady) { // it is due, and must not keep the clock busy
		soonest = min(max(soonest, job.Second), faultRest)
	}
	if soonest == job.MaxMillis {
		return 0
	}
	soonest = min(soonest, job.Hour) // look at the clock now and then: it may be set
	r.watch.planned = r.steady.Add(soonest)
	return time.Duration(soonest) * time.Millisecond
}
