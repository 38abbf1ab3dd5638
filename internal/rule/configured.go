package rule

import (
	"reflect"

	"github.com/reprisehq/reprise/internal/job"
)

// claims are settings that the configuration of a queue may name, and that a session
// says itself; the first of them an inbox, too.
var claims = []struct {
	name string
	of   func(*job.Queue) any // a pointer to it
}{
	{"order", func(q *job.Queue) any { return &q.Order }},
	{"concurrency", func(q *job.Queue) any { return &q.Concurrency }},
	{"on_dead", func(q *job.Queue) any { return &q.OnDead }},
	{"retry", func(q *job.Queue) any { return &q.Retry }},
	{"fair_share", func(q *job.Queue) any { return &q.Protection.Fair }},
	{"on_full", func(q *job.Queue) any { return &q.OnFull }},
	{"front_order", func(q *job.Queue) any { return &q.FrontOrder }},
	{"require_token", func(q *job.Queue) any { return &q.RequireToken }},
	{"non_idempotent", func(q *job.Queue) any { return &q.NonIdempotent }},
	{"run_timeout", func(q *job.Queue) any { return &q.RunTimeout }},
	{"start_timeout", func(q *job.Queue) any { return &q.StartTimeout }},
	{"retention.completed", func(q *job.Queue) any { return &q.RetainDone }},
	{"retention.dead", func(q *job.Queue) any { return &q.RetainDead }},
	{"breaker", func(q *job.Queue) any { return &q.Protection.Breaker }},
	{"group_breaker", func(q *job.Queue) any { return &q.Protection.GroupBreaker }},
	{"rate", func(q *job.Queue) any { return &q.Protection.Rate }},
	{"group_rate", func(q *job.Queue) any { return &q.Protection.GroupRate }},
	{"max_running", func(q *job.Queue) any { return &q.Protection.MaxRunning }},
	{"retry_budget", func(q *job.Queue) any { return &q.Protection.Budget }},
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
	next.HoldUntil = old.HoldUntil
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
		to, has := reflect.ValueOf(c.of(&next)).Elem(), reflect.ValueOf(c.of(old)).Elem()
		said := to.Interface()
		if !reflect.DeepEqual(said, reflect.ValueOf(c.of(blank)).Elem().Interface()) && !reflect.DeepEqual(said, has.Interface()) {
			left = append(left, c.name)
		}
		to.Set(has)
	}
	return &next, why, left
}
