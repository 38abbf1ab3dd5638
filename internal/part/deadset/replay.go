package deadset

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Bounds of replays.
const (
	replayMost  = 500  // jobs looked at in one step of one replay
	replaysMax  = 1000 // kept, finished ones included; the oldest of these leave for new ones
	runningMax  = 20   // at once
	replayKeep  = 7 * job.Day
	samplesMost = 5      // jobs shown by a dry run
	judgedMost  = 20_000 // jobs of a run that looks at payloads
)

// Preview is what a replay would do.
type Preview struct {
	Count  int64
	Sample []Dead
	at     job.Millis
	ids    []job.ID // those that were judged by their payload
}

// PreviewReplay counts what a selection chooses now, and shows some of it.
func (set *Set) PreviewReplay(ctx context.Context, s *job.Selection, judge query.Judge) (p Preview, err error) {
	find := *s
	now := set.engine.Now()
	if find.DiedBefore == 0 || find.DiedBefore > now+1 {
		find.DiedBefore = now + 1
	}
	p.at = now
	if p.Sample, _, err = set.Jobs(ctx, Page{Select: &find, Judge: judge, Most: samplesMost, Payload: true}); err != nil {
		return p, err
	}
	err = set.eachDead(ctx, Page{Select: &find, Judge: judge, Bare: true}, func(d Dead) (bool, error) {
		if p.Count++; judge != nil && p.Count <= judgedMost {
			p.ids = append(p.ids, d.Job.ID)
		}
		return true, nil
	})
	return p, err
}

// StartReplay begins a run through the dead set: ask has the fields that a
// caller chooses, Action to MaxReplays. It goes on by itself, also after a
// restart, until every job that was selected and dead when it began has been
// looked at once, or CancelReplay.
//
// A judge looks at payloads before the run begins, for it must not run in the
// committer; the run has the ids that it chose, and so there is a limit to them.
func (set *Set) StartReplay(ctx context.Context, ask job.Replay, judge query.Judge) (*job.Replay, error) {
	p, err := set.PreviewReplay(ctx, &ask.Select, judge)
	if err != nil {
		return nil, err
	}
	if judge != nil {
		if p.Count > judgedMost {
			return nil, &job.Error{Kind: job.Invalid, Field: "filter", Text: fmt.Sprintf(
				"filter chooses %d jobs; a run with one may have %d. Narrow it down, by died_before for instance, and start several",
				p.Count, judgedMost)}
		}
		if ask.Select.IDs = p.ids; p.Count == 0 {
			ask.Select.IDs = []job.ID{{}} // nobody: an empty list would be everybody
		}
	}
	var out *job.Replay
	err = set.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		if err := replayRoom(tx); err != nil {
			return err
		}
		row := ask
		row.ID, row.Created, row.Total = tx.NewID(), p.at, p.Count
		row.At, row.Next = tx.Moment().Steady, tx.Moment().Steady
		row.Progress, row.Finished, row.Cursor = job.Running, 0, job.ID{}
		out = &row
		if err := tx.Audit(row.By, row.Action.String(), row.ID.String(), row.Total); err != nil {
			return err
		}
		return tx.Store().Set(&row)
	})
	return engine.Answered(&out, err)
}

// replayRoom makes room for one more replay, or refuses it.
func replayRoom(tx *engine.Tx) error {
	list, err := store.Rows[*job.Replay](tx.Store(), "", replaysMax)
	if err != nil {
		return err
	}
	running, over := 0, len(list)-replaysMax+1
	for _, p := range list {
		switch {
		case p.Progress == job.Running:
			running++
		case over > 0:
			over--
			if err := tx.Store().Unset(job.Replays, p.Key()); err != nil {
				return err
			}
		}
	}
	if running >= runningMax {
		return job.Errorf(job.OverLimit, "%d replays run already; wait for one, or cancel one", running)
	}
	return nil
}

// Replays returns up to n runs, newest first, those before one if that is given.
func (set *Set) Replays(ctx context.Context, before job.ID, n int) (list []*job.Replay, err error) {
	err = set.engine.View(ctx, func(v store.Reader) error {
		all, err := store.Rows[*job.Replay](v, "", replaysMax)
		for _, p := range slices.Backward(all) {
			if len(list) < n && (before.IsZero() || p.ID.Before(before)) {
				list = append(list, p)
			}
		}
		return err
	})
	return list, err
}

// Replay returns one run, or NotFound.
func (set *Set) Replay(ctx context.Context, id job.ID) (p *job.Replay, err error) {
	err = set.engine.View(ctx, func(v store.Reader) error {
		p, err = replayOf(v, id)
		return err
	})
	return p, err
}

