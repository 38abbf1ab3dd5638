package grid

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// placedName is the row that says that no job of the store is in a queue of a
// kind that is not its own: versions before could move tasks and jobs.
const placedName = "jobs are placed"

// placePage is how many jobs one transaction looks at for that.
const placePage = 2000

// migrate sets aside the jobs that an earlier version moved into a session or out
// of one, once for a directory.
func (g *Grid) migrate(step func(func(*engine.Tx) error) error) error {
	known, more := false, true
	err := step(func(tx *engine.Tx) error {
		row, err := store.Row[*job.Reserve](tx.Store(), placedName)
		known = row != nil
		return err
	})
	find := store.Filter{States: []job.State{job.Scheduled, job.Ready, job.Leased}}
	for from := find.From; more && !known && err == nil; {
		err = step(func(tx *engine.Tx) error {
			find.From = from
			list, err := tx.Store().List(find, placePage)
			for _, j := range list {
				if err == nil {
					find.From = j.ID
					err = setMisplacedAside(tx, j)
				}
			}
			if more = len(list) == placePage; more || err != nil {
				return err
			}
			if err := g.countSessions(tx); err != nil {
				return err
			}
			return tx.Store().Set(&job.Reserve{Name: placedName, Next: 1})
		})
		from = find.From
	}
	return err
}

func setMisplacedAside(tx *engine.Tx, j *job.Job) error {
	q, err := tx.Queue(j.Queue)
	if err != nil || !rule.Misplaced(j, q) {
		return err
	}
	why := "it is a task outside of its session, to which an earlier version moved it; submit it anew"
	if q.Grid != nil {
		why = "it is no task, but in a session, to which an earlier version moved it; enqueue it anew"
	}
	return tx.Reject(j, why)
}

// countSessions counts those tasks of sessions as failed that an earlier version
// moved away: their sessions would never end.
func (g *Grid) countSessions(tx *engine.Tx) error {
	list, err := g.shares.all(tx)
	if err != nil {
		return err
	}
	for _, known := range list {
		if gone := known.Open() - tx.Store().Depth(known.Name).Open(); gone > 0 {
			s, err := g.sessions.own(tx, known.Name)
			if err != nil {
				return err
			}
			s.Failed += gone
		}
	}
	return nil
}
