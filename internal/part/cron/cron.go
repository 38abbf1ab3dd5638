// Package cron is the part that enqueues jobs at the ticks of cron expressions
// (docs/cron.md).
//
// Its state is rows: groups, and entries with how far each has come. In memory it has
// how many there are, and ticks that goroutines plan; what is lost of these comes again.
package cron

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	croner "github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// rowsMax bounds the groups and entries of cron together.
const rowsMax = 10_000

// Crons are the cron groups of a server.
type Crons struct {
	Settings []Setting      // groups from the configuration
	Zone     *time.Location // of entries that name none; nil = the machine's

	engine  *engine.Engine
	zones   map[string]*time.Location
	folding folding
	count   int // groups and entries
	counts  counts

	// Of the transaction.
	staged int // change of count
	room   int // for jobs
	news   []news
	folds  []*fold // ticks to be planned by others
}

type counts struct{ jobs, refused, skipped atomic.Uint64 }

// Counts are what became of ticks since the start.
type Counts struct {
	Jobs    uint64 // enqueued
	Refused uint64 // enqueues that were refused
	Skipped uint64 // ticks that were missed and not made up for
}

// Counts tells what became of ticks since the start.
func (s *Crons) Counts() Counts {
	return Counts{s.counts.jobs.Load(), s.counts.refused.Load(), s.counts.skipped.Load()}
}

// Join implements engine.Part.
func (s *Crons) Join(e *engine.Engine) engine.Hooks {
	s.engine, s.zones = e, map[string]*time.Location{}
	if s.Zone == nil {
		s.Zone = time.Local
	}
	s.folding.next = map[string]*fold{}
	s.folding.ctx, s.folding.stop = context.WithCancel(context.Background())
	return engine.Hooks{
		Load: s.load, Configure: s.configure, Stop: s.folding.stop, Wipe: s.wipe, Templates: templates,
		Begin:   func() { s.staged, s.room, s.news, s.folds = 0, burst, s.news[:0], nil },
		Due:     []engine.Due{{Table: job.CronEntries, Do: engine.Row(s.tick)}},
		Publish: s.publish,
	}
}

// load counts what is there.
func (s *Crons) load(v store.Reader) error {
	s.count = 0
	for _, t := range tables {
		rows, err := v.Rows(t, "", 1<<30)
		if err != nil {
			return err
		}
		s.count += len(rows)
	}
	return nil
}

// tables are those of the part; entries, which go on by themselves, stand first.
var tables = []job.Table{job.CronEntries, job.CronGroups}

// wipe removes up to n groups and entries.
func (s *Crons) wipe(tx *engine.Tx, n int) (left bool, err error) {
	for _, t := range tables {
		rows, err := tx.Store().Rows(t, "", n)
		for _, row := range rows {
			if err := tx.Store().Unset(t, row.Key()); err != nil {
				return false, err
			}
			s.staged--
		}
		if n -= len(rows); err != nil || n == 0 {
			return true, err
		}
	}
	return false, nil
}

// templates are the jobs that entries enqueue.
func templates(v store.Reader) ([]engine.Template, error) {
	entries, err := store.Rows[*job.CronEntry](v, "", rowsMax)
	list := make([]engine.Template, 0, len(entries))
	for _, c := range entries {
		list = append(list, engine.Template{Name: "cron entry " + c.Group + "/" + c.Name, Job: c.Job})
	}
	return list, err
}

// Ask is a cron entry as a caller wants it.
type Ask struct {
	Name       string
	Expression string
	Zone       string        // "" = the group's
	Missed     *job.Missed   // nil = the group's
	Paused     *bool         // nil = as it is; a new one is not
	Job        engine.NewJob // the template, without dates and without a key
}

// GroupAsk is a cron group as a caller wants it.
type GroupAsk struct {
	Zone    string // "" = the server's
	Missed  job.Missed
	Paused  *bool // nil = as it is; a new one is not
	Entries []Ask
}

// Group is a group with its entries, by name.
type Group struct {
	*job.CronGroup
	Entries []*job.CronEntry
}

// List returns the names of all groups, sorted.
func (s *Crons) List(ctx context.Context) (names []string, err error) {
	err = s.engine.View(ctx, func(v store.Reader) error {
		rows, err := v.Rows(job.CronGroups, "", rowsMax)
		for _, row := range rows {
			names = append(names, row.Key())
		}
		return err
	})
	return names, err
}

// Get returns a group, or NotFound.
func (s *Crons) Get(ctx context.Context, name string) (g Group, err error) {
	err = s.engine.View(ctx, func(v store.Reader) (err error) {
		g, err = groupOf(v, name)
		return err
	})
	return g, err
}

