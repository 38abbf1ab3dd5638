package grid

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
)

// Where a task runs next that failed, or was not begun in time (reference section
// 6: a task excludes the engine, softly). Nothing waits for that: an engine that is
// about to get the task hands it on to one that is free at this moment, or keeps it.

// elsewhere chooses the engine for a task that h may have: of those with
// room the one that is the most willing (plan.Reluctance), and h among equals.
func (g *feed) elsewhere(tx *engine.Tx, h *engine.Holder, j *job.Job) (*engine.Holder, error) {
	q, err := tx.Queue(j.Queue)
	if err != nil || !q.Grid.RetryElsewhere && !plan.Undelivered(j) {
		return h, err
	}
	s, err := g.sessions.find(tx, j.Queue)
	if err != nil {
		return nil, err
	}
	to, least := h, plan.Reluctance(j, h.Name, feederOf(h).host)
	for _, m := range g.feed.roomy(tx) {
		if least == 0 {
			break
		}
		n := plan.Reluctance(j, m.Name, feederOf(m).host)
		if m == h || n >= least {
			continue
		}
		row, err := g.fleet.row(tx, m.Name)
		if err != nil {
			return nil, err
		}
		is, err := g.sight.ofTask(tx, row, s, j)
		if err != nil {
			return nil, err
		}
		if is == mayRun {
			to, least = m, n
		}
	}
	return to, nil
}

// roomy are the engines that had room when they were first asked for in this
// run: what is given out makes none.
func (g *feed) roomy(tx *engine.Tx) []*engine.Holder {
	serving, round := tx.Serving()
	if g.feed.round != round {
		g.feed.round, g.feed.roomyNow = round, nil
		for _, m := range serving {
			if feederOf(m) != nil && tx.RoomFor(m) > 0 {
				g.feed.roomyNow = append(g.feed.roomyNow, m)
			}
		}
	}
	return g.feed.roomyNow
}
