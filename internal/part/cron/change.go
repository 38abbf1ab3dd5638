package cron

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	croner "github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// changeGroup changes a group that may not be there (nil), and returns it.
func (s *Crons) changeGroup(ctx context.Context, name string, by job.Actor, action string, asks []Ask, change func(*engine.Tx, Group) (changes, error)) (Group, error) {
	var out Group
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		was, err := groupOf(tx.Store(), name)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		for i, c := range was.Entries {
			if was.Entries[i], err = s.upToDate(tx, c); err != nil {
				return err
			}
		}
		list, err := change(tx, was)
		if err != nil {
			return err
		}
		some, err := s.install(tx, list, asks)
		if err != nil {
			return err
		}
		if out, err = groupOf(tx.Store(), name); err != nil || !some {
			return err
		}
		return tx.Audit(by, action, name, int64(len(out.Entries)))
	})
	return engine.Answered(&out, err)
}

// changeEntry changes an entry that may not be there (nil), and returns it.
// Its group is made if it was not there and the entry is.
func (s *Crons) changeEntry(ctx context.Context, group, name string, by job.Actor, action string, asks []Ask,
	change func(*engine.Tx, *job.CronGroup, *job.CronEntry) (job.Row, error),
) (*job.CronEntry, error) {
	var out *job.CronEntry
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		old, err := entryOf(tx.Store(), group, name)
		if err == nil {
			old, err = s.upToDate(tx, old)
		}
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		g, err := store.Row[*job.CronGroup](tx.Store(), group)
		if err != nil {
			return err
		}
		var list changes
		if g == nil {
			g = &job.CronGroup{Name: group}
			list = changes{{nil, g}}
		}
		set, err := change(tx, g, old)
		if err != nil {
			return err
		}
		if old == nil {
			list = append(list, rowChange{nil, set})
		} else {
			list = append(list, rowChange{old, set})
		}
		some, err := s.install(tx, list, asks)
		if err != nil {
			return err
		}
		if out, err = entryOf(tx.Store(), group, name); err != nil || !some {
			return err
		}
		return tx.Audit(by, action, group+"/"+name, 1)
	})
	return engine.Answered(&out, err)
}

// upToDate does what an entry owes up to now, by the settings it has.
func (s *Crons) upToDate(tx *engine.Tx, c *job.CronEntry) (*job.CronEntry, error) {
	if at := c.Due(); at == 0 || at > tx.Moment().Now {
		return c, nil
	}
	if _, err := s.turn(tx, c, burst, nil); err != nil {
		return nil, err
	}
	return entryOf(tx.Store(), c.Group, c.Name)
}

// groupChanges makes a group and its entries what is asked for.
func (s *Crons) groupChanges(now job.Millis, was Group, name string, ask *GroupAsk) (list changes, err error) {
	g, oldZone := job.CronGroup{Name: name}, ""
	if was.CronGroup != nil {
		g, oldZone = *was.CronGroup, was.Zone
	}
	if _, err := s.zone(ask.Zone); err != nil {
		return nil, err
	}
	g.Zone, g.Missed = ask.Zone, ask.Missed
	turnPause(ask.Paused, now, &g.Paused, &g.PausedAt, &g.ResumedAt)
	old := map[string]*job.CronEntry{}
	for _, c := range was.Entries {
		old[c.Name] = c
	}
	if was.CronGroup == nil {
		list = changes{{nil, &g}}
	} else {
		list = changes{{was.CronGroup, &g}}
	}
	seen := map[string]bool{}
	for i := range ask.Entries {
		name := ask.Entries[i].Name
		if seen[name] {
			return nil, &job.Error{Kind: job.Invalid, Field: place(i) + "name", Text: place(i) + "name: the group has two entries of the name '" + name + "'"}
		}
		seen[name] = true
		before := old[name]
		c, err := s.entryAs(now, &g, oldZone, before, &ask.Entries[i])
		if err != nil {
			return nil, within(place(i), err)
		}
		if before == nil {
			list = append(list, rowChange{nil, c})
		} else {
			list = append(list, rowChange{before, c})
		}
	}
	return list, nil
}