// Entry returns an entry, or NotFound.
func (s *Crons) Entry(ctx context.Context, group, name string) (c *job.CronEntry, err error) {
	err = s.engine.View(ctx, func(v store.Reader) (err error) {
		c, err = entryOf(v, group, name)
		return err
	})
	return c, err
}

func groupOf(v store.Reader, name string) (g Group, err error) {
	if g.CronGroup, err = store.Row[*job.CronGroup](v, name); err != nil {
		return g, err
	}
	if g.CronGroup == nil {
		return g, job.Errorf(job.NotFound, "cron group '%s' not found", name)
	}
	entries, err := store.Rows[*job.CronEntry](v, job.CronKey(name, ""), rowsMax)
	if end := slices.IndexFunc(entries, func(e *job.CronEntry) bool { return e.Group != name }); end >= 0 {
		entries = entries[:end]
	}
	g.Entries = entries
	return g, err
}

func entryOf(v store.Reader, group, name string) (*job.CronEntry, error) {
	e, err := store.Row[*job.CronEntry](v, job.CronKey(group, name))
	if e != nil || err != nil {
		return e, err
	}
	if g, err := store.Row[*job.CronGroup](v, group); err != nil || g == nil {
		return nil, cmp.Or(err, error(job.Errorf(job.NotFound, "cron group '%s' not found", group)))
	}
	return nil, job.Errorf(job.NotFound, "cron entry '%s' not found in group '%s'", name, group)
}

// Preview returns the next n ticks of an expression from now on, fewer if no
// more come; zone "" = the server's. Refused with Invalid.
func (s *Crons) Preview(expression, zone string, n int) (list []job.Millis, err error) {
	x, err := croner.Parse(expression)
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Field: "expression", Text: "expression " + err.Error()}
	}
	place := s.Zone
	if zone != "" {
		if place, err = croner.Zone(zone); err != nil {
			return nil, &job.Error{Kind: job.Invalid, Field: "timezone", Text: "timezone " + err.Error()}
		}
	}
	for at, ok := x.In(place).Next(s.engine.Now()); ok && len(list) < n; at, ok = x.In(place).Next(at) {
		list = append(list, at)
	}
	return list, nil
}

// Set makes a group what is asked for, or changes it to that: entries that
// are not asked for leave. Where neither expression nor zone change, the next
// tick stays. Refused with Invalid for an expression or a zone that cannot be
// read, and OverLimit above 10,000 groups and entries.
func (s *Crons) Set(ctx context.Context, name string, ask GroupAsk, by job.Actor) (g Group, err error) {
	return s.changeGroup(ctx, name, by, "set cron", ask.Entries, func(tx *engine.Tx, was Group) (list changes, err error) {
		asked := map[string]bool{}
		for i := range ask.Entries {
			asked[ask.Entries[i].Name] = true
		}
		for _, old := range was.Entries {
			if !asked[old.Name] {
				list = append(list, rowChange{old: old})
			}
		}
		set, err := s.groupChanges(tx.Moment().Now, was, name, &ask)
		return append(list, set...), err
	})
}

// AddEntry makes an entry of a group, which is made if need be; Exists if
// there is one of that name.
func (s *Crons) AddEntry(ctx context.Context, group string, ask Ask, by job.Actor) (*job.CronEntry, error) {
	return s.changeEntry(ctx, group, ask.Name, by, "set cron", []Ask{ask}, func(tx *engine.Tx, g *job.CronGroup, old *job.CronEntry) (job.Row, error) {
		if old != nil {
			return nil, job.Errorf(job.Exists, "cron entry '%s' already exists in group '%s'", ask.Name, group)
		}
		return s.entryAs(tx.Moment().Now, g, g.Zone, nil, &ask)
	})
}

// SetEntry makes or changes one entry; its group is made if need be.
func (s *Crons) SetEntry(ctx context.Context, group string, ask Ask, by job.Actor) (*job.CronEntry, error) {
	return s.changeEntry(ctx, group, ask.Name, by, "set cron", []Ask{ask}, func(tx *engine.Tx, g *job.CronGroup, old *job.CronEntry) (job.Row, error) {
		return s.entryAs(tx.Moment().Now, g, g.Zone, old, &ask)
	})
}

// Patch changes a group; nil = that stays.
type Patch struct {
	Paused *bool
	Zone   *string // "" = the server's
	Missed *job.Missed
}

