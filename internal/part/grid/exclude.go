package grid

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Engines that get no more tasks of a session, or none at all, because tasks
// fail there, and tasks that fail wherever they run (grid.md 9).

// health is the room of engines that fail everything.
type health struct{ *Grid }

// exclusions is the room of engines on which tasks of a session fail.
type exclusions struct{ *Grid }

// excluded reports whether a session gives an engine nothing.
func (g *exclusions) excluded(tx *engine.Tx, session, holder string) (bool, error) {
	q, err := tx.Queue(session)
	if err != nil || q.Grid == nil || q.Grid.Exclusion == nil {
		return false, err
	}
	s, err := g.sessions.find(tx, session)
	return err == nil && plan.Excluded(s.Strikes, holder[len(enginePrefix):]), err
}

// judge counts how runs of a task ended against the engines that ran it.
// Several may end at once; the task is judged once.
func (g *exclusions) judge(tx *engine.Tx, q *job.Queue, c *rule.Command, j *job.Job, eff *rule.Effect) error {
	x, holes := q.Grid.Exclusion, g.BlackHoles
	if x == nil && holes == nil || len(eff.Ended) == 0 {
		return nil
	}
	var failed []string
	for _, l := range eff.Ended {
		if !strings.HasPrefix(l.Holder, enginePrefix) {
			continue
		}
		how := eff.HowEnded(c.Verb, &l)
		if holes != nil {
			if err := g.health.judge(tx, holes, j, &l, how); err != nil {
				return err
			}
		}
		if plan.CountsAgainst(how) {
			failed = append(failed, l.Holder[len(enginePrefix):])
		}
	}
	if len(failed) == 0 {
		return nil
	}
	poison := plan.Poison(j)
	if holes != nil && poison {
		if err := g.health.pardon(tx, holes, j); err != nil {
			return err
		}
	}
	if x == nil {
		return nil
	}
	return g.exclusions.strike(tx, x, j, failed, poison && !x.EachFailure)
}

// strike counts a failure against engines, or against the task where that is
// poison: it failed on one host after the other.
func (g *exclusions) strike(tx *engine.Tx, x *job.Exclusion, j *job.Job, engines []string, poison bool) error {
	known, err := g.sessions.find(tx, j.Queue)
	if err != nil {
		return err
	}
	s := *known
	for _, name := range engines {
		s.Strikes = plan.Struck(s.Strikes, x, name, j.ID, tx.Now())
	}
	if poison {
		s.Strikes = plan.PardonStrikes(s.Strikes, x, j.ID)
	}
	if err := g.exclusions.exclude(tx, &s, x); err != nil {
		return err
	}
	g.sessions.change(&s)
	tx.ServeAll() // who was spared goes on
	if !poison || !j.State.Open() {
		return nil
	}
	_, err = tx.Step(j, rule.GiveUp(rule.ByPoison, "it failed on one host after the other"))
	return err
}

// exclude says anew which engines a session excludes.
func (g *exclusions) exclude(tx *engine.Tx, s *job.Session, x *job.Exclusion) error {
	g.stirred = true
	if !slices.ContainsFunc(s.Strikes, func(k job.Strike) bool { return k.Until > 0 }) {
		s.Stalled = false
		return nil // none failed too often
	}
	t, err := g.shares.roster(tx)
	if err != nil {
		return err
	}
	t.excludes(s)
	needs, err := g.exclusions.needs(tx, s)
	if err != nil {
		return err
	}
	all := t.fleet.fit
	able := func(h *job.Holder) bool {
		return fit(h) && slices.ContainsFunc(needs, func(list []job.Requirement) bool {
			return rule.Fits(rule.Class{}, list, rule.Seeker{Properties: h.Properties})
		})
	}
	if !slices.ContainsFunc(needs, func(list []job.Requirement) bool { return len(list) == 0 }) { // not everybody may
		all = 0
		err = g.fleet.each(tx, func(h *job.Holder) error { all += oneIf(able(h)); return nil })
	}
	s.Strikes, s.Stalled = plan.Exclude(s.Strikes, x, all, func(name string) bool {
		if err != nil {
			return false
		}
		var h *job.Holder
		h, err = g.fleet.row(tx, enginePrefix+name)
		return h != nil && able(h)
	}, tx.Now())
	return err
}

// needs are what the tasks require that failed on engines of the list, and
// are kept yet: who meets one of them may run what failed there. Without any, that
// is everybody.
func (g *exclusions) needs(tx *engine.Tx, s *job.Session) (needs [][]job.Requirement, err error) {
	seen := map[string]bool{}
	for i := range s.Strikes {
		if s.Strikes[i].Until == 0 {
			continue
		}
		for _, id := range s.Strikes[i].Tasks {
			j, err := tx.Store().Get(id)
			if err != nil {
				return nil, err
			}
			if j == nil {
				continue
			}
			if key := rule.Canonical(j.Requires); !seen[key] {
				seen[key] = true
				needs = append(needs, j.Requires)
			}
			if len(j.Requires) == 0 {
				return needs, nil
			}
		}
	}
	if needs == nil {
		needs = [][]job.Requirement{nil}
	}
	return needs, nil
}

