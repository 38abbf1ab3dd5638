package query

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// obstaclesMost is how many jobs are looked at in one transaction, or under one
// view of the store.
const obstaclesMost = 500

// Obstacles finds out of each ready job of a list that is in line what Explain
// tells first, and notes it in Listed.Is; that nobody can run it now, or that others stand before
// it, is InLine. It asks the store only, at a cost of a few looks into memory, and
// of the committer no more than what it alone knows: allowances of queues with a
// rate or a retry budget, and of jobs with budgets; who is connected, while as
// many jobs run as the server allows.
func (r Reads) Obstacles(ctx context.Context, list []Listed) error {
	for len(list) > 0 {
		n := min(len(list), obstaclesMost)
		if err := r.obstacles(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (r Reads) obstacles(ctx context.Context, list []Listed) error {
	saturated := r.engine.Figures().Full
	var asked []int // those that the committer knows more of
	err := r.engine.View(ctx, func(v store.Reader) error {
		asked = asked[:0]
		for i := range list {
			j := list[i].Job
			if list[i].Is = rule.InLine; j.State != job.Ready || j.Park != "" { // that says it
				continue
			}
			s, err := engine.SituationOf(v, j)
			if err != nil {
				return err
			}
			list[i].Is = obstacleOf(s)
			if saturated || allowed(&s) {
				asked = append(asked, i)
			}
		}
		return nil
	})
	if err != nil || len(asked) == 0 {
		return err
	}
	found, err := engine.Ask(ctx, r.engine, func(tx *engine.Tx) (found []rule.Obstacle, err error) {
		crews := map[crewKey]crew{}
		for _, i := range asked {
			s, err := engine.SituationOf(tx.Store(), list[i].Job)
			if err == nil {
				err = tx.Allowances(&s)
			}
			if err == nil && saturated {
				err = crowded(tx, &s, crews)
			}
			if err != nil {
				return nil, err
			}
			found = append(found, obstacleOf(s))
		}
		return found, nil
	})
	if err != nil {
		return err
	}
	for k, i := range asked {
		list[i].Is = found[k]
	}
	return nil
}

// obstacleOf is the first obstacle of a ready job. Of those that depend on who is
// connected only the limit of the server counts.
func obstacleOf(s rule.Situation) rule.Obstacle {
	switch is := rule.Explain(s)[0].Is; is {
	case rule.NoWorker, rule.NoFittingWorker, rule.NoFreeWorker, rule.EnginesExcluded:
		return rule.InLine
	default:
		return is
	}
}

// allowed reports whether allowances can say anything of the job.
func allowed(s *rule.Situation) bool {
	p := &s.Queue.Protection
	return s.Job.Budgets() != nil || p.Rate.Limited() || p.Budget != nil
}

// crew is who could run the jobs of a class of a queue (rule.Situation), and how many
// run of all that the server allows.
type crew struct{ workers, fitting, free, running, most int }

type crewKey struct {
	queue string
	class rule.Class
}

// crowded adds what the server's own limit has against a job; crews are those
// that were counted before.
func crowded(tx *engine.Tx, s *rule.Situation, crews map[crewKey]crew) error {
	key := crewKey{s.Job.Queue, rule.EntriesOf(s.Job).Class}
	c, known := crews[key]
	if !known {
		if err := tx.Crew(s); err != nil {
			return err
		}
		c = crew{s.Workers, s.Fitting, s.Free, s.InFlight, s.InFlightMax}
		crews[key] = c
	}
	s.Workers, s.Fitting, s.Free, s.InFlight, s.InFlightMax = c.workers, c.fitting, c.free, c.running, c.most
	return nil
}
