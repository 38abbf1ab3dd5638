package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// cronsMax bounds the groups and entries of cron together.
const cronsMax = 10_000

// CronAsk is a cron entry as a caller wants it.
type CronAsk struct {
	Name       string
	Expression string
	Zone       string      // "" = the group's
	Missed     *job.Missed // nil = the group's
	Paused     *bool       // nil = as it is; a new one is not
	Job        NewJob      // the template, without dates and without a key
}

// CronGroupAsk is a cron group as a caller wants it.
type CronGroupAsk struct {
	Zone    string // "" = the server's
	Missed  job.Missed
	Paused  *bool // nil = as it is; a new one is not
	Entries []CronAsk
}

// CronGroup is a group with its entries, by name.
type CronGroup struct {
	*job.CronGroup
	Entries []*job.CronEntry
}

// Crons returns the names of all groups, sorted.
func (e *Engine) Crons(ctx context.Context) (names []string, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		rows, err := v.Rows(job.CronGroups, "", cronsMax)
		for _, row := range rows {
			names = append(names, row.Key())
		}
		return err
	})
	return names, err
}

// Cron returns a group, or NotFound.
func (e *Engine) Cron(ctx context.Context, name string) (g CronGroup, err error) {
	err = e.View(ctx, func(v store.Reader) (err error) {
		g, err = cronGroupOf(v, name)
		return err
	})
	return g, err
}

// CronEntry returns an entry, or NotFound.
func (e *Engine) CronEntry(ctx context.Context, group, name string) (c *job.CronEntry, err error) {
	err = e.View(ctx, func(v store.Reader) (err error) {
		c, err = cronEntryOf(v, group, name)
		return err
	})
	return c, err
}

func cronGroupOf(v store.Reader, name string) (g CronGroup, err error) {
	row, err := v.Row(job.CronGroups, name)
	if err != nil {
		return g, err
	}
	var ok bool
	if g.CronGroup, ok = row.(*job.CronGroup); !ok {
		return g, job.Errorf(job.NotFound, "cron group '%s' not found", name)
	}
	rows, err := v.Rows(job.CronEntries, job.CronKey(name, ""), cronsMax)
	for _, row := range rows {
		if e := row.(*job.CronEntry); e.Group == name {
			g.Entries = append(g.Entries, e)
		} else {
			break
		}
	}
	return g, err
}

func cronEntryOf(v store.Reader, group, name string) (*job.CronEntry, error) {
	row, err := v.Row(job.CronEntries, job.CronKey(group, name))
	if e, ok := row.(*job.CronEntry); ok || err != nil {
		return e, err
	}
	if row, err := v.Row(job.CronGroups, group); err != nil || row == nil {
		return nil, cmp.Or(err, error(job.Errorf(job.NotFound, "cron group '%s' not found", group)))
	}
	return nil, job.Errorf(job.NotFound, "cron entry '%s' not found in group '%s'", name, group)
}

// PreviewCron returns the next n ticks of an expression from now on, fewer if no
// more come; zone "" = the server's. Refused with Invalid.
func (e *Engine) PreviewCron(expression, zone string, n int) (list []job.Millis, err error) {
	x, err := cron.Parse(expression)
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Field: "expression", Text: "expression " + err.Error()}
	}
	place := e.opts.Zone
	if zone != "" {
		if place, err = cron.Zone(zone); err != nil {
			return nil, &job.Error{Kind: job.Invalid, Field: "timezone", Text: "timezone " + err.Error()}
		}
	}
	for at, ok := x.In(place).Next(e.Now()); ok && len(list) < n; at, ok = x.In(place).Next(at) {
		list = append(list, at)
	}
	return list, nil
}

// SetCron makes a group what is asked for, or changes it to that: entries that
// are not asked for leave. Where neither expression nor zone change, the next
// tick stays. Refused with Invalid for an expression or a zone that cannot be
// read, and OverLimit above 10,000 groups and entries.
func (e *Engine) SetCron(ctx context.Context, name string, ask CronGroupAsk, by job.Actor) (g CronGroup, err error) {
	return e.changeCron(ctx, name, by, "set cron", ask.Entries, func(r *Tx, was CronGroup) (list cronChanges, err error) {
		asked := map[string]bool{}
		for i := range ask.Entries {
			asked[ask.Entries[i].Name] = true
		}
		for _, old := range was.Entries {
			if !asked[old.Name] {
				list = append(list, cronChange{old: old})
			}
		}
		set, err := r.cronGroupChanges(was, name, &ask)
		return append(list, set...), err
	})
}

// AddCronEntry makes an entry of a group, which is made if need be; Exists if
// there is one of that name.
func (e *Engine) AddCronEntry(ctx context.Context, group string, ask CronAsk, by job.Actor) (*job.CronEntry, error) {
	return e.changeCronEntry(ctx, group, ask.Name, by, "set cron", []CronAsk{ask}, func(r *Tx, g *job.CronGroup, old *job.CronEntry) (job.Row, error) {
		if old != nil {
			return nil, job.Errorf(job.Exists, "cron entry '%s' already exists in group '%s'", ask.Name, group)
		}
		return r.cronEntryAs(g, g.Zone, nil, &ask)
	})
}

// SetCronEntry makes or changes one entry; its group is made if need be.
func (e *Engine) SetCronEntry(ctx context.Context, group string, ask CronAsk, by job.Actor) (*job.CronEntry, error) {
	return e.changeCronEntry(ctx, group, ask.Name, by, "set cron", []CronAsk{ask}, func(r *Tx, g *job.CronGroup, old *job.CronEntry) (job.Row, error) {
		return r.cronEntryAs(g, g.Zone, old, &ask)
	})
}

