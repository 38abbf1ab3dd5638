package engine

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/job"
)

// cronBurst bounds the jobs that cron enqueues in one transaction.
const cronBurst = 1000

// cronNewsMax bounds the lines that one transaction writes to the log.
const cronNewsMax = 10

// cronNews is what an operator should hear of an entry: that it is refused, or
// works again, or passed over more than it can make up for.
type cronNews struct {
	entry string
	text  string
	why   error
}

// turnCrons enqueues what the ticks up to now ask for. The jobs and how far the
// entry has come are in one transaction, so no tick comes twice and none is
// forgotten.
func (r *Tx) turnCrons() error {
	if next := r.tx.NextRow(job.CronEntries); next == 0 || next > r.now {
		return nil
	}
	rows, err := r.tx.DueRows(job.CronEntries, r.now, tickMax)
	if err != nil {
		return err
	}
	room := cronBurst
	for _, row := range rows {
		n, err := r.turnCron(row.(*job.CronEntry), room, nil)
		if err != nil {
			return err
		}
		if room -= n; room <= 0 {
			r.ticked = true
			return nil
		}
	}
	r.ticked = r.ticked || len(rows) == tickMax
	return nil
}

// turnCron brings an entry up to now, with at most room jobs, and returns how
// many it enqueued. A refused enqueue is tried again later (cron.RetryAfter);
// its tick is then late, so the rule for missed ticks decides about it. f is
// what was planned for the first tick of an entry with a batch; without a plan
// the tick is left to a goroutine, and a look at the entry comes again.
func (r *Tx) turnCron(old *job.CronEntry, room int, f *cronFold) (n int, err error) {
	row, err := r.tx.Row(job.CronGroups, old.Group)
	if err != nil {
		return 0, err
	}
	g, ok := row.(*job.CronGroup)
	if !ok { // they leave together; the clock must not stop over one that did not
		g = &job.CronGroup{Name: old.Group}
	}
	c := *old
	c.Retry = 0
	s, err := r.schedule(&c, g)
	if err != nil { // the zone is not known any more: it was written by a newer server
		r.refusedCron(&c, err)
		return 0, r.tx.Set(&c)
	}
	if c.Paused || g.Paused {
		c.Next, _ = s.Next(r.now)
		return 0, r.tx.Set(&c)
	}
	missed := g.Missed
	if c.Missed != nil {
		missed = *c.Missed
	}
	due := s.Look(c.Next, r.now, missed)
	c.Next = due.Next
	for _, tick := range due.Ticks {
		if n == room {
			c.Next = tick
			r.ticked = true
			break
		}
		added, done, err := r.putCron(&c, tick, f)
		if fatal(err) && (f == nil || f.err == nil) || errors.Is(err, errStale) {
			return n, err
		}
		if !done {
			c.Next, c.Retry = tick, r.now.Add(cronFoldAgain)
			break
		}
		if err != nil {
			c.Next = tick
			r.refusedCron(&c, err)
			break
		}
		if c.Failures > 0 {
			r.tell(&c, "a cron entry works again", nil)
		}
		c.Last, c.LastJob, c.Error, c.ErrorAt, c.Failures = tick, added.ID, "", 0, 0
		if !added.Duplicate && !added.Folded {
			r.stats.CronJobs++
		}
		n++
	}
	if over := int64(due.Missed - due.Made); over > 0 {
		c.Skipped += over
		r.stats.CronSkipped += uint64(over)
		if missed == job.MissedAll && c.Failures == 0 {
			r.tell(&c, "a cron entry missed more ticks than can be made up for; the oldest are left out", nil)
		}
	}
	return n, r.tx.Set(&c)
}

// refusedCron notes why the job of an entry was not enqueued, and when to try again.
func (r *Tx) refusedCron(c *job.CronEntry, why error) {
	c.Error, c.ErrorAt = why.Error(), r.now
	c.Failures++
	c.Retry = r.now.Add(cron.RetryAfter(c.Failures))
	r.stats.CronRefused++
	if c.Failures == 1 {
		r.tell(c, "the job of a cron entry was refused; it is tried again until its ticks are missed", why)
	}
}

// tell keeps a line for the log until it is true.
func (r *Tx) tell(c *job.CronEntry, text string, why error) {
	if len(r.cronNews) < cronNewsMax {
		r.cronNews = append(r.cronNews, cronNews{c.Group + "/" + c.Name, text, why})
	}
}

func (r *Tx) reportCrons() {
	for _, n := range r.cronNews {
		if n.why != nil {
			r.e.log.Warn("cron", "entry", n.entry, "news", n.text, "error", n.why)
		} else {
			r.e.log.Warn("cron", "entry", n.entry, "news", n.text)
		}
	}
}

// cronJob is the job of an entry for a tick; 0 = it was asked for by hand.
func cronJob(c *job.CronEntry, tick job.Millis) NewJob {
	n := NewJob{Job: *c.Job, Place: c.Place, Payload: c.Payload}
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
