package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
)

// TestEveryAnswerSurvivesAPowerCutByItself: no other command comes after it
// whose sync would save it too.
func TestEveryAnswerSurvivesAPowerCutByItself(t *testing.T) { // I5
	take := func(r *rig) engine.Delivery {
		return r.Leased(engine.LeaseOptions{Queues: []string{"q"}, For: job.Hour}, "a")["a"]
	}
	for name, c := range map[string]struct{ do, check func(r *rig) }{
		"put": {
			func(r *rig) { r.AddAll("q", "b") },
			func(r *rig) { r.Expect("b", job.Ready) },
		},
		"ok": {
			func(r *rig) { r.Settled(take(r), job.OK) },
			func(r *rig) { r.Expect("a", job.Done) },
		},
		"retry": {
			func(r *rig) { r.Settled(take(r), job.Retried) },
			func(r *rig) {
				if j := r.Expect("a", job.Scheduled); j.Attempts != 1 {
					r.Errorf("%d attempts", j.Attempts)
				}
			},
		},
		"dead": {
			func(r *rig) { r.Settled(take(r), job.Died) },
			func(r *rig) { r.Expect("a", job.Dead) },
		},
		"release": {
			func(r *rig) {
				r.Settled(take(r), job.Released, func(s *engine.Settle) { s.Delay = job.Hour })
			},
			func(r *rig) { r.Expect("a", job.Scheduled) },
		},
		"delete": {
			func(r *rig) {
				if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"]); err != nil {
					r.Fatal(err)
				}
			},
			func(r *rig) { r.Expect("a", job.None) },
		},
		"cancel": {
			func(r *rig) { r.Operate("a", cancel) },
			func(r *rig) { r.Expect("a", job.Dead) },
		},
		"patch": {
			func(r *rig) {
				later := r.Now().Add(job.Hour)
				r.Operate("a", rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.ReadyAt = later }})
			},
			func(r *rig) { r.Expect("a", job.Scheduled) },
		},
		"settings": {
			func(r *rig) { r.SetQueue("q", func(q *job.Queue) { q.MaxJobs = 1 }) },
			func(r *rig) { r.TooMuch(newNamed("q", "b")) },
		},
		"pause": {
			func(r *rig) { r.SetQueue("q", func(q *job.Queue) { q.Paused = true }) },
			func(r *rig) { r.Anonymous(1, "q").Gets() },
		},
		"hold": {
			func(r *rig) {
				r.Add("held", "h", grouped("g"))
				if err := enginetest.HoldGroup(r.Context(), r.Engine, "held", "g", r.Now().Add(job.Hour)); err != nil {
					r.Fatal(err)
				}
			},
			func(r *rig) { r.Anonymous(1, "held").Gets() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.AddAll("q", "a")
				c.do(r)
				r.WorstPowerCut()
				c.check(r)
			})
		})
	}
}

func TestPositionsOfASecondBlockAreNotDrawnAgainAfterACrash(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.AddAll("q", "first block")
		if err := r.UseUpPositions(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.AddAll("q", "second block")
		r.WorstPowerCut()
		r.AddAll("q", "after the crash")
		first, second, after := r.Job("first block").Seq, r.Job("second block").Seq, r.Job("after the crash").Seq
		if first >= second || second >= after {
			r.Errorf("positions %d, %d, %d: they must rise", first, second, after)
		}
	})
}
