package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Where a task runs next that failed, or was not begun in time (reference section
// 6: a task excludes the engine, softly). Nothing waits for that: a machine that is
// about to get the task hands it on to one that is free at this moment, or keeps it.

// elsewhere is the machine that a task is given to which h may have: of those with
// room the one that is the most willing (rule.Reluctance), and h among equals.
func (r *Tx) elsewhere(h *holder, j *job.Job) (*holder, error) {
	q, err := r.Queue(j.Queue)
	if err != nil || !q.Grid.RetryElsewhere && !rule.Undelivered(j) {
		return h, err
	}
	to, least := h, rule.Reluctance(j, h.name, h.host)
	for _, m := range r.roomy() {
		if least == 0 {
			break
		}
		if m == h || r.roomFor(m) <= 0 || !r.mayRun(m, j) {
			continue
		}
		n := rule.Reluctance(j, m.name, m.host)
		if n >= least {
			continue
		}
		out, err := r.excluded(j.Queue, m.name)
		if err != nil {
			return nil, err
		}
		if !out {
			to, least = m, n
		}
	}
	return to, nil
}

// mayRun reports whether a machine may run a task, be it excluded.
func (r *Tx) mayRun(m *holder, j *job.Job) bool {
	return serves(m.opts.Queues, j.Queue) && !j.HeldBy(m.name) && !j.RunsOn(m.host) &&
		rule.Fits(rule.EntriesOf(j).Class, j.Requires, rule.Seeker{Holder: m.name, Properties: m.opts.Properties})
}

// roomy are the machines that had room when they were first asked for in this
// run: what is given out makes none.
func (r *Tx) roomy() []*holder {
	if r.rooms == nil {
		r.rooms = []*holder{}
		for _, m := range r.serving {
			if m.machine && r.roomFor(m) > 0 {
				r.rooms = append(r.rooms, m)
			}
		}
	}
	return r.rooms
}