// place is where an entry stands in what is asked for of a group.
func place(i int) string { return "entries[" + strconv.Itoa(i) + "]." }

// within says of a refusal in which entry its field stands.
func within(place string, err error) error {
	own, ok := errors.AsType[*job.Error](err)
	if !ok {
		return err
	}
	said := *own // it may be what others are told, too
	said.Field, said.Text = place+own.Field, place+own.Text
	return &said
}

// Check refuses a group that no server would take: Invalid.
func Check(ask *GroupAsk) error {
	s := Crons{Zone: time.UTC, zones: map[string]*time.Location{}}
	_, err := s.groupChanges(0, Group{}, "", ask)
	return err
}

// entryAs is an entry as it is asked for; oldZone is the one that its group had.
func (s *Crons) entryAs(now job.Millis, g *job.CronGroup, oldZone string, old *job.CronEntry, ask *Ask) (job.Row, error) {
	template := ask.Job.Job
	template.State = job.Ready // what is stored must be in one
	c := job.CronEntry{
		Group: g.Name, Name: ask.Name, Expression: ask.Expression, Zone: ask.Zone, Missed: ask.Missed,
		Job: &template, Place: ask.Job.Place, Payload: ask.Job.Payload,
	}
	times, err := s.schedule(&c, g)
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
		c.Next, _ = times.Next(max(now, c.Last))
	}
	turnPause(ask.Paused, now, &c.Paused, &c.PausedAt, &c.ResumedAt)
	return &c, nil
}

// rowChange is a row before and after; nil = there is none.
type rowChange struct{ old, new job.Row }

type changes []rowChange

// gone is what deleting a group changes.
func (g Group) gone() changes {
	list := changes{{old: g.CronGroup}}
	for _, c := range g.Entries {
		list = append(list, rowChange{old: c})
	}
	return list
}

// install is change for entries whose queue takes jobs, and whose budgets
// must be there, or are made with them: an entry that was taken can be enqueued.
func (s *Crons) install(tx *engine.Tx, list changes, asks []Ask) (some bool, err error) {
	later := tx.PutLater()
	for i := range asks {
		if err := later.Admit(&asks[i].Job); err != nil {
			err.Text = "cron entry '" + asks[i].Name + "': " + err.Text
			return false, err
		}
	}
	if some, err = s.change(tx, list); err == nil {
		err = later.Make()
	}
	return some, err
}

// change writes all of it, or refuses it; it reports whether something changed.
func (s *Crons) change(tx *engine.Tx, list changes) (some bool, err error) {
	more := 0
	for _, c := range list {
		if c.old == nil {
			more++
		} else if c.new == nil {
			more--
		}
	}
	if more > 0 && s.count+s.staged+more > rowsMax {
		return false, job.Errorf(job.OverLimit, "there may be %d cron groups and entries together; delete some", rowsMax)
	}
	for _, c := range list {
		if c.old != nil && c.new != nil && reflect.DeepEqual(c.old, c.new) {
			continue
		}
		if c.new != nil {
			err = tx.Store().Set(c.new)
		} else {
			err = tx.Store().Unset(c.old.Table(), c.old.Key())
		}
		if err != nil {
			return false, err
		}
		some = true
		tx.Store().Durable()
	}
	s.staged += more
	return some, nil
}

// schedule is when an entry of a group ticks.
func (s *Crons) schedule(c *job.CronEntry, g *job.CronGroup) (croner.Schedule, error) {
	e, err := croner.Parse(c.Expression)
	if err != nil {
		return croner.Schedule{}, &job.Error{Kind: job.Invalid, Field: "expression", Text: "expression is refused: " + err.Error()}
	}
	zone, err := s.zone(cmp.Or(c.Zone, g.Zone))
	return e.In(zone), err
}

// zone finds a time zone; "" is the server's.
func (s *Crons) zone(name string) (*time.Location, error) {
	if name == "" {
		return s.Zone, nil
	}
	if zone := s.zones[name]; zone != nil { // reading one takes long
		return zone, nil
	}
	zone, err := croner.Zone(name)
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Field: "timezone", Text: "timezone " + err.Error()}
	}
	s.zones[name] = zone
	return zone, nil
}
