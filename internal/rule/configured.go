package rule

import (
	"reflect"

	"github.com/reprisehq/reprise/internal/job"
)

// claim is a setting that somebody else than the configuration may say.
type claim struct {
	name    string // in the file
	keep    func(to, from *job.Queue)
	differs func(a, b *job.Queue) bool
}

func claimOf[T any](name string, at func(*job.Queue) *T) claim {
	return claim{
		name:    name,
		keep:    func(to, from *job.Queue) { *at(to) = *at(from) },
		differs: func(a, b *job.Queue) bool { return !reflect.DeepEqual(at(a), at(b)) },
	}
}

// claims are settings that the configuration of a queue may name, and that a session
// says itself; the first of them an inbox, too.
var claims = []claim{
	claimOf("order", func(q *job.Queue) *job.Order { return &q.Order }),
	claimOf("concurrency", func(q *job.Queue) *int { return &q.Concurrency }),
	claimOf("on_dead", func(q *job.Queue) *job.OnDead { return &q.OnDead }),
	claimOf("retry", func(q *job.Queue) *job.Retry { return &q.Retry }),
	claimOf("fair_share", func(q *job.Queue) **job.FairShare { return &q.Protection.Fair }),
	claimOf("on_full", func(q *job.Queue) *job.OnFull { return &q.OnFull }),
	claimOf("front_order", func(q *job.Queue) *job.FrontOrder { return &q.FrontOrder }),
	claimOf("require_token", func(q *job.Queue) *bool { return &q.RequireToken }),
	claimOf("non_idempotent", func(q *job.Queue) *bool { return &q.NonIdempotent }),
	claimOf("run_timeout", func(q *job.Queue) *job.Millis { return &q.RunTimeout }),
	claimOf("start_timeout", func(q *job.Queue) *job.Millis { return &q.StartTimeout }),
	claimOf("retention.completed", func(q *job.Queue) *job.Millis { return &q.RetainDone }),
	claimOf("retention.dead", func(q *job.Queue) *job.Millis { return &q.RetainDead }),
	claimOf("breaker", func(q *job.Queue) **job.Breaker { return &q.Protection.Breaker }),
	claimOf("group_breaker", func(q *job.Queue) **job.Breaker { return &q.Protection.GroupBreaker }),
	claimOf("rate", func(q *job.Queue) *job.Rate { return &q.Protection.Rate }),
	claimOf("group_rate", func(q *job.Queue) *job.Rate { return &q.Protection.GroupRate }),
	claimOf("max_running", func(q *job.Queue) *int { return &q.Protection.MaxRunning }),
	claimOf("retry_budget", func(q *job.Queue) **job.RetryBudget { return &q.Protection.Budget }),
}

// How many of the claims are whose; a session has them all.
const (
	orderClaims = 2 // of a plain queue while ChangeQueue refuses another order
	inboxKeeps  = 5 // what KeepsInbox refuses
	inboxClaims = 6 // and what ChangeQueue refuses
)

// Configured is what a queue becomes for which the configuration says set, while so
// many members of groups stand in it. No server may fail to start because of what came
// over the API: what an inbox or a session says itself stays, and so does the order
// of open members (I7). why says which of these it is, "" = none; left names what
// the configuration says and does not get.
func Configured(old, set *job.Queue, grouped int) (q *job.Queue, why string, left []string) {
	next := *set
	next.HoldUntil, next.Outlet = old.HoldUntil, old.Outlet
	own := claims
	switch {
	case old.Grid != nil:
		why = "it is a session, which keeps the options that it was opened with"
	case old.Turns:
		why, own = "it is an inbox, which has these from `inboxes` or PUT /inboxes/{name}", claims[:inboxClaims]
	case old.Order != set.Order && grouped > 0:
		why, own = "grouped jobs in it are open, or dead and in the way of their group; start again without them", claims[:orderClaims]
	default:
		return &next, "", nil
	}
	next.Turns, next.Grid, next.AgeCap, next.GraceDelay = old.Turns, old.Grid, old.AgeCap, old.GraceDelay
	blank := job.NewQueue(set.Name)
	for _, c := range own {
		if c.differs(set, blank) && c.differs(set, old) {
			left = append(left, c.name)
		}
		c.keep(&next, old)
	}
	return &next, why, left
}
