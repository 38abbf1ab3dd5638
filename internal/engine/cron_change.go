package engine

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/job"
)

// changeCron changes a group that may not be there (nil), and returns it.
func (e *Engine) changeCron(ctx context.Context, name string, by job.Actor, action string, asks []CronAsk, change func(*Tx, CronGroup) (cronChanges, error)) (CronGroup, error) {
	var out CronGroup
	err := e.do(ctx, 0, func(r *Tx) error {
		was, err := cronGroupOf(r.tx, name)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		for i, c := range was.Entries {
			if was.Entries[i], err = r.upToDate(c); err != nil {
				return err
			}
		}
		list, err := change(r, was)
		if err != nil {
			return err
		}
		some, err := r.installCrons(list, asks)
		if err != nil {
			return err
		}
		if out, err = cronGroupOf(r.tx, name); err != nil || !some {
			return err
		}
		return r.Audit(by, action, name, int64(len(out.Entries)))
	})
	if err != nil { // out may still be written to
		return CronGroup{}, err
	}
	return out, nil
}

// changeCronEntry changes an entry that may not be there (nil), and returns it.
// Its group is made if it was not there and the entry is.
func (e *Engine) changeCronEntry(ctx context.Context, group, name string, by job.Actor, action string, asks []CronAsk,
	change func(*Tx, *job.CronGroup, *job.CronEntry) (job.Row, error),
) (*job.CronEntry, error) {
	var out *job.CronEntry
	err := e.do(ctx, 0, func(r *Tx) error {
		old, err := cronEntryOf(r.tx, group, name)
		if err == nil {
			old, err = r.upToDate(old)
		}
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		row, err := r.tx.Row(job.CronGroups, group)
		if err != nil {
			return err
		}
		var list cronChanges
		g, ok := row.(*job.CronGroup)
		if !ok {
			g = &job.CronGroup{Name: group}
			list = cronChanges{{nil, g}}
		}
		set, err := change(r, g, old)
		if err != nil {
			return err
		}
		if old == nil {
			list = append(list, cronChange{nil, set})
		} else {
			list = append(list, cronChange{old, set})
		}
		some, err := r.installCrons(list, asks)
		if err != nil {
			return err
		}
		if out, err = cronEntryOf(r.tx, group, name); err != nil || !some {
			return err
		}
		return r.Audit(by, action, group+"/"+name, 1)
	})
	if err != nil { // out may still be written to
		return nil, err
	}
	return out, nil
}

// upToDate does what an entry owes up to now, by the settings it has.
func (r *Tx) upToDate(c *job.CronEntry) (*job.CronEntry, error) {
	if at := c.Due(); at == 0 || at > r.now {
		return c, nil
	}
	if _, err := r.turnCron(c, cronBurst, nil); err != nil {
		return nil, err
	}
	return cronEntryOf(r.tx, c.Group, c.Name)
}

// cronGroupChanges makes a group and its entries what is asked for.
func (r *Tx) cronGroupChanges(was CronGroup, name string, ask *CronGroupAsk) (list cronChanges, err error) {
	g, oldZone := job.CronGroup{Name: name}, ""
	if was.CronGroup != nil {
		g, oldZone = *was.CronGroup, was.Zone
	}
	if _, err := r.cronZone(ask.Zone); err != nil {
		return nil, err
	}
	g.Zone, g.Missed = ask.Zone, ask.Missed
	turnPause(ask.Paused, r.now, &g.Paused, &g.PausedAt, &g.ResumedAt)
	old := map[string]*job.CronEntry{}
	for _, c := range was.Entries {
		old[c.Name] = c
	}
	if was.CronGroup == nil {
		list = cronChanges{{nil, &g}}
	} else {
		list = cronChanges{{was.CronGroup, &g}}
	}
	seen := map[string]bool{}
	for i := range ask.Entries {
		name := ask.Entries[i].Name
		if seen[name] {
			return nil, job.Errorf(job.Invalid, "the group has two entries of the name '%s'", name)
		}
		seen[name] = true
		before := old[name]
		c, err := r.cronEntryAs(&g, oldZone, before, &ask.Entries[i])
		if err != nil {
			return nil, err
		}
		if before == nil {
			list = append(list, cronChange{nil, c})
		} else {
			list = append(list, cronChange{before, c})
		}
	}
	return list, nil
}

// CheckCron refuses a group that no server would take: Invalid.
func CheckCron(ask *CronGroupAsk) error {
	r := Tx{e: &Engine{opts: Options{Zone: time.UTC}}, c: &committer{zones: map[string]*time.Location{}}}
	_, err := r.cronGroupChanges(CronGroup{}, "", ask)
	return err
}

