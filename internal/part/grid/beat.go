package grid

import (
	"context"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// What an engine says of its runs: at its login, and with each heartbeat.

// Beat is the word of an engine that it lives, for all it runs.
type Beat struct {
	Epoch   int64       // of its login
	Stopped []job.Token // of runs that it was told to stop, and has
	Running []Running   // all that it has; nil = it does not say
}

// Heard is the answer to a heartbeat.
type Heard struct {
	EngineState
	Stop []Running // of what it named: this is over
}

// Heartbeat hears that an engine lives. One that is lost or logged in anew, or is
// not known, is refused: it logs in again. What it does not name of what it was
// given so long ago that it would be lost if it had been silent since, it does not
// know of. While it has a stream, it has what it was given, or hears of it when it
// opens the next one.
func (g *Grid) Heartbeat(ctx context.Context, name string, b Beat) (Heard, error) {
	var out Heard
	err := g.engine.Do(ctx, 0, func(tx *engine.Tx) (err error) {
		out, err = g.fleet.beat(tx, name, b)
		return err
	})
	return engine.Answered(&out, err)
}

func (g *fleet) beat(tx *engine.Tx, name string, b Beat) (out Heard, err error) {
	if b.Running != nil {
		row, err := g.fleet.live(tx, name, b.Epoch)
		if err != nil {
			return out, err
		}
		before := tx.Now() - g.lostAfter()
		if tx.Holder(row.Name) != nil || tx.Steady() < tx.SparedUntil() {
			before = 0
		}
		if out.Stop, err = g.fleet.compare(tx, row.Name, b.Running, row, before, job.ByUndelivered); err != nil {
			return out, err
		}
	}
	out.EngineState, err = g.fleet.change(tx, name, b.Epoch, func(tx *engine.Tx, old, row *job.Holder) error {
		m := row.Engine
		if h := m.Health; h.Until > 0 && h.Until <= tx.Now() {
			var err error
			if m.Health, err = plan.HealthRecovers(h, tx.Now()); err != nil {
				return err
			}
			tx.ServeAll()
		}
		if len(b.Stopped) > 0 {
			m.Stopping = slices.DeleteFunc(slices.Clone(m.Stopping), func(hash uint64) bool {
				return slices.ContainsFunc(b.Stopped, func(t job.Token) bool { return t.Hash() == hash })
			})
			if len(m.Stopping) == 0 {
				m.Stopping = nil
				tx.ServeAll()
			}
		}
		return nil
	})
	return out, err
}

// compare keeps what an engine runs yet, and ends what it does not and was given
// by a date: a run that had begun is lost, one that had not ends as unbegun says. It
// returns what it is to stop.
func (g *fleet) compare(tx *engine.Tx, name string, running []Running, old *job.Holder, by job.Millis, unbegun job.Ending) (stop []Running, err error) {
	named := make(map[Running]bool, len(running))
	for _, w := range running {
		named[w] = true
		j, err := tx.Store().Get(w.ID)
		if err != nil {
			return nil, err
		}
		if j == nil {
			stop = append(stop, w)
			continue
		}
		if i := j.LeaseOf(w.Token); i < 0 || j.Leases[i].Holder != name {
			stop = append(stop, w)
		}
	}
	ids, err := tx.Store().IDs(store.Held(name), store.All)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		j, err := tx.Store().Get(id)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(j.Leases, func(l job.Lease) bool { return l.Holder == name })
		if i < 0 || named[Running{id, j.Leases[i].Token}] || j.Leases[i].Since > by {
			continue
		}
		how := lostBy(old)
		if how == job.ByLapse && j.Leases[i].Started == 0 {
			how = unbegun
		}
		if err := tx.EndLeases(name, []job.ID{id}, how); err != nil {
			return nil, err
		}
	}
	return stop, nil
}

// back lets the clocks of the runs of an engine go on that is heard for the
// first time after a start of the server.
func (g *fleet) back(tx *engine.Tx, row *job.Holder) error {
	if row == nil || !row.Engine.Awaited {
		return nil
	}
	ids, err := tx.Store().IDs(store.Held(row.Name), store.All)
	if err != nil {
		return err
	}
	for _, id := range ids {
		j, err := tx.Store().Get(id)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(j.Leases, func(l job.Lease) bool { return l.Holder == row.Name })
		if j.Leases[i].RunEnd == 0 {
			continue
		}
		if _, err := tx.Step(j, rule.Command{Verb: rule.Extend, Token: j.Leases[i].Token, Back: true}); err != nil {
			return err
		}
	}
	return nil
}

// begins is when an engine has a slot for a task that it is given, at the latest:
// now, or when enough of what it has is over. 0 = that is not known, or does not
// matter.
func (g *fleet) begins(tx *engine.Tx, h *engine.Holder, q *job.Queue, j *job.Job) (job.Millis, error) {
	switch {
	case feederOf(h) == nil || q.RunTimeout+j.RunTimeout == 0 || q.StartTimeout+j.StartTimeout > 0:
		return 0, nil
	case h.Want > 0 || tx.Has(h) < feederOf(h).slots:
		return tx.Steady(), nil
	}
	ids, err := tx.Store().IDs(store.Held(h.Name), store.All)
	if err != nil {
		return 0, err
	}
	var ends []job.Millis
	for _, id := range ids {
		j, err := tx.Store().Get(id)
		if err != nil {
			return 0, err
		}
		for _, l := range j.Leases {
			if end := max(l.RunEnd, l.StartBy); l.Holder == h.Name && end > 0 {
				ends = append(ends, end)
			} else if l.Holder == h.Name {
				ends = append(ends, job.MaxMillis)
			}
		}
	}
	slices.Sort(ends)
	at := len(ends) - feederOf(h).slots
	if at < 0 || ends[at] == job.MaxMillis {
		return 0, nil
	}
	return max(ends[at], tx.Steady()), nil
}
