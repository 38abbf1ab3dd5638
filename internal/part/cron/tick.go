package cron

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	croner "github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// burst bounds the jobs that cron enqueues in one transaction.
const burst = 1000

// newsMax bounds the lines that one transaction writes to the log.
const newsMax = 10

// news is what an operator should hear of an entry: that it is refused, or
// works again, or passed over more than it can make up for.
type news struct {
	entry string
	text  string
	why   error
}

// tick enqueues what the ticks of an entry up to now ask for. The jobs and how far the
// entry has come are in one transaction, so no tick comes twice and none is
// forgotten.
func (s *Crons) tick(tx *engine.Tx, c *job.CronEntry) error {
	if s.room <= 0 {
		tx.More()
		return nil
	}
	n, err := s.turn(tx, c, s.room, nil)
	if s.room -= n; s.room <= 0 {
		tx.More()
	}
	return err
}

// turn brings an entry up to now, with at most room jobs, and returns how
// many it enqueued. A refused enqueue is tried again later (croner.RetryAfter);
// its tick is then late, so the rule for missed ticks decides about it. f is
// what was planned for the first tick of an entry with a batch; without a plan
// the tick is left to a goroutine, and a look at the entry comes again.
func (s *Crons) turn(tx *engine.Tx, old *job.CronEntry, room int, f *fold) (n int, err error) {
	g, err := store.Row[*job.CronGroup](tx.Store(), old.Group)
	if err != nil {
		return 0, err
	}
	if g == nil { // they leave together; the clock must not stop over one that did not
		g = &job.CronGroup{Name: old.Group}
	}
	c := *old
	c.Retry = 0
	times, err := s.schedule(&c, g)
	if err != nil { // the zone is not known any more: it was written by a newer server
		s.refused(tx, &c, err)
		return 0, tx.Store().Set(&c)
	}
	if c.Paused || g.Paused {
		c.Next, _ = times.Next(tx.Moment().Now)
		return 0, tx.Store().Set(&c)
	}
	missed := g.Missed
	if c.Missed != nil {
		missed = *c.Missed
	}
	due := times.Look(c.Next, tx.Moment().Now, missed)
	c.Next = due.Next
	if n, err = s.tickAll(tx, &c, due.Ticks, room, f); err != nil {
		return n, err
	}
	if over := int64(due.Missed - due.Made); over > 0 {
		c.Skipped += over
		tx.Count(&s.counts.skipped, uint64(over))
		if missed == job.MissedAll && c.Failures == 0 {
			s.tell(&c, "a cron entry missed more ticks than can be made up for; the oldest are left out", nil)
		}
	}
	return n, tx.Store().Set(&c)
}

// tickAll enqueues the jobs of ticks that are due, at most so many, and notes in the entry
// how far it came.
func (s *Crons) tickAll(tx *engine.Tx, c *job.CronEntry, ticks []job.Millis, room int, f *fold) (n int, err error) {
	for _, tick := range ticks {
		if n == room {
			c.Next = tick
			tx.More()
			break
		}
		added, done, err := s.put(tx, c, tick, f)
		if engine.Fatal(err) && (f == nil || f.err == nil) || errors.Is(err, engine.ErrStale) {
			return n, err
		}
		if !done {
			c.Next, c.Retry = tick, tx.Moment().Now.Add(foldAgain)
			break
		}
		if err != nil {
			c.Next = tick
			s.refused(tx, c, err)
			break
		}
		if c.Failures > 0 {
			s.tell(c, "a cron entry works again", nil)
		}
		c.Last, c.LastJob, c.Error, c.ErrorAt, c.Failures = tick, added.ID, "", 0, 0
		if !added.Duplicate && !added.Folded {
			tx.Count(&s.counts.jobs, 1)
		}
		n++
	}
	return n, nil
}

// refused notes why the job of an entry was not enqueued, and when to try again.
func (s *Crons) refused(tx *engine.Tx, c *job.CronEntry, why error) {
	c.Error, c.ErrorAt = why.Error(), tx.Moment().Now
	c.Failures++
	c.Retry = tx.Moment().Now.Add(croner.RetryAfter(c.Failures))
	tx.Count(&s.counts.refused, 1)
	if c.Failures == 1 {
		s.tell(c, "the job of a cron entry was refused; it is tried again until its ticks are missed", why)
	}
}

// tell keeps a line for the log until it is true.
func (s *Crons) tell(c *job.CronEntry, text string, why error) {
	if len(s.news) < newsMax {
		s.news = append(s.news, news{c.Group + "/" + c.Name, text, why})
	}
}

// publish counts, tells and begins what the transaction noted.
func (s *Crons) publish() {
	s.count += s.staged
	for _, n := range s.news {
		if n.why != nil {
			s.engine.Logger().Warn("cron", "entry", n.entry, "news", n.text, "error", n.why)
		} else {
			s.engine.Logger().Warn("cron", "entry", n.entry, "news", n.text)
		}
	}
	if len(s.folds) > 0 {
		s.foldAll(s.folds)
	}
}

// jobOf is the job of an entry for a tick; 0 = it was asked for by hand.
func jobOf(c *job.CronEntry, tick job.Millis) engine.NewJob {
	n := engine.NewJob{Job: *c.Job, Place: c.Place, Payload: c.Payload}
	n.Job.State = job.None
	labels := []job.Label{{Key: job.LabelCronGroup, Value: c.Group}, {Key: job.LabelCronEntry, Value: c.Name}}
	if tick != 0 {
		labels = append(labels, job.Label{Key: job.LabelCronTick, Value: strconv.FormatInt(int64(tick), 10)})
	}
	var x job.Extras
	if c.Job.Extras != nil {
		x = *c.Job.Extras
	}
	for _, l := range x.Labels { // ours win
		if !slices.ContainsFunc(labels, func(own job.Label) bool { return own.Key == l.Key }) {
			labels = append(labels, l)
		}
	}
	slices.SortFunc(labels, func(a, b job.Label) int { return cmp.Compare(a.Key, b.Key) })
	x.Labels = labels
	n.Job.Extras = &x
	return n
}
