package rule

import (
	"reflect"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// What an inbox, a session and the order of open members keep is theirs, whatever a
// file says; the rest is the file's.
func TestTheConfigurationChangesNoInboxSessionOrOrderOfOpenMembers(t *testing.T) {
	plain := job.NewQueue("q")
	inbox := job.NewQueue("q")
	inbox.Order, inbox.Turns, inbox.OnDead, inbox.Protection.Fair = job.OrderStrict, true, job.DeadBlock, &job.FairShare{}
	inbox.Retry.Limit, inbox.AgeCap, inbox.GraceDelay, inbox.HoldUntil = job.LimitOf(9), 5, 1, 77
	session := job.NewQueue("q")
	session.Grid, session.RequireToken, session.RunTimeout, session.RetainDead = &job.Grid{Weight: 5}, true, 9, job.MaxMillis
	legacy := *session // an earlier version let an inbox take a session over
	legacy.Turns, legacy.Order, legacy.Protection.Fair = true, job.OrderStrict, &job.FairShare{}

	all := job.NewQueue("q") // says everything otherwise
	all.Order, all.Concurrency, all.OnDead, all.FrontOrder, all.Paused = job.OrderStart, 3, job.DeadPark, job.FrontLIFO, true
	all.Retry.Limit, all.LateOKNever, all.RequireToken, all.NonIdempotent = job.LimitOf(1), true, true, true
	all.MaxJobs, all.MaxBytes, all.OnFull, all.RunTimeout, all.StartTimeout, all.RetainDone, all.RetainDead = 100, 200, job.FullDropOldest, 3, 4, 5, 6
	all.Protection = job.Protection{
		Breaker: &job.Breaker{}, GroupBreaker: &job.Breaker{}, Rate: job.Rate{PerSecond: 1}, GroupRate: job.Rate{PerSecond: 2},
		MaxRunning: 1, Budget: &job.RetryBudget{}, Fair: &job.FairShare{Weights: map[string]int{"g": 2}},
	}
	ordered := []string{"order", "concurrency"}
	ofInbox := append(slices.Clone(ordered), "on_dead", "retry", "fair_share", "on_full")
	ofSession := append(slices.Clone(ofInbox), "front_order", "non_idempotent", "run_timeout", "start_timeout", "retention.completed", "retention.dead",
		"breaker", "group_breaker", "rate", "group_rate", "max_running", "retry_budget") // require_token is as the session has it
	some := job.NewQueue("q")
	some.MaxJobs = 100
	for name, c := range map[string]struct {
		old, set *job.Queue
		grouped  int
		why      bool
		left     []string
		paused   bool
	}{
		"plain":                     {old: plain, set: all, paused: true},
		"plain, its order is fixed": {old: plain, set: all, grouped: 1, why: true, left: ordered, paused: true},
		"plain, the same order":     {old: plain, set: some, grouped: 1},
		"empty inbox":               {old: inbox, set: all, why: true, left: ofInbox, paused: true},
		"inbox":                     {old: inbox, set: all, grouped: 1, why: true, left: ofInbox, paused: true},
		"inbox and max_jobs":        {old: inbox, set: some, grouped: 1, why: true},
		"session":                   {old: session, set: all, why: true, left: ofSession, paused: true},
		"session and max_jobs":      {old: session, set: some, why: true},
		"session that was an inbox": {old: &legacy, set: all, grouped: 1, why: true, left: ofSession, paused: true},
	} {
		kept := *c.old
		got, why, left := Configured(c.old, c.set, c.grouped)
		if (why != "") != c.why || !slices.Equal(left, c.left) {
			t.Errorf("%s: left out %q, want %q; why: %s", name, left, c.left, why)
		}
		if got.MaxJobs != 100 || got.Paused != c.paused || got.HoldUntil != c.old.HoldUntil || got.Turns != c.old.Turns || got.Grid != c.old.Grid {
			t.Errorf("%s: %+v", name, got)
		}
		if c.old.Turns && c.old.Grid == nil && (KeepsInbox(c.old, got) != nil || got.OnFull != c.old.OnFull || got.AgeCap != 5 || got.GraceDelay != 1 || got.RunTimeout != c.set.RunTimeout) {
			t.Errorf("%s: %+v", name, got)
		}
		if c.old.Grid != nil && (got.RunTimeout != 9 || !got.RequireToken || got.RetainDead != job.MaxMillis || !reflect.DeepEqual(got.Protection, c.old.Protection)) {
			t.Errorf("%s: %+v", name, got)
		}
		if c.left == nil && !c.why && !reflect.DeepEqual(got, c.set) {
			t.Errorf("%s: %+v, want what the file says", name, got)
		}
		if !reflect.DeepEqual(*c.old, kept) {
			t.Errorf("%s: it changed what was there", name)
		}
		if again, _, _ := Configured(got, c.set, c.grouped); !reflect.DeepEqual(again, got) {
			t.Errorf("%s: a second start makes %+v of %+v", name, again, got)
		}
	}
}