// CronPatch changes a group; nil = that stays.
type CronPatch struct {
	Paused *bool
	Zone   *string // "" = the server's
	Missed *job.Missed
}

// PatchCron changes a group. What is paused passes over its ticks; entries
// without a zone of their own count anew from now in another one.
func (e *Engine) PatchCron(ctx context.Context, name string, ask CronPatch, by job.Actor) (CronGroup, error) {
	action := "set cron"
	if ask.Paused != nil && ask.Zone == nil && ask.Missed == nil {
		action = pauseWord(*ask.Paused)
	}
	return e.changeCron(ctx, name, by, action, nil, func(r *Tx, was CronGroup) (cronChanges, error) {
		if was.CronGroup == nil {
			_, err := cronGroupOf(r.tx, name)
			return nil, err
		}
		g := *was.CronGroup
		turnPause(ask.Paused, r.now, &g.Paused, &g.PausedAt, &g.ResumedAt)
		if ask.Missed != nil {
			g.Missed = *ask.Missed
		}
		list := cronChanges{{was.CronGroup, &g}}
		if ask.Zone == nil || *ask.Zone == g.Zone {
			return list, nil
		}
		g.Zone = *ask.Zone
		if _, err := r.cronZone(g.Zone); err != nil {
			return nil, err
		}
		for _, old := range was.Entries {
			if old.Zone != "" {
				continue
			}
			c := *old
			s, err := r.schedule(&c, &g)
			if err != nil {
				return nil, err
			}
			c.Next, _ = s.Next(max(r.now, c.Last))
			c.Error, c.ErrorAt, c.Failures, c.Retry = "", 0, 0, 0
			list = append(list, cronChange{old, &c})
		}
		return list, nil
	})
}

// PauseCronEntry does so with one entry.
func (e *Engine) PauseCronEntry(ctx context.Context, group, name string, paused bool, by job.Actor) (*job.CronEntry, error) {
	return e.changeCronEntry(ctx, group, name, by, pauseWord(paused), nil, func(r *Tx, _ *job.CronGroup, old *job.CronEntry) (job.Row, error) {
		if old == nil {
			_, err := cronEntryOf(r.tx, group, name)
			return nil, err
		}
		c := *old
		turnPause(&paused, r.now, &c.Paused, &c.PausedAt, &c.ResumedAt)
		return &c, nil
	})
}

func pauseWord(paused bool) string {
	if paused {
		return "pause cron"
	}
	return "resume cron"
}

// turnPause applies what is asked of a pause; nil = nothing.
func turnPause(want *bool, now job.Millis, is *bool, pausedAt, resumedAt *job.Millis) {
	if want == nil || *want == *is {
		return
	}
	*is = *want
	if *is {
		*pausedAt = now
	} else {
		*resumedAt = now
	}
}

// DeleteCron removes a group with its entries. What they enqueued stays.
func (e *Engine) DeleteCron(ctx context.Context, name string, by job.Actor) error {
	return e.do(ctx, 0, func(r *Tx) error {
		g, err := cronGroupOf(r.tx, name)
		if err != nil {
			return err
		}
		if _, err := r.changeCrons(g.gone()); err != nil {
			return err
		}
		return r.Audit(by, "delete cron", name, int64(len(g.Entries)))
	})
}

// DeleteCrons removes all groups and returns how many there were.
func (e *Engine) DeleteCrons(ctx context.Context, by job.Actor) (n int, err error) {
	err = e.do(ctx, 0, func(r *Tx) error {
		rows, err := r.tx.Rows(job.CronGroups, "", cronsMax)
		n = len(rows)
		if err != nil || n == 0 {
			return err
		}
		for _, row := range rows {
			g, err := cronGroupOf(r.tx, row.Key())
			if err == nil {
				_, err = r.changeCrons(g.gone())
			}
			if err != nil {
				return err
			}
		}
		return r.Audit(by, "delete cron", "all groups", int64(n))
	})
	if err != nil { // n may still be written to
		return 0, err
	}
	return n, nil
}

// DeleteCronEntry removes an entry. Its group stays, even without entries.
func (e *Engine) DeleteCronEntry(ctx context.Context, group, name string, by job.Actor) error {
	return e.do(ctx, 0, func(r *Tx) error {
		c, err := cronEntryOf(r.tx, group, name)
		if err != nil {
			return err
		}
		if _, err := r.changeCrons(cronChanges{{old: c}}); err != nil {
			return err
		}
		return r.Audit(by, "delete cron", group+"/"+name, 1)
	})
}

// CronSetting is a group of the configuration.
type CronSetting struct {
	Name string
	CronGroupAsk
}

// configureCrons applies the cron groups of the configuration. Entries it does
// not name stay: somebody made them over the API.
func (r *Tx) configureCrons() error {
	for i := range r.e.opts.Crons {
		set := &r.e.opts.Crons[i]
		was, err := cronGroupOf(r.tx, set.Name)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		for i, c := range was.Entries {
			if !was.Paused && !c.Paused { // what it owes comes by the new settings
				continue
			}
			if was.Entries[i], err = r.upToDate(c); err != nil {
				return err
			}
		}
		list, err := r.cronGroupChanges(was, set.Name, &set.CronGroupAsk)
		if err == nil {
			made := slices.Clone(set.Entries) // without their queues and what they use: a tick that fails keeps no server from starting
			for i := range made {
				made[i].Job.Job = job.Job{}
			}
			_, err = r.installCrons(list, made)
		}
		if err != nil {
			return fmt.Errorf("configuring cron group %q: %w", set.Name, err)
		}
	}
	return nil
}
