package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// stepLeft applies a settle to a job that keeps, of its payload, what is left to be done;
// nil = all of it.
func (r *settling) stepLeft(j *job.Job, rest []byte, c rule.Command) (rule.Effect, error) {
	if rest == nil {
		return r.Step(j, c)
	}
	left := rule.Left(j, r.ids.Next(r.now), uint32(len(rest)))
	eff, err := r.stepAs(j, left, c)
	if err == nil && !eff.Repeat && eff.Job != nil {
		err = r.tx.PutPayload(left.Payload, rest)
	}
	return eff, err
}

// piecesOf makes jobs of the other parts of a job that is settled.
func (r *settling) piecesOf(whole *job.Job, s *Settle) (pieces []*job.Job, err error) {
	for i := range s.Pieces {
		p, err := rule.Piece(whole, r.ids.Next(r.now), uint32(len(s.Pieces[i].Payload)))
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// settlePieces settles each of the other parts of a job. The leases that they have of the
// whole ended with the whole, and so did its part in fair shares.
func (r *settling) settlePieces(pieces []*job.Job, s *Settle) error {
	for i, piece := range pieces {
		p := &s.Pieces[i]
		c := r.commandFor(&Settle{Outcome: p.Outcome, Token: s.Token, Started: s.Started, Failure: p.Failure, RetryAfter: p.RetryAfter})
		v, err := r.view(piece, piece.Queue, piece.Group)
		if err != nil {
			return err
		}
		eff, err := rule.Step(v, c)
		if err != nil {
			return err
		}
		eff.Ended, eff.Voided, eff.Gate = nil, nil, nil
		if eff.Job != nil {
			if err := r.write(nil, eff); err != nil {
				return err
			}
			if err := r.tx.PutPayload(piece.ID, p.Payload); err != nil {
				return err
			}
		}
		if err := r.e.parts.stepped(r.Tx, &c, piece, &eff); err != nil {
			return err
		}
		r.countSettle(p.Outcome, piece, &eff)
	}
	return nil
}
