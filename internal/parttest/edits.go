package parttest

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Grouped, Due and Retry are edits that many tests use.
func Grouped(g string) func(*engine.NewJob) { return func(n *engine.NewJob) { n.Job.Group = g } }

// Due is described at Grouped.
func Due(at job.Millis) func(*engine.NewJob) { return func(n *engine.NewJob) { n.Job.ReadyAt = at } }

// Retry is described at Grouped.
func Retry(p job.Retry) func(*engine.NewJob) { return func(n *engine.NewJob) { n.Job.Retry = &p } }

// Wait is a curve that always waits as long.
func Wait(span job.Millis) *job.Curve { return &job.Curve{Kind: job.CurveConstant, Delay: span} }

// Strict makes groups of a queue strict.
func Strict(q *job.Queue) { q.Order = job.OrderStrict }

// All chooses all jobs.
var All = store.Filter{}

// Commands of operators.
var (
	Revive = rule.Command{Verb: rule.Revive}
	Cancel = rule.Command{Verb: rule.Cancel}
)

// Policy reads a policy as the wire does.
func Policy(t testing.TB, text string) job.Retry {
	t.Helper()
	r, err := job.ParseRetry([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
