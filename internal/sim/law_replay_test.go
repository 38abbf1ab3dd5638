package sim_test

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// stride is what a run through the dead set did in the commit at hand.
type stride struct {
	n     int64
	last  job.ID // it touched
	fuzzy bool   // somebody else may have done some of it
}

// chosen reports whether a run means a dead job: it selects it, and it was dead
// when the run began; a cancelled one only where its reason is named. Histories select by
// queue only.
func chosen(p *job.Replay, j *job.Job) bool {
	return j.State == job.Dead && j.Reason != job.ReasonCancelled && j.DiedAt <= p.Created && (len(p.Select.Queues) == 0 || slices.Contains(p.Select.Queues, j.Queue))
}

// runs returns what runs through the dead set, as written.
func (x *judge) runs() (list []*job.Replay) {
	for key, row := range x.book.rows {
		if p, ok := row.(*job.Replay); ok && key.table == job.Replays && p.Progress == job.Running {
			list = append(list, p)
		}
	}
	return list
}

// run is what a run makes of a dead job (retry.md 3): each once, by id.
func (s *scene) run() (list []*outcome) {
	for _, p := range s.runs() {
		past := s.strides[p.ID]
		if !chosen(p, s.old) || !p.Cursor.Before(s.old.ID) || past != nil && !past.last.Before(s.old.ID) {
			continue
		}
		o := &outcome{why: "run " + p.ID.String(), verb: rule.Purge, run: p.ID, gate: s.unparked()}
		if p.Action == job.ActionReplay {
			o.verb = rule.Revive
			if p.MaxReplays > 0 && s.old.Replays >= p.MaxReplays {
				continue
			}
			c := rule.Command{Place: p.Place, Allow: p.Allow}
			if s.old.Group != "" && s.old.Order != job.OrderNone {
				c.Place = job.PlaceKeep
			}
			if !s.revived(o, s.old.Clone(), &request{command: c}) {
				continue
			}
			o.state = job.Ready
		}
		o.note(p.Action.String() + " by a run")
		list = append(list, o)
	}
	return list
}

// credit books a write for the run that may have done it. others are the other
// reasons that would have made the same of the job.
func (x *judge) credit(s *scene, o *outcome, others []*outcome) {
	note := func(id job.ID, sure bool) {
		if id.IsZero() {
			return
		}
		if x.strides[id] == nil {
			x.strides[id] = &stride{}
		}
		p := x.strides[id]
		if sure {
			p.n, p.last = p.n+1, s.old.ID
		} else {
			p.fuzzy = true
		}
	}
	note(o.run, true)
	for _, other := range others {
		if other.run != o.run && apart(plain(other.want), plain(s.new)) == "" {
			note(other.run, false)
			if p := x.strides[o.run]; p != nil {
				p.fuzzy = true
			}
		}
	}
}

// replayed holds the row of a run against what it did.
func (x *judge) replayed(c *commit, old, row *job.Replay) {
	switch {
	case old == nil:
		for _, r := range x.asked {
			if r.kind == askRun && r.commit == 0 && !r.lost && row.Rate == r.run.Rate && row.Action == r.run.Action &&
				row.MaxReplays == r.run.MaxReplays && slices.Equal(row.Select.Queues, r.run.Select.Queues) {
				r.commit, r.id = c.number, row.ID
				return
			}
		}
		broken("I1", "run %s began and nobody asked for it", row.ID)
	case row == nil:
		if old.Progress == job.Running {
			broken("I1", "run %s was forgotten, and runs", old.ID)
		}
	default:
		x.strode(c, old, row)
	}
}

// strode is one step of a run.
func (x *judge) strode(c *commit, old, row *job.Replay) {
	did := x.strides[row.ID]
	delete(x.strides, row.ID)
	if did == nil {
		did = &stride{}
	}
	switch moved := row.Done - old.Done; {
	case moved != did.n && !did.fuzzy:
		broken("retry.md 3", "run %s says that it did %d and did %d", row.ID, moved, did.n)
	case row.Cursor.Before(old.Cursor), did.n > 0 && row.Cursor.Before(did.last):
		broken("retry.md 3", "run %s stands at %s, where it was before: at %s, and touched %s", row.ID, row.Cursor, old.Cursor, did.last)
	}
	for _, j := range x.book.sorted() {
		behind := old.Cursor.Before(j.ID) && !row.Cursor.Before(j.ID)
		ahead := row.Progress == job.Finished && row.Cursor.Before(j.ID)
		visible := j.PurgeAt == 0 || j.PurgeAt > c.now
		if !chosen(row, j) || !visible || !behind && !ahead {
			continue
		}
		guarded := row.MaxReplays > 0 && j.Replays >= row.MaxReplays
		g := x.book.gate(j.Queue, j.Group)
		refused := j.Order == job.OrderStrict && !j.BlocksGroup && !row.Allow && g.Park != "dead/"+j.ID.String()
		taken := x.otherOwner(j) != nil
		if row.Action == job.ActionDelete || !guarded && !refused && !taken {
			broken("retry.md 3", "run %s went past %s, which is dead", row.ID, x.name(j.ID))
		}
	}
	if row.Progress == job.Cancelled {
		for _, r := range x.asked {
			if r.kind == askCancel && r.id == row.ID && r.commit == 0 && !r.lost {
				r.commit = c.number
				return
			}
		}
		broken("I1", "run %s was cancelled and nobody asked for it", row.ID)
	}
	if row.Progress == job.Finished {
		x.coverage.feature("a run finished")
	}
}
