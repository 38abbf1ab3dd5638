package grid

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Where a task runs next that failed, or was not begun in time (reference section
// 6: a task excludes the engine, softly). Nothing waits for that: a machine that is
// about to get the task hands it on to one that is free at this moment, or keeps it.

// elsewhere is the machine that a task is given to which h may have: of those with
// room the one that is the most willing (rule.Reluctance), and h among equals.
func (g *feed) elsewhere(tx *engine.Tx, h *engine.Holder, j *job.Job) (*engine.Holder, error) {
	q, err := tx.Queue(j.Queue)
	if err != nil || !q.Grid.RetryElsewhere && !rule.Undelivered(j) {
		return h, err
	}
	to, least := h, rule.Reluctance(j, h.Name, machineOf(h).host)
	for _, m := range g.feed.roomy(tx) {
		if least == 0 {
			break
		}
		if m == h || tx.RoomFor(m) <= 0 || !g.feed.mayRun(tx, m, j) {
			continue
		}
		n := rule.Reluctance(j, m.Name, machineOf(m).host)
		if n >= least {
			continue
		}
		out, err := g.exclusions.excluded(tx, j.Queue, m.Name)
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
func (g *feed) mayRun(tx *engine.Tx, m *engine.Holder, j *job.Job) bool {
	return serves(m.Opts.Queues, j.Queue) && !j.HeldBy(m.Name) && !j.RunsOn(machineOf(m).host) &&
		rule.Fits(rule.EntriesOf(j).Class, j.Requires, rule.Seeker{Holder: m.Name, Properties: m.Opts.Properties})
}

// roomy are the machines that had room when they were first asked for in this
// run: what is given out makes none.
func (g *feed) roomy(tx *engine.Tx) []*engine.Holder {
	serving, round := tx.Serving()
	if g.feed.round != round {
		g.feed.round, g.feed.roomyNow = round, nil
		for _, m := range serving {
			if machineOf(m) != nil && tx.RoomFor(m) > 0 {
				g.feed.roomyNow = append(g.feed.roomyNow, m)
			}
		}
	}
	return g.feed.roomyNow
}
