package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// situationOf is what the store knows of all that may keep a job from running.
// What is missing is known to the committer: allowances, and who could run it.
// Of a group it tells that there is a head and a blocker, by what their ids are.
func situationOf(v store.Reader, j *job.Job) (s rule.Situation, err error) {
	s = rule.Situation{
		Moment: rule.Moment{Now: v.Now()}, Job: j, Room: rule.Room{All: rule.NoLimit, Retried: rule.NoLimit},
		Running: int(v.Depth(j.Queue).Leases),
	}
	if s.Queue, err = QueueOf(v, j.Queue); err != nil {
		return s, err
	}
	if s.QueueThrottle, err = throttleOf(v, j.Queue, ""); err != nil || j.Group == "" {
		return s, err
	}
	if s.Gate, err = GateOf(v, j.Queue, j.Group); err != nil {
		return s, err
	}
	if s.Gate == nil {
		s.Gate = &job.Gate{Queue: j.Queue, Group: j.Group}
	}
	if s.GroupThrottle, err = throttleOf(v, j.Queue, j.Group); err != nil {
		return s, err
	}
	d := v.GroupDepth(j.Queue, j.Group)
	s.Head, s.GroupLive = &job.Job{ID: d.Head}, d.Leases
	if d.Blockers > 0 {
		s.Blocker = &job.Job{}
	}
	return s, nil
}

func throttleOf(v store.Reader, queue, group string) (*job.Throttle, error) {
	row, err := v.Row(job.Throttles, job.GateKey(queue, group))
	t, _ := row.(*job.Throttle)
	return t, err
}

// allowances adds what changes from moment to moment: the room under the rates
// and the retry budget of the queue, and the units of the job's own budgets.
func (r *Tx) allowances(s *rule.Situation) error {
	s.Moment = r.Moment()
	return r.e.parts.allow(r, s)
}

// allowed reports whether allowances can say anything of the job.
func allowed(s *rule.Situation) bool {
	p := &s.Queue.Protection
	return s.Job.Budgets() != nil || p.Rate.Limited() || p.Budget != nil
}

// saturated reports whether as many jobs run as the server allows.
func (e *Engine) saturated() bool {
	return e.opts.InFlightMax > 0 && e.Figures().Leases >= e.opts.InFlightMax
}

// crew is who could run the jobs of a class of a queue (rule.Situation).
type crew struct{ workers, fitting, free int }

type crewKey struct {
	queue string
	class rule.Class
}

// crowded adds what the server's own limit has against a job; crews are those
// that were counted before.
func (r *Tx) crowded(s *rule.Situation, crews map[crewKey]crew) error {
	s.InFlight, s.InFlightMax = r.c.leases+r.leases, r.e.opts.InFlightMax
	key := crewKey{s.Job.Queue, rule.EntriesOf(s.Job).Class}
	c, known := crews[key]
	if !known {
		if err := r.crew(s); err != nil {
			return err
		}
		c = crew{s.Workers, s.Fitting, s.Free}
		crews[key] = c
	}
	s.Workers, s.Fitting, s.Free = c.workers, c.fitting, c.free
	return nil
}

// obstaclesMost is how many jobs are looked at in one transaction, or under one
// view of the store.
const obstaclesMost = 500

// Obstacles finds out of each ready job of a list that is in line what Explain
// tells first, and notes it in Listed.Is; that nobody can run it now, or that others stand before
// it, is InLine. It asks the store only, at a cost of a few looks into memory, and
// of the committer no more than what it alone knows: allowances of queues with a
// rate or a retry budget, and of jobs with budgets; who is connected, while as
// many jobs run as the server allows.
func (e *Engine) Obstacles(ctx context.Context, list []Listed) error {
	for len(list) > 0 {
		n := min(len(list), obstaclesMost)
		if err := e.obstacles(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (e *Engine) obstacles(ctx context.Context, list []Listed) error {
	saturated := e.saturated()
	var asked []int // those that the committer knows more of
	err := e.View(ctx, func(v store.Reader) error {
		asked = asked[:0]
		for i := range list {
			j := list[i].Job
			if list[i].Is = rule.InLine; j.State != job.Ready || j.Park != "" { // that says it
				continue
			}
			s, err := situationOf(v, j)
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
	found := make([]rule.Obstacle, len(asked))
	err = e.Do(ctx, 0, func(r *Tx) error {
		crews := map[crewKey]crew{}
		for k, i := range asked {
			s, err := situationOf(r.tx, list[i].Job)
			if err == nil {
				err = r.allowances(&s)
			}
			if err == nil && saturated {
				err = r.crowded(&s, crews)
			}
			if err != nil {
				return err
			}
			found[k] = obstacleOf(s)
		}
		return nil
	})
	if err != nil { // found may still be written to
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
