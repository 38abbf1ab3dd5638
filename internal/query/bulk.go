package query

import (
	"context"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Bulk has act change every job that the search chooses, in any state, those past
// their retention too. Refused are those for which it has an error of the kind WrongState;
// any other one ends the call.
//
// They are changed in transactions of up to 500, oldest first, and each job that was
// there when the call began is looked at once. A job is looked at again in its
// transaction, and left alone if it is not chosen any more. Between two transactions
// others come and go, and when an error or ctx ends the call, what was done stays done.
func (r Reads) Bulk(ctx context.Context, s Search, act func(*engine.Tx, *job.Job) error) (done, refused int64, err error) {
	var last job.ID
	if err := r.engine.View(ctx, func(v store.Reader) (err error) { last, err = store.MaxID(v); return err }); err != nil {
		return 0, 0, err
	}
	s.Filter.From, s.Filter.Desc, s.Payload = job.ID{}, false, false
	for more := true; more; {
		var page, chosen []Listed
		err := r.engine.View(ctx, func(v store.Reader) (err error) {
			page, more, err = s.look(v)
			return err
		})
		if err == nil {
			var older bool
			older, err = r.Judged(ctx, &s, page, func(l Listed) (bool, error) {
				if last.Before(l.Job.ID) { // it came later, and so did all behind it
					return false, nil
				}
				chosen = append(chosen, l)
				return true, nil
			})
			more = more && older
		}
		if err == nil && len(chosen) > 0 {
			var n, no int64
			n, no, err = r.actOn(ctx, &s, chosen, act)
			done, refused = done+n, refused+no
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return done, refused, err
		}
	}
	return done, refused, nil
}

// actOn is one transaction of a call over many jobs.
func (r Reads) actOn(ctx context.Context, s *Search, list []Listed, act func(*engine.Tx, *job.Job) error) (done, refused int64, err error) {
	var n int64
	var no []refusal
	err = r.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		n, no = 0, no[:0]
		tx.Store().Durable()
		for _, l := range list {
			j, err := tx.Store().Get(l.Job.ID)
			if err != nil {
				return err
			}
			if j == nil || !s.holds(l.Job, j) {
				continue
			}
			switch err := act(tx, j); {
			case err == nil:
				n++
			case job.KindOf(err) == job.WrongState:
				no = append(no, refusal{j.ID, err})
			default:
				return err
			}
		}
		return nil
	})
	if engine.Fatal(err) { // or ctx is over: what was counted may not have come true, and may still be written to
		return 0, 0, err
	}
	if s.Refused != nil {
		for _, r := range no {
			s.Refused(r.id, r.why)
		}
	}
	return n, int64(len(no)), err
}

// refusal is why a call over many jobs leaves one as it is.
type refusal struct {
	id  job.ID
	why error
}

// holds reports whether a job that was chosen as it was then is chosen as it
// is now. Nobody looks at payloads here, so a new one is not chosen.
func (s *Search) holds(then, now *job.Job) bool {
	f := &s.Filter
	return among(f.States, now.State) && among(f.Queues, now.Queue) && among(f.Types, now.Type) &&
		among(f.IDs, now.ID) && among(f.Prints, now.Print) &&
		(s.Where == nil || s.Where(now)) && (s.Judge == nil || now.Payload == then.Payload)
}

func among[T comparable](values []T, v T) bool { return len(values) == 0 || slices.Contains(values, v) }