func replayOf(v store.Reader, id job.ID) (*job.Replay, error) {
	p, err := store.Row[*job.Replay](v, id.String())
	if err == nil && p == nil {
		err = job.Errorf(job.NotFound, "replay %s does not exist", id)
	}
	return p, err
}

// CancelReplay ends a run; what it has done stays done. A finished one is
// refused with WrongState.
func (set *Set) CancelReplay(ctx context.Context, id job.ID, by job.Actor) (*job.Replay, error) {
	var out *job.Replay
	err := set.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		p, err := replayOf(tx.Store(), id)
		if err != nil {
			return err
		}
		if p.Progress != job.Running {
			return job.Errorf(job.WrongState, "replay %s is %s already", id, p.Progress)
		}
		end := *p
		out = &end
		return endReplay(tx, &end, job.Cancelled, by)
	})
	return engine.Answered(&out, err)
}

// endReplay writes a run that is over.
func endReplay(tx *engine.Tx, p *job.Replay, how job.Progress, by job.Actor) error {
	p.Progress, p.Finished, p.At, p.Next = how, tx.Moment().Now, tx.Moment().Steady, tx.Moment().Steady.Add(replayKeep)
	if err := tx.Audit(by, p.Action.String()+" "+how.String(), p.ID.String(), p.Done); err != nil {
		return err
	}
	return tx.Store().Set(p)
}

// advance is one step of a run: jobs and progress in one transaction, so a
// crash undoes both or none. It does not wait for the disk: what a power cut
// takes back it does again.
func advance(tx *engine.Tx, old *job.Replay) error {
	if old.Progress != job.Running {
		return tx.Store().Unset(job.Replays, old.Key())
	}
	p := *old
	room, paced := rule.Pace(&p, tx.Moment().Steady, replayMost)
	p.Paced, p.At = paced, tx.Moment().Steady
	if room > 0 {
		find, rest := nextIDs(&p)
		list, err := tx.Store().List(filterOf(find, p.Cursor, tx.Moment().Now), replayMost)
		if err != nil {
			return err
		}
		looked := 0
		for _, j := range list {
			if room == 0 {
				break
			}
			looked++
			p.Cursor = j.ID
			before := p.Done
			if err := replayOne(tx, &p, find, j); err != nil {
				return err
			}
			room -= p.Done - before
		}
		if looked == len(list) && len(list) < replayMost && len(rest) == 0 {
			p.Gone = max(0, p.Total-p.Done-p.Refused-p.Guarded-p.Conflict)
			return endReplay(tx, &p, job.Finished, p.By)
		}
		if looked == len(list) {
			if len(rest) > 0 {
				p.Select.IDs = rest
			}
			// there may be many that are not selected: look on at once
			p.Next = tx.Moment().Steady
			tx.More()
			return tx.Store().Set(&p)
		}
	}
	p.Next = rule.NextStep(&p, tx.Moment().Steady)
	if p.Next == tx.Moment().Steady {
		tx.More()
	}
	return tx.Store().Set(&p)
}

// nextIDs is the selection of one step: of a run that has many ids the next
// ones. rest are those behind them.
func nextIDs(p *job.Replay) (find *job.Selection, rest []job.ID) {
	if p.Select.Filter == "" || len(p.Select.IDs) <= replayMost {
		return &p.Select, nil
	}
	few := p.Select
	few.IDs = p.Select.IDs[:replayMost]
	return &few, p.Select.IDs[replayMost:]
}

// replayOne does to one dead job what the run does, if it is selected.
func replayOne(tx *engine.Tx, p *job.Replay, find *job.Selection, j *job.Job) error {
	ok, _, err := selected(tx.Store(), find, j)
	if err != nil || !ok || j.DiedAt > p.Created {
		return err
	}
	c := rule.Command{Verb: rule.Purge}
	if p.Action == job.ActionReplay {
		if p.MaxReplays > 0 && j.Replays >= p.MaxReplays {
			p.Guarded++
			return nil
		}
		c = rule.Command{Verb: rule.Revive, Allow: p.Allow, Remaining: p.Remaining, Place: rule.ReplayPlace(p, j)}
	}
	_, err = tx.Step(j, c)
	switch {
	case engine.Fatal(err):
		return err
	case err != nil && job.KindOf(err) == job.Exists:
		p.Conflict++
	case err != nil:
		p.Refused++
	default:
		p.Done++
	}
	return nil
}

// resumeReplays lets the runs of the last start go on, on the clock of this one.
func resumeReplays(tx *engine.Tx) error {
	return store.EachRow(tx.Store(), "", func(old *job.Replay) error {
		if old.Progress != job.Running {
			return nil
		}
		p := *old
		p.At, p.Next = tx.Moment().Steady, tx.Moment().Steady
		return tx.Store().Set(&p)
	})
}
