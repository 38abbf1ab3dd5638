package grid

import (
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// sight is the room that knows which engine may run a task now, and why another may not.
// Serving, copies, pre-emption, explanations and stalls all ask it. How many engines a
// session may exclude is another question, of all that could ever run its tasks (exclude).
type sight struct{ *Grid }

// bar is what keeps an engine from running a task of a session: the one that lasts
// longest, so that what stands before another is sooner over.
type bar uint8

const (
	mayRun   bar = iota
	busy         // it has what it may have at once
	away         // it has no stream and does not ask
	resting      // it must stop a run first, or is taken for a black hole
	draining     // it gets nothing more
	hasIt        // it, or its host, runs the task
	excluded     // by the session
	unfit        // by a condition or the tag of the task
	unserved     // its stream is for other sessions
	lost
)

// of is what keeps an engine from tasks of a session, whichever they are.
func (g *sight) of(tx *engine.Tx, h *job.Holder, s *job.Session) (bar, error) {
	stream := tx.Holder(h.Name)
	switch m := h.Engine; {
	case m.Lost:
		return lost, nil
	case stream != nil && !serves(stream.Opts.Queues, s.Name):
		return unserved, nil
	case plan.Excluded(s.Strikes, h.Name[len(enginePrefix):]):
		return excluded, nil
	case m.Draining:
		return draining, nil
	case !fit(h):
		return resting, nil
	case stream == nil && !m.Polls:
		return away, nil
	}
	if room, err := g.sight.room(tx, h); room <= 0 || err != nil {
		return busy, err
	}
	return mayRun, nil
}

// takes is of for an engine that asks and has room, quickly: it is asked for each slot.
func (g *sight) takes(tx *engine.Tx, h *engine.Holder, session string) (bool, error) {
	if !serves(h.Opts.Queues, session) {
		return false, nil
	}
	out, err := g.exclusions.excluded(tx, session, h.Name)
	return !out && err == nil, err
}

// ofTask is what keeps an engine from a task of a session.
func (g *sight) ofTask(tx *engine.Tx, h *job.Holder, s *job.Session, j *job.Job) (bar, error) {
	is, err := g.sight.of(tx, h, s)
	if err != nil {
		return is, err
	}
	if !rule.Fits(rule.EntriesOf(j).Class, j.Requires, seeker(h)) {
		is = max(is, unfit)
	}
	if j.HeldBy(h.Name) || j.RunsOn(h.Engine.Host) {
		is = max(is, hasIt)
	}
	return is, nil
}

// seeker is how an engine looks for tasks: each of its slots is alone.
func seeker(h *job.Holder) rule.Seeker {
	return rule.Seeker{Holder: h.Name, Properties: h.Properties, Engine: true, Host: h.Engine.Host}
}

// room is how many tasks more an engine takes now. It is below nothing where the engine
// has fewer slots than it had: then the end of a run frees none.
func (g *sight) room(tx *engine.Tx, h *job.Holder) (int, error) {
	if stream := tx.Holder(h.Name); stream != nil {
		return tx.RoomFor(stream), nil
	}
	ids, err := tx.Store().IDs(store.Held(h.Name), store.All)
	return min(slotsOf(h)-len(ids), plan.HealthAdmits(h.Engine.Health, len(ids))), err
}

// serves reports whether a stream for these sessions, none = all, is for a session.
func serves(sessions []string, name string) bool {
	return len(sessions) == 0 || slices.Contains(sessions, name)
}

// engines tells how many engines work for the session of a task, how many of them may
// run it, and how many of those could begin now.
func (g *sight) engines(tx *engine.Tx, s *rule.Situation) error {
	session, err := g.sessions.find(tx, s.Job.Queue)
	if err != nil {
		return err
	}
	return g.fleet.each(tx, func(h *job.Holder) error {
		is, err := g.sight.ofTask(tx, h, session, s.Job)
		if is >= unserved || err != nil {
			return err
		}
		s.Workers++
		s.Excluded += oneIf(is == excluded)
		s.Fitting += oneIf(is < excluded)
		s.Free += oneIf(is == mayRun)
		return nil
	})
}

// canRun reports whether an engine may run a task now, or when it has room again.
func (g *sight) canRun(tx *engine.Tx, s *job.Session, j *job.Job) (can bool, err error) {
	err = g.fleet.each(tx, func(h *job.Holder) error {
		if can {
			return nil
		}
		is, err := g.sight.ofTask(tx, h, s, j)
		can = is <= away
		return err
	})
	return can && err == nil, err
}

// slots is how many slots those engines have that may run tasks of a session now, or when
// they have room again: at most so many.
func (g *sight) slots(tx *engine.Tx, s *job.Session, most int) (n int, err error) {
	err = g.fleet.each(tx, func(h *job.Holder) error {
		if n >= most {
			return nil
		}
		is, err := g.sight.of(tx, h, s)
		if is <= away {
			n += slotsOf(h)
		}
		return err
	})
	return min(n, most), err
}

// stalled reports whether a session has tasks in line, none that runs, and no
// engine that may run any of them: nothing will happen until one comes.
func (g *sight) stalled(tx *engine.Tx, s *job.Session, q *job.Queue, d store.Depth) (bool, error) {
	if d.Wanting == 0 || d.Leases > 0 || !q.Grid.Served() || s.State.Ended() {
		return false, nil
	}
	asked, found := map[string]bool{}, false // equal engines find the same
	err := g.fleet.each(tx, func(h *job.Holder) error {
		if is, err := g.sight.of(tx, h, s); found || is >= draining || err != nil {
			return err
		}
		key := engine.NewHolder(job.Named, h.Name, engine.StreamOptions{Properties: h.Properties}).Key
		if s.Tags > 0 {
			key += h.Name
		}
		if asked[key] {
			return nil
		}
		asked[key] = true
		list, err := tx.Store().Ready([]string{s.Name}, seeker(h), 1)
		found = len(list) > 0
		return err
	})
	return !found && err == nil, err
}
