package grid

import (
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Task affinity: tasks with a tag go to engines that ran the tag before (grid.md
// 9). The rules are those of rule/affinity.go; what is known of a tag is a row. A
// session without tags pays for none of it.

// tags is the room of the tags of tasks.
type tags struct {
	*Grid
	strayed []strayed
}

// find is what a session knows of a tag.
func (g *tags) find(tx *engine.Tx, session, tag string) (*job.AffinityTag, error) {
	return store.Row[*job.AffinityTag](tx.Store(), job.GateKey(session, tag))
}

// admit refuses tasks with more tags than a session may have, before anything
// is written.
func (g *tags) admit(tx *engine.Tx, list []engine.NewJob, out []engine.Added) error {
	var fresh map[string]map[string]bool // by session
	for i := range list {
		a := list[i].Job.Affinity()
		if a == nil || out[i].Duplicate {
			continue
		}
		session := list[i].Job.Queue
		if known, err := g.tags.find(tx, session, a.Tag); known != nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		s, err := g.sessions.find(tx, session)
		if err != nil {
			return err
		}
		if fresh == nil {
			fresh = map[string]map[string]bool{}
		}
		if fresh[session] == nil {
			fresh[session] = map[string]bool{}
		}
		if fresh[session][a.Tag] = true; s.Tags+len(fresh[session]) > job.AffinityTagsMax {
			return &job.Error{
				Kind: job.OverLimit, Field: "affinity",
				Text: fmt.Sprintf("session %q would have more than %d affinity tags; use fewer, or another session", session, job.AffinityTagsMax),
			}
		}
	}
	return nil
}

// follow puts a task with a tag where it belongs: into line if it is the next of
// its tag, else aside.
func (g *tags) follow(tx *engine.Tx, j *job.Job) error {
	q, err := tx.Queue(j.Queue)
	if err != nil {
		return err
	}
	t, err := g.tags.find(tx, j.Queue, j.Affinity().Tag)
	switch {
	case err != nil:
		return err
	case t == nil:
		if err := g.tags.add(tx, j.Queue); err != nil {
			return err
		}
		t = &job.AffinityTag{Session: j.Queue, Tag: j.Affinity().Tag}
	case !t.Head.IsZero() && t.Head != j.ID && q.Grid.AffinityWait > 0:
		return tx.Park(j, rule.AffinityPark(j.Queue, t.Tag))
	}
	return g.tags.lead(tx, q, t, j)
}

// add counts one more tag of a session.
func (g *tags) add(tx *engine.Tx, session string) error {
	s, err := g.sessions.own(tx, session)
	if err != nil {
		return err
	}
	s.Tags++
	t, err := g.shares.roster(tx)
	if err != nil {
		return err
	}
	t.tag(session)
	return nil
}

// tag notes that a session has tags, so that engines alike are told apart.
func (t *roster) tag(session string) {
	if t.tagged == nil {
		t.tagged = map[string]bool{}
	}
	t.tagged[session] = true
}

// lead makes a task the next of its tag.
func (g *tags) lead(tx *engine.Tx, q *job.Queue, known *job.AffinityTag, j *job.Job) error {
	t := *known
	t.Head, t.Until = job.ID{}, 0
	if wait := q.Grid.AffinityWait; wait > 0 {
		t.Head, t.Until = j.ID, tx.Steady().Add(wait)
	}
	if err := g.tags.keepHead(tx, &t, j); err != nil || !t.Head.IsZero() {
		return err
	}
	return g.tags.next(tx, &t) // tags are not looked at any more: nobody stands aside
}

// keepHead keeps the next task of a tag for the engines that ran the tag, and
// writes what is known of that.
func (g *tags) keepHead(tx *engine.Tx, t *job.AffinityTag, j *job.Job) (bad error) {
	var keep []string
	if t.Head == j.ID {
		keep = rule.AffinityFor(t.Engines, func(name string) bool {
			h, err := g.fleet.row(tx, name)
			if err != nil {
				bad = err
			}
			return slotsOf(h) > 0
		})
	}
	if bad != nil {
		return bad
	}
	if err := tx.Store().Set(t); err != nil {
		return err
	}
	return g.tags.keepFor(tx, j, keep)
}

// keepFor has a task stand in line for these engines only; none = for anyone.
func (g *tags) keepFor(tx *engine.Tx, j *job.Job, engines []string) error {
	a := j.Affinity()
	if j.Park == "" && slices.Equal(engines, a.For) {
		return nil
	}
	tx.Wake(j.Queue)
	tx.ServeAll()
	clear(g.feed.offers)
	_, err := tx.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) {
		n.Park, n.Extras = "", n.WithAffinity(&job.Affinity{Tag: a.Tag, For: engines})
	}})
	return err
}

