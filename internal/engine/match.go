package engine

import (
	"context"
	"errors"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// The committer runs no expressions (core.md section 9). A failure whose
// policy has rules by message is therefore settled in two steps: the first
// changes nothing and names the patterns, the second brings along what they
// say. Should the policy change in between, it names what it misses again.

// matchRounds is how often a policy may change under one settle.
const matchRounds = 10

// errBehind is the verdict of an entry behind another one that has to wait, of the same
// job or the same strict group; nobody outside sees it.
var errBehind = &job.Error{
	Kind: job.Unavailable, Text: "the retry policy changed meanwhile; send the request again", Cause: &rule.Unmatched{},
}

// unmatched returns what a step misses; nil if the error is another.
func unmatched(err error) *rule.Unmatched {
	u, _ := errors.AsType[*rule.Unmatched](err)
	return u
}

// settleMatched settles again what had to wait for the patterns of its policy.
func settleMatched(ctx context.Context, e *Engine, list []Settle, out []Verdict) error {
	for range matchRounds {
		var places []int // in list and out
		var again []Settle
		for i := range out {
			if out[i].Err == nil {
				continue
			}
			if u := unmatched(out[i].Err); u != nil {
				s := list[i]
				s.match = e.patterns.Match(u.Patterns, s.Failure.Message)
				places, again = append(places, i), append(again, s)
			}
		}
		if places == nil {
			return nil
		}
		verdicts, err := settleOnce(ctx, e, again)
		if err != nil {
			return err
		}
		for i, place := range places {
			out[place] = verdicts[i]
		}
	}
	return nil
}