// anew follows engines that came or went: a session that excludes some
// may have to do with them, or can do without them again.
func (g *exclusions) anew(tx *engine.Tx) error {
	if !g.fleet.regrouped {
		return nil
	}
	g.fleet.regrouped = false
	t, err := g.shares.roster(tx)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(t.excluding) {
		known, err := g.sessions.find(tx, name)
		if err != nil {
			return err
		}
		q, err := tx.Queue(name)
		if err != nil {
			return err
		}
		if q.Grid == nil || q.Grid.Exclusion == nil || known.State.Ended() {
			delete(t.excluding, name)
			continue
		}
		s := *known
		if err := g.exclusions.exclude(tx, &s, q.Grid.Exclusion); err != nil {
			return err
		}
		if s.Stalled != known.Stalled || !slices.EqualFunc(s.Strikes, known.Strikes, func(a, b job.Strike) bool { return a.Out == b.Out && a.Until == b.Until }) {
			g.sessions.change(&s)
			tx.ServeAll()
		}
	}
	return nil
}

// each calls f for every engine.
func (g *fleet) each(tx *engine.Tx, f func(*job.Holder) error) error {
	return store.EachRow(tx.Store(), enginePrefix, func(h *job.Holder) error {
		if h = g.fleet.asItIs(h); h.Engine == nil {
			return nil
		}
		return f(h)
	})
}

// judge tells whether an engine is a black hole by how a run ended there.
func (g *health) judge(tx *engine.Tx, b *job.BlackHoles, j *job.Job, l *job.Lease, how job.Ending) error {
	old, err := g.fleet.row(tx, l.Holder)
	if err != nil || old == nil || old.Engine.Lost {
		return err
	}
	health := old.Engine.Health
	switch {
	case plan.CountsAgainst(how):
		t, err := g.shares.roster(tx)
		if err != nil {
			return err
		}
		health = plan.HealthFailed(health, b, j.ID, tx.Now()-max(l.Since, l.Started), tx.Now(), plan.HealthRoom(b, t.fleet.out, t.fleet.known))
	case how == job.ByOK:
		health = plan.HealthSucceeded(health, health.State == job.HealthProbed)
		if j.Attempts > 0 {
			if err := g.health.succeededElsewhere(tx, b, j, l.Host); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	return g.health.set(tx, old, health)
}

// succeededElsewhere tells those on which a task failed that another engine can.
func (g *health) succeededElsewhere(tx *engine.Tx, b *job.BlackHoles, j *job.Job, host string) error {
	t, err := g.shares.roster(tx)
	if err != nil {
		return err
	}
	room := plan.HealthRoom(b, t.fleet.out, t.fleet.known)
	return g.health.heldAgainst(tx, j, func(h *job.Holder) error {
		if h.Engine.Host == host {
			return nil
		}
		return g.health.set(tx, h, plan.HealthElsewhere(h.Engine.Health, b, j.ID, tx.Now(), room))
	})
}

// pardon takes a task that is poison out of what is held against engines.
func (g *health) pardon(tx *engine.Tx, b *job.BlackHoles, j *job.Job) error {
	return g.health.heldAgainst(tx, j, func(h *job.Holder) error {
		tx.ServeAll()
		return g.health.set(tx, h, plan.HealthPardoned(h.Engine.Health, b, j.ID))
	})
}

// heldAgainst calls f for the engines in whose row of failures a task is: it ran
// there.
func (g *health) heldAgainst(tx *engine.Tx, j *job.Job, f func(*job.Holder) error) error {
	var asked []string
	for _, a := range j.History() {
		if slices.Contains(asked, a.Holder) || !strings.HasPrefix(a.Holder, enginePrefix) {
			continue
		}
		asked = append(asked, a.Holder)
		h, err := g.fleet.row(tx, a.Holder)
		if err == nil && h != nil && plan.HealthHolds(h.Engine.Health, j.ID) {
			err = f(h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *health) set(tx *engine.Tx, old *job.Holder, health job.Health) error {
	if was := old.Engine.Health; was.State == job.HealthWell && health.State == job.HealthWell && len(was.Row)+len(health.Row) == 0 {
		return nil
	}
	row := ownRow(old)
	row.Engine.Health = health
	return g.fleet.set(tx, old, row)
}

// ClearExclusions forgets what a session holds against an engine, or against all
// if it is "".
func (g *Grid) ClearExclusions(ctx context.Context, session, name string, by job.Actor) (SessionState, error) {
	return g.sessions.ask(ctx, func(tx *engine.Tx) (*job.Session, error) {
		known, err := g.sessions.live(tx, session)
		if err != nil {
			return nil, err
		}
		q, err := tx.Queue(session)
		if err != nil {
			return nil, err
		}
		s := *known
		if s.Strikes = plan.ClearStrikes(s.Strikes, name); name != "" && len(s.Strikes) == len(known.Strikes) {
			if row, err := g.fleet.row(tx, enginePrefix+name); err != nil || row == nil {
				return nil, cmp.Or(err, error(&job.Error{Kind: job.NotFound, Field: "engine", Text: fmt.Sprintf("engine %q is not known", name)}))
			}
		}
		if x := q.Grid.Exclusion; x != nil {
			if err := g.exclusions.exclude(tx, &s, x); err != nil {
				return nil, err
			}
		}
		tx.ServeAll()
		g.sessions.change(&s)
		return &s, tx.Audit(by, "clear exclusions", subjectSession(session), 0)
	})
}
