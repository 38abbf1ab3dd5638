// Package audit is the part for the audit log: who did what, and when (retry.md
// section 3).
//
// Its state is rows, and in memory how many of them each author wrote.
package audit

import (
	"context"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// How long the log keeps its entries. There are at most Log.Max of admins and about
// tokens, and as many others. Of a full half the author with the most loses the
// oldest: nobody can push out what others did.
const (
	keep = 90 * job.Day
	drop = 100 // leave together at most, so that finding them costs little
	few  = 10  // where nobody has so many to give, the oldest leave, whoever wrote them
)

// Log is the audit log of a server.
type Log struct {
	Max int // entries of admins and about tokens, and so many others; 0 = 10,000

	engine *engine.Engine
	count  counts
	staged counts // change of that by the transaction
}

// author is whose entries count together.
type author struct {
	apart bool // in the half of the admins
	name  string
}

func authorOf(a *job.Audit) author {
	return author{a.By.Admin || a.Action == job.AuditToken || a.Action == job.AuditRevoke, a.By.Name}
}

// counts is how many entries there are, or how that changes.
type counts map[author]int

func (c counts) add(who author, n int) {
	if c[who] += n; c[who] == 0 {
		delete(c, who)
	}
}

// Join implements engine.Part.
func (l *Log) Join(e *engine.Engine) engine.Hooks {
	l.engine, l.count, l.staged = e, counts{}, counts{}
	if l.Max == 0 {
		l.Max = 10_000
	}
	return engine.Hooks{
		Load:  l.load,
		Begin: func() { clear(l.staged) },
		Audit: l.write,
		Due:   []engine.Due{{Table: job.Audits, Do: engine.Row(l.forget)}},
		Publish: func() {
			for who, n := range l.staged {
				l.count.add(who, n)
			}
		},
	}
}

// load counts what is there.
func (l *Log) load(v store.Reader) error {
	clear(l.count)
	return store.EachRow(v, "", func(a *job.Audit) error { l.count.add(authorOf(a), 1); return nil })
}

// half counts one half, and finds who has the most in it.
func (l *Log) half(apart bool) (all, most int, busiest author) {
	look := func(who author, n int) {
		if who.apart != apart {
			return
		}
		if all += n; n > most || n == most && who.name < busiest.name { // a transaction may run twice, and alike
			most, busiest = n, who
		}
	}
	for who, n := range l.count {
		look(who, n+l.staged[who])
	}
	for who, n := range l.staged {
		if l.count[who] == 0 {
			look(who, n)
		}
	}
	return all, most, busiest
}

// write keeps an entry, and makes room for it.
func (l *Log) write(tx *engine.Tx, entry *job.Audit) error {
	entry.Expires = entry.At.Add(keep)
	who := authorOf(entry)
	if all, most, busiest := l.half(who.apart); all >= l.Max {
		leave, anybody := min(most/2, drop), false
		if leave < few {
			leave, anybody = drop, true
		}
		if err := l.drop(tx, leave, func(a author) bool { return a == busiest || anybody && a.apart == who.apart }); err != nil {
			return err
		}
	}
	l.staged.add(who, 1)
	tx.Store().Durable()
	return tx.Store().Set(entry)
}

// drop drops the n oldest entries of some authors.
func (l *Log) drop(tx *engine.Tx, n int, of func(author) bool) error {
	list, err := store.Rows[*job.Audit](tx.Store(), "", store.All)
	if err != nil {
		return err
	}
	for _, a := range list {
		if !of(authorOf(a)) {
			continue
		}
		if n--; n < 0 {
			break
		}
		if err := l.forget(tx, a); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) forget(tx *engine.Tx, a *job.Audit) error {
	l.staged.add(authorOf(a), -1)
	return tx.Store().Unset(job.Audits, a.Key())
}

// List returns up to n entries, newest first, those before an entry if that is given.
func (l *Log) List(ctx context.Context, before job.ID, n int) (list []*job.Audit, err error) {
	err = l.engine.View(ctx, func(v store.Reader) error {
		all, err := store.Rows[*job.Audit](v, "", 2*l.Max+drop)
		for _, a := range slices.Backward(all) {
			if len(list) < n && (before.IsZero() || a.ID.Before(before)) {
				list = append(list, a)
			}
		}
		return err
	})
	return list, err
}

// Note writes an entry for what was done in another call.
func (l *Log) Note(ctx context.Context, by job.Actor, action, subject string, count int64) error {
	return l.engine.Do(ctx, 0, func(tx *engine.Tx) error { return tx.Audit(by, action, subject, count) })
}