// cronEntryAs is an entry as it is asked for; oldZone is the one that its group had.
func (r *Tx) cronEntryAs(g *job.CronGroup, oldZone string, old *job.CronEntry, ask *CronAsk) (job.Row, error) {
	template := ask.Job.Job
	template.State = job.Ready // what is stored must be in one
	c := job.CronEntry{
		Group: g.Name, Name: ask.Name, Expression: ask.Expression, Zone: ask.Zone, Missed: ask.Missed,
		Job: &template, Place: ask.Job.Place, Payload: ask.Job.Payload,
	}
	s, err := r.schedule(&c, g)
	if err != nil {
		return nil, err
	}
	same := false
	if old != nil {
		c.Paused, c.PausedAt, c.ResumedAt = old.Paused, old.PausedAt, old.ResumedAt
		c.Last, c.LastJob, c.Skipped = old.Last, old.LastJob, old.Skipped
		same = c.Expression == old.Expression && cmp.Or(c.Zone, g.Zone) == cmp.Or(old.Zone, oldZone)
	}
	if same {
		c.Next, c.Error, c.ErrorAt, c.Failures = old.Next, old.Error, old.ErrorAt, old.Failures // and what was refused is tried again now
	} else {
		c.Next, _ = s.Next(max(r.now, c.Last))
	}
	turnPause(ask.Paused, r.now, &c.Paused, &c.PausedAt, &c.ResumedAt)
	return &c, nil
}

// cronChange is a row before and after; nil = there is none.
type cronChange struct{ old, new job.Row }

type cronChanges []cronChange

// gone is what deleting a group changes.
func (g CronGroup) gone() cronChanges {
	list := cronChanges{{old: g.CronGroup}}
	for _, c := range g.Entries {
		list = append(list, cronChange{old: c})
	}
	return list
}

// installCrons is changeCrons for entries whose queue takes jobs, and whose budgets
// must be there, or are made with them: an entry that was taken can be enqueued.
func (r *Tx) installCrons(list cronChanges, asks []CronAsk) (some bool, err error) {
	var create map[string]*job.Budget
	for i := range asks {
		if err := r.submittable(&asks[i].Job.Job); err != nil {
			return false, &job.Error{Kind: job.KindOf(err), Field: "queue", Text: "cron entry '" + asks[i].Name + "': " + err.Error()}
		}
		if create, err = r.admitBudgets(create, asks[i].Job.Job.Budgets(), asks[i].Job.Create); err != nil {
			return false, &job.Error{Kind: job.KindOf(err), Field: "budgets", Text: "cron entry '" + asks[i].Name + "': " + err.Error()}
		}
	}
	if some, err = r.changeCrons(list); err == nil {
		err = r.makeBudgets(create)
	}
	return some, err
}

// noCronInto refuses to make a session or an inbox of a queue that a cron entry
// enqueues into: each of its ticks would fail.
func (r *Tx) noCronInto(queue string) error {
	if r.c.crons+r.crons == 0 {
		return nil
	}
	rows, err := r.tx.Rows(job.CronEntries, "", cronsMax)
	for _, row := range rows {
		if c := row.(*job.CronEntry); c.Job.Queue == queue {
			return &job.Error{Kind: job.Exists, Field: "name", Text: fmt.Sprintf(
				"cron entry %s/%s enqueues into %q; change or delete the entry first, or take another name", c.Group, c.Name, queue)}
		}
	}
	return err
}

// changeCrons writes all of it, or refuses it; it reports whether something changed.
func (r *Tx) changeCrons(list cronChanges) (some bool, err error) {
	more := 0
	for _, c := range list {
		if c.old == nil {
			more++
		} else if c.new == nil {
			more--
		}
	}
	if more > 0 && r.c.crons+r.crons+more > cronsMax {
		return false, job.Errorf(job.OverLimit, "there may be %d cron groups and entries together; delete some", cronsMax)
	}
	for _, c := range list {
		if c.old != nil && c.new != nil && reflect.DeepEqual(c.old, c.new) {
			continue
		}
		if c.new != nil {
			err = r.tx.Set(c.new)
		} else {
			err = r.tx.Unset(c.old.Table(), c.old.Key())
		}
		if err != nil {
			return false, err
		}
		some = true
		r.tx.Durable()
	}
	r.crons += more
	return some, nil
}

// schedule is when an entry of a group ticks.
func (r *Tx) schedule(c *job.CronEntry, g *job.CronGroup) (cron.Schedule, error) {
	e, err := cron.Parse(c.Expression)
	if err != nil {
		return cron.Schedule{}, &job.Error{Kind: job.Invalid, Field: "expression", Text: "the expression of cron entry '" + c.Name + "': " + err.Error()}
	}
	zone, err := r.cronZone(cmp.Or(c.Zone, g.Zone))
	return e.In(zone), err
}

// cronZone finds a time zone; "" is the server's.
func (r *Tx) cronZone(name string) (*time.Location, error) {
	if name == "" {
		return r.e.opts.Zone, nil
	}
	if zone := r.c.zones[name]; zone != nil { // reading one takes long
		return zone, nil
	}
	zone, err := cron.Zone(name)
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Field: "timezone", Text: "timezone " + err.Error()}
	}
	r.c.zones[name] = zone
	return zone, nil
}
