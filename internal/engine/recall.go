package engine

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// turnsSettled are groups of which members of a turn were settled in one call, and
// which entry did it last: that one is told what went back. Mostly there is none, or
// one.
type turnsSettled []turnSettled

type turnSettled struct {
	queue, group string
	entry        int
}

func (t *turnsSettled) note(j *job.Job, entry int) {
	for i := range *t {
		if s := &(*t)[i]; s.queue == j.Queue && s.group == j.Group {
			s.entry = entry
			return
		}
	}
	*t = append(*t, turnSettled{j.Queue, j.Group, entry})
}

// recall lets turns go on, or not, once all is settled that one call tells of: what
// it reports has happened, whatever was paused meanwhile.
func (r *settling) recall(turns turnsSettled, out []Verdict) error {
	for _, t := range turns {
		r.cut = nil
		if err := r.recallTurn(t.queue, t.group); err != nil {
			return err
		}
		out[t.entry].Recalled = append(out[t.entry].Recalled, r.cut...)
	}
	return nil
}

func (r *settling) recallTurn(queue, group string) error {
	for {
		first, err := r.tx.IDs(store.Running(queue, group), 1)
		if err != nil || len(first) == 0 {
			return err
		}
		next, err := r.tx.Get(first[0])
		if err != nil {
			return err
		}
		q, err := r.Queue(queue)
		if err != nil {
			return err
		}
		g, err := r.Gate(queue, group)
		if err != nil || !rule.Recalls(q, g, next, r.now, r.steady >= r.watch.guard) {
			return err
		}
		own := len(r.cut)
		if _, err := r.Step(next, rule.Command{Verb: rule.Lapse, Holder: next.Leases[0].Holder, Ending: job.ByTurn}); err != nil {
			return err
		}
		r.cut = slices.Insert(r.cut, own, next.ID) // before those that it took along
	}
}

// cutTurn sends back the members of a turn that are behind one whose lease ended.
func (r *settling) cutTurn(j *job.Job) error {
	ids, err := r.tx.IDs(store.Running(j.Queue, j.Group), rule.TurnMax)
	if err != nil {
		return err
	}
	at := rule.EntriesOf(j).Inner
	for _, id := range ids {
		m, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if !at.Before(rule.EntriesOf(m).Inner) {
			continue
		}
		v, err := r.view(m, m.Queue, m.Group)
		if err != nil {
			return err
		}
		c := rule.Command{Verb: rule.Lapse, Holder: m.Leases[0].Holder, Ending: job.ByTurn}
		eff, err := rule.Step(v, c)
		if err != nil {
			return err
		}
		if err := r.write(m, eff); err != nil {
			return err
		}
		if err := r.e.parts.stepped(r.Tx, &c, m, &eff); err != nil {
			return err
		}
		r.cut = append(r.cut, id)
	}
	return nil
}
