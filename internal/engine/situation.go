package engine

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// SessionShare is a session's part of the slots.
type SessionShare struct {
	Queue  string
	Target int // slots it should have
	Actual int // that it has
}

// Remarks are what parts tell of a job beside its situation.
type Remarks struct {
	Share  *SessionShare // of the session of a task that is in line; nil = it is none
	Avoids []string      // hosts on which the task failed, and does not run next if another one is free then
}

// membersMax bounds the members of a group that are looked at for one of them.
const membersMax = 1000

// SituationOf is what the store knows of all that may keep a job from running.
// What is missing is known to the committer: allowances, and who could run it.
// Of a group it tells that there is a head and a blocker, by what their ids are.
func SituationOf(v store.Reader, j *job.Job) (s rule.Situation, err error) {
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
	return store.Row[*job.Throttle](v, job.GateKey(queue, group))
}

// Situation looks at everything that may keep a job from running, with what parts tell
// beside it.
func (r *Tx) Situation(j *job.Job) (s rule.Situation, told Remarks, err error) {
	s, err = SituationOf(r.tx, j)
	if err == nil {
		err = r.Allowances(&s)
	}
	if err == nil && s.Gate != nil {
		err = r.inFront(&s)
	}
	if err == nil {
		err = r.e.parts.explain(r, &s, &told)
	}
	if err == nil {
		err = r.Crew(&s)
	}
	return s, told, err
}

// Allowances adds what changes from moment to moment: the room under the rates
// and the retry budget of the queue, and the units of the job's own budgets.
func (r *Tx) Allowances(s *rule.Situation) error {
	s.Moment = r.Moment()
	return r.e.parts.allow(r, s)
}

// inFront finds out who stands in front of a job in its group.
func (r *Tx) inFront(s *rule.Situation) error {
	n := 1
	if s.Blocker != nil {
		n = membersMax
	}
	ids, err := r.tx.IDs(store.Members(s.Job.Queue, s.Job.Group), n)
	if err != nil {
		return err
	}
	for i, id := range ids {
		m, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if i == 0 {
			s.Head = m
		}
		if m.BlocksGroup {
			s.Blocker = m
			break
		}
	}
	return nil
}

// Crew counts who could run a job.
func (r *Tx) Crew(s *rule.Situation) error {
	s.InFlight, s.InFlightMax = r.c.leases+r.leases, r.e.opts.InFlightMax
	if counted, err := r.e.parts.crew(r, s); counted || err != nil {
		return err
	}
	r.workers(s)
	return nil
}

// workers counts who could run a job that no part counts for.
func (r *Tx) workers(s *rule.Situation) {
	class := rule.EntriesOf(s.Job).Class
	for _, h := range slices.Concat(slices.Collect(r.c.hungry.all()), inOrder(r.joined), r.asking) {
		if h.gone || r.left[h] || !h.worksFor(s.Job.Queue) {
			continue
		}
		s.Workers++
		if !rule.Fits(class, s.Job.Requires, rule.Seeker{Holder: h.Name, Properties: h.Opts.Properties}) {
			continue
		}
		s.Fitting++
		busy := rule.Seeker{Holder: h.Name, Held: h.held + r.held[h], HasIsolated: h.alone+r.alone[h] > 0, Properties: h.Opts.Properties}
		if r.RoomFor(h) > 0 && rule.Fits(class, s.Job.Requires, busy) {
			s.Free++
		}
	}
}

// worksFor reports whether the holder is a worker of a queue.
func (h *Holder) worksFor(queue string) bool {
	if len(h.Opts.Queues) == 0 {
		return h.Feeder == nil
	}
	return slices.Contains(h.Opts.Queues, queue)
}
