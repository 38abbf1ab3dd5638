package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// recoverMax bounds the leases ended in one transaction at start.
const recoverMax = 2000

// recover makes the store fit for work after a start or a failed commit: a
// new start number, new blocks of numbers, what else begins, and no lease of
// an anonymous stream (core.md section 4). Named holders and unary leases get
// the re-attach window from now, and their timeouts go on (docs/adr/0003).
func (c *committer) recover(ctx context.Context, begin func(*Tx) error) error {
	c.holders, c.hungry, c.leases, c.emptied, c.streams = map[string]*Holder{}, hungry{}, 0, nil, [3]int{}
	var holders []string
	anchor := rule.ClockShift{Window: c.opts.Reattach}
	starts := c.start == 0 // else the steady clock runs on
	err := c.recoverStep(ctx, func(r *Tx) (err error) {
		if err := r.prepare(); err != nil {
			return err
		}
		if starts {
			anchor.Shift = r.watch.skew
		}
		if err := begin(r); err != nil {
			return err
		}
		if holders, err = store.Holders(r.tx); err != nil {
			return err
		}
		if err := c.parts.recover(r, anchor.Shift); err != nil {
			return err
		}
		return r.restartHolders()
	})
	stale, kept := apart(holders)
	if err == nil { // before anything is done to what they run
		err = c.parts.migrate(func(f func(*Tx) error) error { return c.recoverStep(ctx, f) })
	}
	for _, name := range stale {
		for more := true; more && err == nil; {
			err = c.recoverStep(ctx, func(r *Tx) error {
				ids, err := r.tx.IDs(store.Held(name), store.All)
				if err != nil {
					return err
				}
				more = len(ids) > recoverMax
				return r.EndLeases(name, ids[:min(len(ids), recoverMax)], job.ByRestart)
			})
		}
	}
	for names := range slices.Chunk(kept, TickMax) {
		if err == nil {
			err = c.recoverStep(ctx, func(r *Tx) error { return r.carry(names, &anchor) })
		}
	}
	if err == nil && starts { // after the last lease: a crash before that shifts again, up to the whole timeout
		err = c.recoverStep(ctx, func(r *Tx) error {
			if anchor.Shift != 0 {
				r.noteSkew(0)
			}
			return c.parts.restart(r, anchor.Shift) // with the skew, so that none is shifted twice
		})
	}
	if err != nil {
		return err
	}
	if err := c.store.View(ctx, func(v store.Reader) error { return c.load(v) }); err != nil {
		return err
	}
	c.figures.note(c)
	return nil
}

// recovery is a transaction before there is work.
type recovery struct{ *Tx }

// apart are the holders whose leases end with a start, and the others.
func apart(holders []string) (stale, kept []string) {
	for _, name := range holders {
		if strings.HasPrefix(name, anonymousPrefix) {
			stale = append(stale, name)
		} else {
			kept = append(kept, name)
		}
	}
	return stale, kept
}

// prepare draws numbers, and sets aside what cannot be read.
func (r *recovery) prepare() (err error) {
	if err := r.reserve(); err != nil {
		return err
	}
	if err := r.rejectUnreadable(); err != nil {
		return err
	}
	r.watch.skew, err = r.skew()
	return err
}

// skew is how far the date was ahead of the steady clock when that was last
// written down.
func (r *recovery) skew() (job.Millis, error) {
	n, err := store.Row[*job.Reserve](r.tx, skewName)
	if n == nil {
		return 0, err
	}
	return job.Millis(n.Next), err
}

