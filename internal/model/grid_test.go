package model

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

// TestTheGridIsTheModel lets random histories of drivers and engines happen to the
// model of the grid and to the engine on each store: same answers, same tasks with
// the same counters and attempts, same order of delivery, same shares after every
// step; and what the engine tells keeps invariants I1 to I5 of A42 by itself.
func TestTheGridIsTheModel(t *testing.T) {
	for name, place := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				rapid.SyncTest(t, func(t *rapid.T) {
					if one(t, "left out", false, true, true, true, true, true) { // of so many checks there is time for a few
						return
					}
					w := newGridWorld(t, place())
					defer w.end()
					for range 2 {
						w.open(t)
						w.submit(t)
						w.settle()
						w.login(t)
						w.settle()
					}
					t.Repeat(map[string]func(*rapid.T){
						"":     func(*rapid.T) { w.compared() },
						"open": w.open, "submit": w.submit, "submit 2": w.submit, "submit 3": w.submit, "submit again": w.submitAgain,
						"login": w.login, "login 2": w.login, "connect": w.connect, "take": w.takeSome,
						"begin": w.begun, "begin 2": w.begun, "settle": w.settleLive, "settle 2": w.settleLive, "settle 3": w.settleLive, "settle 4": w.settleLive, "settle 5": w.settleLive, "settle any": w.settleAny,
						"pass": w.pass, "pass 2": w.pass,
						"heartbeat": w.heartbeat, "heartbeat 2": func(t *rapid.T) { w.tellsAll(t, w.machine(t)) }, "mute": w.mute,
						"collect": w.collect,
						"offer":   w.offer, "commit": w.tryCommit, "cancel task": w.cancelTask,
						"drain": w.drain, "log off": w.logoff,
						"weigh": w.weigh, "end session": w.endSession, "delete": w.deleteSession,
						"restart": w.restart, "explain": w.explain, "clear": w.clear, "hurry": w.hurry,
					})
				})
			})
		})
	}
}

// drawSession draws the settings of a session.
func drawSession(t *rapid.T, name string) *job.Queue {
	curve := one(t, "curve", job.Curve{Kind: job.CurveImmediate}, job.Curve{Kind: job.CurveImmediate}, job.Curve{Kind: job.CurveLinear, Base: 1000, Step: 500})
	q := job.NewQueue(name)
	q.Retry = job.Retry{
		Limit: job.LimitOf(one[uint32](t, "max retries", 1, 0, 3)), LossLimit: job.LimitOf(one[uint32](t, "max losses", 2, 1, 5)),
		Place: job.PlaceFront, Curve: &curve,
	}
	q.FrontOrder = one(t, "front order", job.FrontBySeq, job.FrontLIFO)
	q.RunTimeout = one[job.Millis](t, "task max time", 0, 0, 2600, 7000)
	q.StartTimeout = one[job.Millis](t, "assign timeout", 0, 0, 1500)
	q.Grid = &job.Grid{
		Weight: one[uint8](t, "weight", 5, 2, 9), MaxEngines: one(t, "max engines", 0, 0, 2), Urgent: one(t, "urgent", false, false, false, false, false, true),
		MaxCopies: one[uint8](t, "max copies", 2, 3, 3, 1), MaxReschedules: one[uint32](t, "max reschedules", 2, 9, 1, 0),
		LossesCharged: rapid.Bool().Draw(t, "losses charged"), AnyHost: rapid.Bool().Draw(t, "any host"),
		EvictedPlace: one(t, "evicted place", job.PlaceBack, job.PlaceKeep, job.PlaceFront), LostPlace: one(t, "lost place", job.PlaceUnset, job.PlaceKeep, job.PlaceBack, job.PlaceFront), CopyPlace: one(t, "copy place", job.PlaceBack, job.PlaceKeep, job.PlaceFront),
		OnTimeout: one(t, "on timeout", job.TimeoutRetry, job.TimeoutReschedule), PollPeriod: one[job.Millis](t, "poll period", 0, 0, 4000), TimeoutSlack: one[job.Millis](t, "slack", 0, 2000),
		Collection: one(t, "collection", job.CollectImmediately, job.CollectAfterSubmit, job.CollectLater, job.CollectNever),
		AutoCancel: one(t, "auto cancel", job.AutoCancelNever, job.AutoCancelNever, job.AutoCancelNever, job.AutoCancelNever, job.AutoCancelNever, job.AutoCancelNever, job.AutoCancelLibload, job.AutoCancelAlways),
		Retain:     one[job.Millis](t, "keep", 0, 20*job.Second), ClientTimeout: one[job.Millis](t, "client timeout", 0, 0, 0, 0, 0, 12*job.Second),
		FenceWait: one[job.Millis](t, "fence wait", 0, 1800), RetryElsewhere: rapid.Bool().Draw(t, "retry elsewhere"),
		Exclusion: drawExclusion(t),
	}
	q.NonIdempotent = one(t, "not idempotent", false, false, false, false, false, true)
	if q.RetainDone = job.MaxMillis; q.Grid.Collection == job.CollectNever {
		q.RetainDone = 0
	}
	return q
}
