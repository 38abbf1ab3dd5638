package engine

import (
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// TickMax bounds the clock's work on one hand in one transaction.
const TickMax = 1000

// lowEvery is how often the free disk space is looked at.
const lowEvery = job.Second

// clockwork is what the clock owes.
type clockwork struct {
	*Tx
	watch  watch
	disk   disk
	ticked bool // it left work behind
}

// look notices steps of the clock, and the state of the disk.
func (r *clockwork) look() {
	if r.watch.look(r.e.clock.Wall(), r.steady) > 0 {
		r.stats.ClockSteps++
		// Restarted, no timer of a holder ends before its whole time (core.md section 8).
		r.watch.lapses = max(r.watch.lapses, r.steady.Add(max(r.e.opts.Reattach, r.e.parts.silence())))
	}
	if skew, news := r.watch.drift(); news {
		r.noteSkew(skew)
	}
	if r.steady-r.disk.at >= lowEvery || r.disk.at == 0 {
		r.disk = disk{low: r.e.space.low(), at: r.steady}
	}
}

// skewName is the row that holds how far the date is ahead of the steady
// clock: the next start needs it to read the ends of leases.
const skewName = "clock skew"

func (r *clockwork) noteSkew(skew job.Millis) {
	r.watch.skew = skew
	if err := r.tx.Set(&job.Reserve{Name: skewName, Next: int64(skew)}); err != nil {
		panic(err) // rows of this table have no refusal
	}
	r.tx.Durable()
}

// report tells an operator what look noticed, once it is true.
func (r *clockwork) report() {
	if r.stats.ClockSteps > 0 {
		r.e.log.Warn("the clock stepped or the process stood still; holders, expiry and purging get extra time")
	}
	if was := r.c.disk.low; was != r.disk.low {
		r.e.log.Warn("free disk space crossed the reserve", "enqueues_refused", r.disk.low)
	}
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
func (r *clockwork) timeOf(h rule.Hand, date job.Millis) job.Millis {
	if h == rule.HandTimeout || h == rule.HandLapse {
		return r.steady
	}
	return date
}

// commandOf is what is done to the jobs a hand points at. A timeout never
// waits; the soft ends of the same job do while holders have extra time.
func (r *clockwork) commandOf(h rule.Hand) rule.Command {
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
func (r *clockwork) tick() error {
	if err := r.tickRows(); err != nil {
		return err
	}
	if err := r.e.parts.at(r.Tx, ticks); err != nil {
		return err
	}
	for h := range rule.Hands {
		until := r.timeOf(h, r.now)
		if next := r.tx.Next(h); next == 0 || next > until || r.steady < r.watch.blocked(h) {
			continue
		}
		ids, err := r.tx.IDs(store.Due(h, until), TickMax)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := r.tickJob(h, id); err != nil {
				return err
			}
		}
		r.ticked = r.ticked || len(ids) == TickMax
	}
	return nil
}

func (r *clockwork) tickJob(h rule.Hand, id job.ID) error {
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
	eff, err := r.Step(j, r.commandOf(h))
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

// ownRows are the rows that come up by themselves, but for those of parts.
func ownRows() []Due {
	return []Due{
		{Table: job.Queues, Do: Row((*Tx).wakeQueue)},
		{Table: job.Gates, Do: Row((*Tx).wakeGate)},
		{Table: job.Holders, Steady: true, Spared: true, Do: Row((*Tx).lapseHolder)},
		{Table: job.Receipts, Do: func(r *Tx, row job.Row) error { return r.tx.Unset(job.Receipts, row.Key()) }},
	}
}

// tickRows does what is due of every table with times.
func (r *clockwork) tickRows() error {
	for i := range r.e.due {
		if err := r.tickTable(&r.e.due[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *clockwork) tickTable(d *Due) error {
	until := r.until(d)
	if next := r.tx.NextRow(d.Table); next == 0 || next > until || r.steady < r.spared(d) {
		return nil
	}
	rows, err := r.tx.DueRows(d.Table, until, TickMax)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if len(r.c.faults.rest) > 0 && r.c.faults.rest[restingRow(row)] > r.steady {
			continue
		}
		r.doing.row, r.doing.job = row, job.ID{}
		if err := d.Do(r.Tx, row); err != nil {
			return err
		}
	}
	r.doing.row = nil
	r.ticked = r.ticked || len(rows) == TickMax
	return nil
}

// until is the time up to which rows come up now.
func (r *clockwork) until(d *Due) job.Millis {
	if d.Steady {
		return r.steady
	}
	return r.now
}

// spared is until when no row of the table comes up, on the steady clock.
func (r *clockwork) spared(d *Due) job.Millis {
	if d.Spared {
		return r.watch.lapses
	}
	return 0
}

func (r *clockwork) wakeQueue(q *job.Queue) error {
	awake, err := rule.WakeQueue(q, r.now)
	if err != nil {
		return err
	}
	r.ForgetQueue(q.Name)
	r.woken[q.Name] = true
	return r.tx.Set(awake)
}

func (r *clockwork) wakeGate(g *job.Gate) error {
	awake, err := rule.WakeGate(g, r.now)
	if err != nil {
		return err
	}
	r.woken[g.Queue] = true
	if err := r.SetGate(awake); err != nil {
		return err
	}
	return r.SweepGate(g.Queue, g.Group)
}

func (r *clockwork) lapseHolder(h *job.Holder) error {
	if own, err := r.e.parts.silent(r.Tx, h); own || err != nil {
		return err
	}
	ids, err := r.tx.IDs(store.Held(h.Name), store.All)
	if err != nil {
		return err
	}
	if err := r.EndLeases(h.Name, ids, job.ByLapse); err != nil {
		return err
	}
	return r.tx.Unset(job.Holders, h.Name)
}

// sleep is how long the committer may sleep: until the soonest deadline of
// any hand. 0 = until something happens.
func (r *clockwork) sleep() time.Duration {
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
	for i := range r.e.due {
		d, now := &r.e.due[i], date
		if d.Steady {
			now = r.steady
		}
		sooner(r.tx.NextRow(d.Table), now, r.spared(d))
	}
	sooner(r.e.parts.next(r.Tx), r.steady, 0)
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
