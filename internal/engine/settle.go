package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Settle ends attempts, each on its own: a refused entry has an error in its
// verdict and changes nothing. When Settle returns, what it accepted is
// durable and stays settled.
func (e *Engine) Settle(ctx context.Context, list []Settle) ([]Verdict, error) {
	out, err := settleOnce(ctx, e, list)
	if err != nil {
		return nil, err
	}
	return out, settleMatched(ctx, e, list, out)
}

func settleOnce(ctx context.Context, e *Engine, list []Settle) ([]Verdict, error) {
	out := make([]Verdict, len(list))
	bytes := 0
	for i := range list {
		bytes += len(list[i].Result) + len(list[i].Rest)
		for _, p := range list[i].Pieces {
			bytes += len(p.Payload)
		}
	}
	err := e.Do(ctx, bytes, func(r *Tx) error {
		var waiting []*job.Job // those whose message must be matched first
		var turns turnsSettled
		for i := range list {
			behind, err := r.mustWait(waiting, list[i].ID)
			if err != nil {
				return err
			}
			if behind {
				out[i] = Verdict{Err: errBehind}
				continue
			}
			if out[i], err = r.settle(&list[i]); err != nil {
				return err
			}
			if out[i].Err != nil && unmatched(out[i].Err) != nil {
				j, err := r.tx.Get(list[i].ID)
				if err != nil {
					return err
				}
				waiting = append(waiting, j)
			}
			if j := out[i].Job; out[i].inTurn {
				turns.note(j, i)
			}
		}
		r.tx.Durable()
		if waiting != nil { // more is to come
			return nil
		}
		return r.recall(turns, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// settling is what a call tells of runs.
type settling struct {
	*Tx
	cut []job.ID // members of turns that a step sent back
}

// mustWait reports whether an entry must wait for one that waits: it is about the same job, or
// about the same strict group, where the end of one member decides about the others.
func (r *settling) mustWait(waiting []*job.Job, id job.ID) (bool, error) {
	if len(waiting) == 0 {
		return false, nil
	}
	j, err := r.tx.Get(id)
	if j == nil || err != nil {
		return false, err
	}
	return slices.ContainsFunc(waiting, func(w *job.Job) bool {
		return w.ID == id || j.Order == job.OrderStrict && w.Group == j.Group && w.Queue == j.Queue
	}), nil
}

var verbOf = [...]rule.Verb{rule.SettleOK, rule.SettleRetry, rule.SettleDead, rule.SettleRelease}

func (r *settling) settle(s *Settle) (Verdict, error) {
	j, err := r.tx.Get(s.ID)
	if err != nil {
		return Verdict{}, err
	}
	if j == nil {
		return Verdict{Err: job.Errorf(job.NotFound, "job not found in in-flight set")}, nil
	}
	pieces, err := r.piecesOf(j, s)
	if err != nil {
		return Verdict{Err: err}, nil
	}
	c := r.commandFor(s)
	r.cut = nil
	eff, err := r.stepLeft(j, s.Rest, c)
	if err != nil {
		r.e.parts.refused(j, s.Outcome, eff, err)
	}
	if err == nil && c.Result != nil && c.Result.Bytes == nil && eff.Job.Result() == c.Result { // not a repeat, and the job stays
		err = r.tx.PutPayload(c.Result.Ref, s.Result)
	}
	if err == nil && !eff.Repeat {
		err = r.settlePieces(pieces, s)
	}
	if err != nil && unmatched(err) != nil {
		return Verdict{Err: err}, nil
	}
	if err != nil {
		return VerdictOf(eff, err)
	}
	r.countSettle(s.Outcome, j, &eff)
	if s.Outcome == job.Retried && eff.Job != nil { // a part may have given it up since
		if eff.Job, err = r.tx.Get(s.ID); err != nil {
			return Verdict{}, err
		}
	}
	v, err := VerdictOf(eff, nil)
	v.Recalled, v.Cut, r.cut = r.cut, eff.Cut, nil
	if err == nil && j.Group != "" {
		q, qerr := r.Queue(j.Queue)
		v.inTurn, err = qerr == nil && rule.TurnMoves(q, &eff), qerr
	}
	return v, err
}

// commandFor is what a settle asks of the rules.
func (r *settling) commandFor(s *Settle) rule.Command {
	c := rule.Command{
		Verb: verbOf[s.Outcome], Token: s.Token, Failure: s.Failure, RunStart: s.Started,
		RetryAt: s.RetryAt, After: s.RetryAfter, Hold: s.Hold, Place: s.Place, Match: s.match,
	}
	if s.NotBefore > r.now {
		c.After = max(c.After, s.NotBefore-r.now)
	}
	if s.RetryIn > 0 {
		c.RetryAt = r.now.Add(s.RetryIn)
	}
	if s.Outcome == job.Released {
		c.After, c.ByTarget = s.Delay, s.ByTarget
	}
	if s.Result != nil && s.Outcome == job.OK {
		c.Result = r.resultOf(s.Result)
	}
	return c
}

// resultOf is how what a run made will be kept.
func (r *settling) resultOf(body []byte) *job.Result {
	if len(body) <= job.ResultInline {
		return job.InlineResult(body)
	}
	return &job.Result{Ref: r.ids.Next(r.now), Size: uint32(len(body))}
}

func VerdictOf(eff rule.Effect, err error) (Verdict, error) {
	if Fatal(err) {
		return Verdict{}, err
	}
	if err != nil {
		return Verdict{Err: err}, nil
	}
	if eff.Job == nil {
		return Verdict{State: eff.Gone, Job: eff.Left}, nil
	}
	return Verdict{State: eff.Job.State, Job: eff.Job}, nil
}

func (r *settling) countSettle(o job.Outcome, old *job.Job, eff *rule.Effect) {
	if eff.Repeat {
		return
	}
	switch o {
	case job.OK:
		r.stats.Done++
		if eff.Late {
			r.stats.LateOK++
		}
	case job.Retried:
		r.stats.Failed++
		r.countSuppressed(old, eff)
	case job.Released:
		r.stats.Released++
	case job.Died:
	}
	if eff.Gone == job.Dead || eff.Job != nil && eff.Job.State == job.Dead {
		r.stats.Died++
	}
}

// countSuppressed counts a failure inside grace, told by a worker or by the clock.
func (r *settling) countSuppressed(old *job.Job, eff *rule.Effect) {
	j := cmp.Or(eff.Job, eff.Left)
	r.stats.Suppressed += uint64(j.Suppressed - old.Suppressed)
}

// Extend is the heartbeat of unary leases, or the word that a run started.
func (e *Engine) Extend(ctx context.Context, list []Extension) ([]Verdict, error) {
	out := make([]Verdict, len(list))
	err := e.Do(ctx, 0, func(r *Tx) error {
		for i, x := range list {
			j, err := r.tx.Get(x.ID)
			if err != nil {
				return err
			}
			if j == nil {
				out[i] = Verdict{Err: job.Errorf(job.NotFound, "job %s does not exist any more", x.ID)}
				continue
			}
			c := rule.Command{Verb: rule.Extend, Token: x.Token, Started: x.Started, Progress: x.Progress}
			if x.For > 0 {
				c.Until = r.steady.Add(x.For)
			}
			if out[i], err = VerdictOf(r.Step(j, c)); err != nil {
				return err
			}
			if x.Progress != nil && x.Progress.Checkpoint != nil {
				r.tx.Durable()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