// strayed is a task with a tag that changed otherwise than by being taken. What
// that means for those behind it is seen to when the commands of the transaction
// have run: who steps through a list of tasks has read them before.
type strayed struct {
	session, tag string
	id           job.ID
	back         bool // it was brought back before it ever ran
}

// followed is what a step on a task with a tag means for those behind it.
func (g *tags) followed(tx *engine.Tx, old, j *job.Job) error {
	if j.State != job.Leased || len(j.Leases) <= len(old.Leases) {
		g.tags.strayed = append(g.tags.strayed, strayed{
			j.Queue, old.Affinity().Tag, j.ID, old.State == job.Dead && j.State == job.Ready && j.Deliveries == 0,
		})
		return nil
	}
	known, err := g.tags.find(tx, j.Queue, old.Affinity().Tag)
	if err != nil || known == nil {
		return err
	}
	t := *known
	t.Engines = rule.AffinityRan(t.Engines, j.Leases[len(j.Leases)-1].Holder)
	switch {
	case t.Head == j.ID:
		return g.tags.next(tx, &t)
	case slices.Equal(t.Engines, known.Engines):
		return nil
	case t.Head.IsZero():
		return tx.Store().Set(&t)
	}
	head, err := tx.Store().Get(t.Head)
	if err != nil || head == nil {
		return err
	}
	return g.tags.keepHead(tx, &t, head) // one more engine may take it
}

// keep has the next tasks of tags follow those that strayed.
func (g *tags) keep(tx *engine.Tx) error {
	for len(g.tags.strayed) > 0 {
		s := g.tags.strayed[0]
		g.tags.strayed = g.tags.strayed[1:]
		j, err := tx.Store().Get(s.id)
		if err != nil {
			return err
		}
		waits := j != nil && j.State == job.Ready && j.Park == ""
		if s.back && waits {
			if err := g.tags.follow(tx, j); err != nil {
				return err
			}
			continue
		}
		t, err := g.tags.find(tx, s.session, s.tag)
		if err == nil && t != nil && t.Head == s.id && !waits {
			next := *t
			err = g.tags.next(tx, &next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next makes the foremost of those that stand aside the next of their tag.
func (g *tags) next(tx *engine.Tx, t *job.AffinityTag) error {
	ids, err := tx.Store().IDs(store.Parked(rule.AffinityPark(t.Session, t.Tag)), 1)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		t.Head, t.Until = job.ID{}, 0
		return tx.Store().Set(t)
	}
	q, err := tx.Queue(t.Session)
	if err != nil {
		return err
	}
	j, err := tx.Store().Get(ids[0])
	if err != nil {
		return err
	}
	return g.tags.lead(tx, q, t, j)
}

// due ends the wait of the next task of a tag: it lets anyone take that one, and
// the one behind it be the next.
func (g *tags) due(tx *engine.Tx, known *job.AffinityTag) error {
	j, err := tx.Store().Get(known.Head)
	if err != nil {
		return err
	}
	t := *known
	t.Head = job.ID{}
	if err := g.tags.next(tx, &t); err != nil || j == nil || j.State != job.Ready || j.Park != "" {
		return err
	}
	return g.tags.keepFor(tx, j, nil)
}

// recover begins the waits anew: the steady clock of this start is
// another one, and engines must come back first.
func (g *tags) recover(tx *engine.Tx) error {
	return store.EachRow(tx.Store(), "", func(old *job.AffinityTag) error {
		q, err := tx.Queue(old.Session)
		if err != nil || old.Until == 0 {
			return err
		}
		t := *old
		if t.Until = tx.Steady().Add(1); q.Grid != nil {
			t.Until = tx.Steady().Add(max(1, q.Grid.AffinityWait))
		}
		return tx.Store().Set(&t)
	})
}

// forget forgets what a session knew of its tags.
func (g *tags) forget(tx *engine.Tx, session string) error {
	known, err := store.RowsOfQueue[*job.AffinityTag](tx.Store(), session)
	for _, t := range known {
		if err == nil {
			err = tx.Store().Unset(job.Affinities, t.Key())
		}
	}
	return err
}

// explain tells how a task stands to the others of its tag.
func (g *tags) explain(tx *engine.Tx, s *rule.Situation) (err error) {
	if s.Tag, err = g.tags.find(tx, s.Job.Queue, s.Job.Affinity().Tag); s.Tag != nil && err == nil {
		s.TagHead, err = tx.Store().Get(s.Tag.Head)
	}
	return err
}
