package rule

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// Match says whether the message of a failure fits a pattern of the policy's
// rules. Expressions do not run in the writer (core.md section 9): whoever
// builds the command runs them before, and Step asks for those it misses.
type Match func(pattern string) (fits, known bool)

// noMessage is the match of failures that no worker reported: what we write
// into their messages is for people.
func noMessage(string) (fits, known bool) { return false, true }

// Unmatched is why Step could not decide about a failure: the patterns that
// its message has to be held against first. It is the cause of a *job.Error.
type Unmatched struct{ Patterns []string }

func (*Unmatched) Error() string { return "patterns of the policy's rules were not tried yet" }

// FirstRule is the place of the first rule that matches a failure, -1 if none
// does. m is asked only about patterns whose other conditions fit; where it
// does not know one, the error has the cause *Unmatched.
func FirstRule(rules job.Rules, f *job.Failure, m Match) (int, error) {
	for i := range rules {
		w := &rules[i].When
		if !fits(w, f) {
			continue
		}
		if w.Message == "" {
			return i, nil
		}
		found, known := false, false
		if m != nil {
			found, known = m(w.Message)
		}
		if !known {
			return -1, &job.Error{
				Kind: job.Unavailable, Text: "the retry policy changed meanwhile; send the request again",
				Cause: &Unmatched{rules.Patterns()},
			}
		}
		if found {
			return i, nil
		}
	}
	return -1, nil
}

// fits holds a failure against every condition but that on its message.
func fits(w *job.When, f *job.Failure) bool {
	return (len(w.ErrorTypes) == 0 || slices.Contains(w.ErrorTypes, f.Type)) &&
		among(w.Status, f.Status) && among(w.ExitCode, f.ExitCode) &&
		(w.Timeout == job.Unsaid || w.Timeout == job.AnswerOf(f.Timeout))
}

// among reports whether n is in one of the ranges; no ranges are any number.
func among(list []job.Range, n int) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(r job.Range) bool { return r.Has(n) })
}
