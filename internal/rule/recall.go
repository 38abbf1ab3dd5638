package rule

import "github.com/reprisehq/reprise/internal/job"

// What an operator pauses stops inside a turn too (inbox.md, decision 10): who is at
// work finishes, and when its member ends the turn goes on only with one that may be
// delivered (MayDeliver). The others are recalled: they go back untouched, with the
// ending ByTurn, and their holder hears of it with the verdict. A holder inside the
// process asks MayDeliver before each delivery by itself.

// Recalls reports whether a member of a turn goes back, now that one before it has
// ended and it would be next. One that is out of line takes those behind it in a
// strict group along; one that expired leaves, and the others come closer.
func Recalls(q *job.Queue, g *job.Gate, next *job.Job, now job.Millis, outdates bool) bool {
	return MayDeliver(q, g, next, next.Leases[0].Token, now, outdates) != nil
}

// TurnMoves reports whether a step ended the run of a member in a turn whose holder hears
// of recalls by verdicts: then Recalls is asked about the next member.
func TurnMoves(q *job.Queue, e *Effect) bool {
	return q.Turns && len(e.Ended) > 0 && e.Ended[0].Turn != 0 && e.Ended[0].Kind != job.Anonymous
}
