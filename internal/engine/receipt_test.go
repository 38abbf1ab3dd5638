package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Idempotency: core.md section 7.

func TestTheSameKeyAndContentGetTheFirstAnswerAgain(t *testing.T) {
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", keyed("k"))
		again := r.PutAgain(newNamed("q", "a", keyed("k")))[0]
		if !again.Duplicate || again.ID != id || again.Job == nil || again.Job.State != job.Ready {
			r.Errorf("%+v", again)
		}
		w := r.Anonymous(9)
		w.Gets("a")
		w.OK("a")
		again = r.PutAgain(newNamed("q", "a", keyed("k")))[0]
		if !again.Duplicate || again.ID != id || again.Job.State != job.Done {
			r.Errorf("as it is now: %+v", again)
		}
		if s := r.Stats(); s.Put != 1 || s.Duplicates != 2 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAReceiptOutlivesItsJobForTheWindow(t *testing.T) {
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", keyed("k"), func(n *engine.NewJob) { n.Job.RetainDone = 0 })
		w := r.Anonymous(9)
		w.Gets("a")
		w.OK("a")
		r.Expect("a", job.None)
		r.Restart(0)
		r.Pass(job.Hour - 1)
		gone := newNamed("q", "a", keyed("k"), func(n *engine.NewJob) { n.Job.RetainDone = 0 })
		if again := r.PutAgain(gone)[0]; !again.Duplicate || again.ID != id || again.Job != nil {
			r.Errorf("%+v", again)
		}
		r.Pass(1)
		if n := r.Rows(job.Receipts); n != 0 {
			r.Errorf("%d receipts after the window", n)
		}
		if again := r.PutAgain(gone)[0]; again.Duplicate || again.ID == id {
			r.Errorf("after the window: %+v", again)
		}
	})
}

func TestTheSameKeyWithOtherContentIsAConflict(t *testing.T) {
	for name, edit := range map[string]func(*engine.NewJob){
		"payload":       func(n *engine.NewJob) { n.Payload = []byte("b") },
		"type":          func(n *engine.NewJob) { n.Job.Type = "u" },
		"group":         grouped("g"),
		"priority":      func(n *engine.NewJob) { n.Job.Priority = 5 },
		"policy":        limited(3, nil),
		"copies":        copies(2),
		"place":         func(n *engine.NewJob) { n.Place = job.PlaceFront },
		"labels":        func(n *engine.NewJob) { n.Job.Extras = &job.Extras{Labels: []job.Label{{Key: "a", Value: "b"}}} },
		"requirements":  func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "a", Op: "=", Value: "b"}} },
		"retention":     func(n *engine.NewJob) { n.Job.RetainDone = 7 },
		"dead's":        func(n *engine.NewJob) { n.Job.RetainDead = 7 },
		"run timeout":   func(n *engine.NewJob) { n.Job.RunTimeout = 7 },
		"start timeout": func(n *engine.NewJob) { n.Job.StartTimeout = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.Add("q", "a", keyed("k"))
				_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "x"), newNamed("q", "a", keyed("k"), edit)})
				if job.KindOf(err) != job.Exists {
					r.Errorf("%v", err)
				}
				if n, _ := r.Count(r.Context(), all); n != 1 {
					r.Errorf("%d jobs after a refused call", n)
				}
			})
		})
	}
}

func TestDatesAreNotContent(t *testing.T) { // a sender computes them from now, each time
	for name, edit := range map[string]func(*engine.NewJob){
		"due":    due(5),
		"expiry": func(n *engine.NewJob) { n.Job.ExpiresAt = 1 << 50 },
		"grace":  func(n *engine.NewJob) { n.Job.GraceUntil = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				id := r.Add("q", "a", keyed("k"))
				if again := r.PutAgain(newNamed("q", "a", keyed("k"), edit))[0]; !again.Duplicate || again.ID != id {
					r.Errorf("%+v", again)
				}
			})
		})
	}
}

func TestAKeySpeaksOfItsQueueOnly(t *testing.T) {
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", keyed("k"))
		if other := r.PutAgain(newNamed("r", "a", keyed("k")))[0]; other.Duplicate || other.ID == id {
			r.Errorf("%+v", other)
		}
	})
}

func TestTwinKeysInOneCallAreOneJob(t *testing.T) {
	scenario(t, func(r *rig) {
		added := r.PutAgain(newNamed("q", "a", keyed("k")), newNamed("q", "b"), newNamed("q", "a", keyed("k")))
		if added[0].Duplicate || !added[2].Duplicate || added[2].ID != added[0].ID || added[2].Job == nil || added[1].Duplicate {
			r.Errorf("%+v", added)
		}
		if n, _ := r.Count(r.Context(), all); n != 2 {
			r.Errorf("%d jobs", n)
		}
		added = r.PutAgain(newNamed("q", "a", keyed("k")), newNamed("q", "a", keyed("k")))
		if !added[0].Duplicate || !added[1].Duplicate || added[0].ID != added[1].ID {
			r.Errorf("known already: %+v", added)
		}
		_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "x", keyed("l")), newNamed("q", "y", keyed("l"))})
		if n, _ := r.Count(r.Context(), all); job.KindOf(err) != job.Exists || n != 2 {
			r.Errorf("twins of different content: %v, %d jobs", err, n)
		}
	})
}

func TestReceiptsSurviveAPowerCut(t *testing.T) { // I5
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", keyed("k"))
		r.PowerCut()
		if again := r.PutAgain(newNamed("q", "a", keyed("k")))[0]; !again.Duplicate || again.ID != id {
			r.Errorf("%+v", again)
		}
	})
}
