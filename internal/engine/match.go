package engine

import (
	"context"
	"errors"
	"regexp"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// The committer runs no expressions (core.md section 9). A failure whose
// policy has rules by message is therefore settled in two steps: the first
// changes nothing and names the patterns, the second brings along what they
// say. Should the policy change in between, it names what it misses again.

// matchRounds is how often a policy may change under one settle.
const matchRounds = 10

// errBehind is the verdict of an entry behind another one of the same job
// that has to wait; nobody outside sees it.
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
				s.match = e.patterns.match(u.Patterns, s.Failure.Message)
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

// patterns are compiled expressions, by their text. They are kept because a
// job's policy is read from disk again and again; used by any goroutine.
type patterns struct {
	mu       sync.Mutex // guards compiled
	compiled map[string]*regexp.Regexp
}

// patternsMax bounds what is kept; beyond it, all is forgotten.
const patternsMax = 1000

// match tries patterns on the head of a message.
func (p *patterns) match(list []string, message string) rule.Match {
	message = message[:min(len(message), job.MatchBytesMax)]
	found := make(map[string]bool, len(list))
	for _, text := range list {
		re := p.get(text)
		found[text] = re != nil && re.MatchString(message)
	}
	return func(pattern string) (fits, known bool) {
		fits, known = found[pattern]
		return fits, known
	}
}

// get compiles a pattern; nil if it is none, which only a policy stored by
// another version can have.
func (p *patterns) get(text string) *regexp.Regexp {
	p.mu.Lock()
	defer p.mu.Unlock()
	if re, ok := p.compiled[text]; ok {
		return re
	}
	re, err := job.CompilePattern(text)
	if err != nil {
		re = nil
	}
	if p.compiled == nil || len(p.compiled) >= patternsMax {
		p.compiled = map[string]*regexp.Regexp{}
	}
	p.compiled[text] = re
	return re
}