// carry takes the leases of holders over a start: their ends move to the new
// steady clock, and nobody is blamed for what could not be heard while the
// server was away.
func (r *recovery) carry(names []string, anchor *rule.ClockShift) error {
	for _, name := range names {
		ids, err := r.tx.IDs(store.Held(name), store.All)
		if err != nil {
			return err
		}
		for _, id := range ids {
			j, err := r.tx.Get(id)
			if err != nil {
				return err
			}
			if err := r.carryJob(j, name, anchor); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *recovery) carryJob(j *job.Job, holder string, anchor *rule.ClockShift) error {
	r.doing.job = j.ID
	v, err := r.view(j, j.Queue, j.Group)
	if err != nil {
		return err
	}
	eff := rule.Effect{Job: j}
	for _, l := range j.Leases {
		if l.Holder != holder {
			continue
		}
		v.Job = eff.Job
		if eff, err = rule.Step(v, rule.Command{Verb: rule.Extend, Token: l.Token, ClockShift: anchor}); err != nil {
			return err
		}
	}
	if slices.Equal(j.Leases, eff.Job.Leases) {
		return nil // most have no end of their own
	}
	return r.write(j, eff)
}

// recoverStep runs one transaction and waits until it is durable.
func (c *committer) recoverStep(ctx context.Context, f func(*Tx) error) error {
	if c.ids == nil {
		c.ids = job.NewIDs(job.ID{}, c.rnd)
	}
	r := &c.run
	var commit store.Commit
	for again := true; again; { // without the jobs at fault
		var err error
		commit, err = c.store.Update(ctx, func(tx store.Tx) error {
			r.reset(c.Engine, tx)
			tx.Durable()
			return r.attempt(func() error { return r.recoverWith(f) })
		})
		fault := isFault(err)
		switch again = fault != nil && fault.duty == dutyStart && !fault.job.IsZero(); {
		case again:
			c.logFault(fault)
			c.faults.jobs[fault.job] = fault.Error()
		case err != nil:
			return err
		}
	}
	c.run.publish()
	err := commit.Wait()
	for _, tell := range r.tell {
		tell(err != nil)
	}
	return err
}

func (r *recovery) recoverWith(f func(*Tx) error) error {
	if len(r.c.faults.jobs) > 0 {
		if err := r.duty(dutyAside, r.rejectFaulty); err != nil {
			return err
		}
	}
	r.doing.duty = dutyStart
	if err := f(r.Tx); err != nil {
		return err
	}
	r.doing.job = job.ID{}
	if err := r.e.parts.at(r.Tx, recovers); err != nil {
		return err
	}
	return r.e.parts.at(r.Tx, keeps)
}

// reserve draws the number of this start and the first block of positions.
func (r *recovery) reserve() error {
	next := func(name string, step int64) (int64, error) {
		old, err := store.Row[*job.Reserve](r.tx, name)
		if err != nil {
			return 0, err
		}
		n := int64(1)
		if old != nil {
			n = old.Next
		}
		return n, r.tx.Set(&job.Reserve{Name: name, Next: n + step})
	}
	start, err := next("start", 1)
	if err != nil {
		return err
	}
	first, err := next("seq", blockSize)
	if err != nil {
		return err
	}
	r.c.start = uint32(start)
	r.seq = block{first, first + blockSize}
	highest, err := store.MaxID(r.tx)
	if err != nil {
		return err
	}
	for _, u := range r.tx.Unreadable() {
		if highest.Before(u.ID) {
			highest = u.ID
		}
	}
	for _, t := range []job.Table{job.Replays, job.Audits} { // ordered by ids of the same source
		rows, err := r.tx.Rows(t, "", store.All)
		if err != nil {
			return err
		}
		if n := len(rows); n > 0 {
			if last, err := job.ParseID(rows[n-1].Key()); err == nil && highest.Before(last) {
				highest = last
			}
		}
	}
	r.ids = *job.NewIDs(highest, r.e.rnd)
	return nil
}

// configure writes the settings of configured queues, all of them: what was
// changed live lasts until then, holds and forced breakers beyond it. Healing
// leaves them alone: an operator may have changed them since the start.
func (r *recovery) configure() error { return r.configureQueues(r.e.opts.Queues) }

func (r *recovery) configureQueues(list []*job.Queue) error {
	for _, q := range list {
		old, err := QueueOf(r.tx, q.Name)
		if err != nil {
			return err
		}
		if err := rule.ChangeQueue(job.NewQueue(q.Name), q, 0); err != nil {
			return fmt.Errorf("configuring queue %q: %w", q.Name, err)
		}
		set, why, left := rule.Configured(old, q, int(r.tx.Depth(q.Name).Members()))
		if why != "" {
			r.e.log.Warn("a queue of the configuration keeps settings of its own", "queue", q.Name, "reason", why, "not_taken", strings.Join(left, ","))
		}
		if err := r.SetQueue(set); err != nil {
			return err
		}
	}
	return r.e.parts.at(r.Tx, configures)
}

// restartHolders gives named holders the full re-attach window.
func (r *recovery) restartHolders() error {
	return store.EachRow(r.tx, "", func(old *job.Holder) error {
		h := *old
		h.Until = r.steady.Add(r.e.opts.Reattach)
		return r.tx.Set(&h)
	})
}

// load counts what is there.
func (c *committer) load(v store.Reader) error {
	names, err := v.Names()
	if err != nil {
		return err
	}
	c.queues = map[string]bool{}
	for _, n := range names {
		c.queues[n] = true
	}
	err = store.EachRow(v, "", func(q *job.Queue) error { c.queues[q.Name] = true; return nil }) // it exists by its settings
	if err != nil {
		return err
	}
	if err := c.parts.load(v); err != nil {
		return err
	}
	running, err := store.Leased(v)
	c.leases = 0
	for _, j := range running {
		c.leases += len(j.Leases)
	}
	return err
}

// Numbers that are skipped after a restore: more than any server hands out
// between a backup and the loss it is for.
const (
	startsSkipped = 1 << 12
	seqSkipped    = 1 << 44
)

// Restored prepares a store that was restored from a backup, before its first
// start: fencing numbers, positions and starts go on above those that were
// handed out after the backup was made (core.md section 4).
func Restored(ctx context.Context, s store.Store) error {
	commit, err := s.Update(ctx, func(tx store.Tx) error {
		tx.Durable()
		for name, skip := range map[string]int64{"start": startsSkipped, "seq": seqSkipped} {
			n, err := store.Row[*job.Reserve](tx, name)
			if err != nil {
				return err
			}
			if n == nil { // it never started
				continue
			}
			if err := tx.Set(&job.Reserve{Name: name, Next: n.Next + skip}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return commit.Wait()
}