// Patch changes a group. What is paused passes over its ticks; entries
// without a zone of their own count anew from now in another one.
func (s *Crons) Patch(ctx context.Context, name string, ask Patch, by job.Actor) (Group, error) {
	action := "set cron"
	if ask.Paused != nil && ask.Zone == nil && ask.Missed == nil {
		action = pauseWord(*ask.Paused)
	}
	return s.changeGroup(ctx, name, by, action, nil, func(tx *engine.Tx, was Group) (changes, error) {
		if was.CronGroup == nil {
			_, err := groupOf(tx.Store(), name)
			return nil, err
		}
		g := *was.CronGroup
		turnPause(ask.Paused, tx.Moment().Now, &g.Paused, &g.PausedAt, &g.ResumedAt)
		if ask.Missed != nil {
			g.Missed = *ask.Missed
		}
		list := changes{{was.CronGroup, &g}}
		if ask.Zone == nil || *ask.Zone == g.Zone {
			return list, nil
		}
		g.Zone = *ask.Zone
		if _, err := s.zone(g.Zone); err != nil {
			return nil, err
		}
		for _, old := range was.Entries {
			if old.Zone != "" {
				continue
			}
			c := *old
			times, err := s.schedule(&c, &g)
			if err != nil {
				return nil, err
			}
			c.Next, _ = times.Next(max(tx.Moment().Now, c.Last))
			c.Error, c.ErrorAt, c.Failures, c.Retry = "", 0, 0, 0
			list = append(list, rowChange{old, &c})
		}
		return list, nil
	})
}

// PauseEntry does so with one entry.
func (s *Crons) PauseEntry(ctx context.Context, group, name string, paused bool, by job.Actor) (*job.CronEntry, error) {
	return s.changeEntry(ctx, group, name, by, pauseWord(paused), nil, func(tx *engine.Tx, _ *job.CronGroup, old *job.CronEntry) (job.Row, error) {
		if old == nil {
			_, err := entryOf(tx.Store(), group, name)
			return nil, err
		}
		c := *old
		turnPause(&paused, tx.Moment().Now, &c.Paused, &c.PausedAt, &c.ResumedAt)
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

// Delete removes a group with its entries. What they enqueued stays.
func (s *Crons) Delete(ctx context.Context, name string, by job.Actor) error {
	return s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		g, err := groupOf(tx.Store(), name)
		if err != nil {
			return err
		}
		if _, err := s.change(tx, g.gone()); err != nil {
			return err
		}
		return tx.Audit(by, "delete cron", name, int64(len(g.Entries)))
	})
}

// DeleteAll removes all groups and returns how many there were.
func (s *Crons) DeleteAll(ctx context.Context, by job.Actor) (n int, err error) {
	err = s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		groups, err := store.Rows[*job.CronGroup](tx.Store(), "", rowsMax)
		n = len(groups)
		if err != nil || n == 0 {
			return err
		}
		for _, row := range groups {
			g, err := groupOf(tx.Store(), row.Key())
			if err == nil {
				_, err = s.change(tx, g.gone())
			}
			if err != nil {
				return err
			}
		}
		return tx.Audit(by, "delete cron", "all groups", int64(n))
	})
	return engine.Answered(&n, err)
}

// DeleteEntry removes an entry. Its group stays, even without entries.
func (s *Crons) DeleteEntry(ctx context.Context, group, name string, by job.Actor) error {
	return s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		c, err := entryOf(tx.Store(), group, name)
		if err != nil {
			return err
		}
		if _, err := s.change(tx, changes{{old: c}}); err != nil {
			return err
		}
		return tx.Audit(by, "delete cron", group+"/"+name, 1)
	})
}

// Setting is a group of the configuration.
type Setting struct {
	Name string
	GroupAsk
}

// configure applies the cron groups of the configuration. Entries it does
// not name stay: somebody made them over the API.
func (s *Crons) configure(tx *engine.Tx) error {
	for i := range s.Settings {
		set := &s.Settings[i]
		was, err := groupOf(tx.Store(), set.Name)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		for i, c := range was.Entries {
			if !was.Paused && !c.Paused { // what it owes comes by the new settings
				continue
			}
			if was.Entries[i], err = s.upToDate(tx, c); err != nil {
				return err
			}
		}
		list, err := s.groupChanges(tx.Moment().Now, was, set.Name, &set.GroupAsk)
		if err == nil {
			made := slices.Clone(set.Entries) // without their queues and what they use: a tick that fails keeps no server from starting
			for i := range made {
				made[i].Job.Job = job.Job{}
			}
			_, err = s.install(tx, list, made)
		}
		if err != nil {
			return fmt.Errorf("configuring cron group %q: %w", set.Name, err)
		}
	}
	return nil
}
