package rule

import (
	"errors"

	"github.com/reprisehq/reprise/internal/job"
)

// Answer is what an engine is told about a result of one of its runs.
type Answer uint8

// The answers.
const (
	AnswerAccepted   Answer = iota // it counts
	AnswerRepeat                   // it was told before: the same answer again
	AnswerSuperseded               // a success that is thrown away: nothing changes
	AnswerIgnored                  // a failure that is thrown away: nothing is charged
	answers
)

func (a Answer) String() string {
	return [answers]string{"accepted", "repeat", "superseded", "ignored"}[a]
}

// Answered is the answer that a settle amounts to, by what Step said of it. ok
// is false for an error that is none of them: bad input, or a fault of ours.
func Answered(success bool, e Effect, err error) (a Answer, ok bool) {
	refused, _ := errors.AsType[*job.Error](err)
	switch {
	case err == nil && e.Repeat:
		return AnswerRepeat, true
	case err == nil:
		return AnswerAccepted, true
	case refused == nil || refused.Kind != job.Superseded && refused.Kind != job.NotFound:
		return 0, false
	case success:
		return AnswerSuperseded, true
	}
	return AnswerIgnored, true
}
