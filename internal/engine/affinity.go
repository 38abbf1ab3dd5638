package engine

import (
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Task affinity: tasks with a tag go to engines that ran the tag before (grid.md
// 9). The rules are those of rule/affinity.go; what is known of a tag is a row. A
// session without tags pays for none of it.

// affinityTag is what a session knows of a tag.
func (r *Tx) affinityTag(session, tag string) (*job.AffinityTag, error) {
	row, err := r.tx.Row(job.Affinities, job.GateKey(session, tag))
	t, _ := row.(*job.AffinityTag)
	return t, err
}

// admitTags refuses tasks with more tags than a session may have, before anything
// is written.
func (r *Tx) admitTags(list []NewJob, out []Added) error {
	var fresh map[string]map[string]bool // by session
	for i := range list {
		a := list[i].Job.Affinity()
		if a == nil || out[i].Duplicate {
			continue
		}
		session := list[i].Job.Queue
		if known, err := r.affinityTag(session, a.Tag); known != nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		s, err := r.aSession(session)
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
func (r *Tx) follow(j *job.Job) error {
	q, err := r.Queue(j.Queue)
	if err != nil {
		return err
	}
	t, err := r.affinityTag(j.Queue, j.Affinity().Tag)
	switch {
	case err != nil:
		return err
	case t == nil:
		if err := r.newTag(j.Queue); err != nil {
			return err
		}
		t = &job.AffinityTag{Session: j.Queue, Tag: j.Affinity().Tag}
	case !t.Head.IsZero() && t.Head != j.ID && q.Grid.AffinityWait > 0:
		return r.Park(j, rule.AffinityPark(j.Queue, t.Tag))
	}
	return r.lead(q, t, j)
}

// newTag counts one more tag of a session.
func (r *Tx) newTag(session string) error {
	known, err := r.aSession(session)
	if err != nil {
		return err
	}
	s := *known
	s.Tags++
	r.changeSession(&s)
	t, err := r.roster()
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
func (r *Tx) lead(q *job.Queue, known *job.AffinityTag, j *job.Job) error {
	t := *known
	t.Head, t.Until = job.ID{}, 0
	if wait := q.Grid.AffinityWait; wait > 0 {
		t.Head, t.Until = j.ID, r.steady.Add(wait)
	}
	if err := r.keepHead(&t, j); err != nil || !t.Head.IsZero() {
		return err
	}
	return r.nextOfTag(&t) // tags are not looked at any more: nobody stands aside
}

// keepHead keeps the next task of a tag for the engines that ran the tag, and
// writes what is known of that.
func (r *Tx) keepHead(t *job.AffinityTag, j *job.Job) (bad error) {
	var keep []string
	if t.Head == j.ID {
		keep = rule.AffinityFor(t.Engines, func(name string) bool {
			h, err := r.machineRow(name)
			if err != nil {
				bad = err
			}
			return slotsOf(h) > 0
		})
	}
	if bad != nil {
		return bad
	}
	if err := r.tx.Set(t); err != nil {
		return err
	}
	return r.keepFor(j, keep)
}

// keepFor has a task stand in line for these engines only; none = for anyone.
func (r *Tx) keepFor(j *job.Job, engines []string) error {
	a := j.Affinity()
	if j.Park == "" && slices.Equal(engines, a.For) {
		return nil
	}
	r.woken[j.Queue], r.fed = true, true
	clear(r.offers)
	_, err := r.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) {
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
func (r *Tx) followed(old, j *job.Job) error {
	if j.State != job.Leased || len(j.Leases) <= len(old.Leases) {
		r.strayed = append(r.strayed, strayed{
			j.Queue, old.Affinity().Tag, j.ID, old.State == job.Dead && j.State == job.Ready && j.Deliveries == 0,
		})
		return nil
	}
	known, err := r.affinityTag(j.Queue, old.Affinity().Tag)
	if err != nil || known == nil {
		return err
	}
	t := *known
	t.Engines = rule.AffinityRan(t.Engines, j.Leases[len(j.Leases)-1].Holder)
	switch {
	case t.Head == j.ID:
		return r.nextOfTag(&t)
	case slices.Equal(t.Engines, known.Engines):
		return nil
	case t.Head.IsZero():
		return r.tx.Set(&t)
	}
	head, err := r.tx.Get(t.Head)
	if err != nil || head == nil {
		return err
	}
	return r.keepHead(&t, head) // one more engine may take it
}

// keepTags has the next tasks of tags follow those that strayed.
func (r *Tx) keepTags() error {
	for len(r.strayed) > 0 {
		s := r.strayed[0]
		r.strayed = r.strayed[1:]
		j, err := r.tx.Get(s.id)
		if err != nil {
			return err
		}
		waits := j != nil && j.State == job.Ready && j.Park == ""
		if s.back && waits {
			if err := r.follow(j); err != nil {
				return err
			}
			continue
		}
		t, err := r.affinityTag(s.session, s.tag)
		if err == nil && t != nil && t.Head == s.id && !waits {
			next := *t
			err = r.nextOfTag(&next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nextOfTag makes the foremost of those that stand aside the next of their tag.
func (r *Tx) nextOfTag(t *job.AffinityTag) error {
	ids, err := r.tx.Parked(rule.AffinityPark(t.Session, t.Tag), 1)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		t.Head, t.Until = job.ID{}, 0
		return r.tx.Set(t)
	}
	q, err := r.Queue(t.Session)
	if err != nil {
		return err
	}
	j, err := r.tx.Get(ids[0])
	if err != nil {
		return err
	}
	return r.lead(q, t, j)
}

// endAffinity lets anyone take the next task of a tag, whose wait is over, and
// the one behind it be the next.
func (r *Tx) endAffinity(known *job.AffinityTag) error {
	j, err := r.tx.Get(known.Head)
	if err != nil {
		return err
	}
	t := *known
	t.Head = job.ID{}
	if err := r.nextOfTag(&t); err != nil || j == nil || j.State != job.Ready || j.Park != "" {
		return err
	}
	return r.keepFor(j, nil)
}

// restartAffinities begins the waits anew: the steady clock of this start is
// another one, and engines must come back first.
func (r *Tx) restartAffinities() error {
	for after := ""; ; {
		rows, err := r.tx.Rows(job.Affinities, after, tickMax)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			t := *row.(*job.AffinityTag)
			if after = t.Key(); t.Until == 0 {
				continue
			}
			q, err := r.Queue(t.Session)
			if err != nil {
				return err
			}
			if t.Until = r.steady.Add(1); q.Grid != nil {
				t.Until = r.steady.Add(max(1, q.Grid.AffinityWait))
			}
			if err := r.tx.Set(&t); err != nil {
				return err
			}
		}
	}
}

// forgetTags forgets what a session knew of its tags.
func (r *Tx) forgetTags(session string) (err error) {
	var keys []string
	if err := r.OfQueue(job.Affinities, session, func(row job.Row) { keys = append(keys, row.Key()) }); err != nil {
		return err
	}
	for _, key := range keys {
		if err == nil {
			err = r.tx.Unset(job.Affinities, key)
		}
	}
	return err
}

// tagSituation tells how a task stands to the others of its tag.
func (r *Tx) tagSituation(s *rule.Situation) (err error) {
	if s.Tag, err = r.affinityTag(s.Job.Queue, s.Job.Affinity().Tag); s.Tag != nil && err == nil {
		s.TagHead, err = r.tx.Get(s.Tag.Head)
	}
	return err
}
