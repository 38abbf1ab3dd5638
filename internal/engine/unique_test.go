package engine_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
)

// Unique keys: core.md section 7, zizq.md 1.15.

func unique(key string, while job.UniqueScope) func(*engine.NewJob) {
	return func(n *engine.NewJob) { n.Job.Extras = &job.Extras{Unique: &job.Unique{Key: key, While: while}} }
}

// bring puts a job and brings it into a state.
func (r *rig) bring(name string, s job.State, edits ...func(*engine.NewJob)) {
	r.Helper()
	if s == job.Scheduled {
		edits = append(edits, due(r.Now()+job.Hour))
	}
	r.Add("owners", name, edits...)
	if s < job.Leased {
		return
	}
	d := r.Leased(engine.LeaseOptions{Queues: []string{"owners"}, Max: 1, For: job.Hour}, name)[name]
	switch s {
	case job.Done:
		r.Settled(d, job.OK)
	case job.Dead:
		r.Settled(d, job.Died)
	default:
	}
	r.Expect(name, s)
}

// listed is how long a job of a scope has its key.
var listed = [job.UniqueScopes][]job.State{
	job.WhileQueued: {job.Scheduled, job.Ready},
	job.WhileActive: {job.Scheduled, job.Ready, job.Leased},
	job.WhileExists: {job.Scheduled, job.Ready, job.Leased, job.Done, job.Dead},
}

func within(list []job.State, s job.State) bool {
	for _, in := range list {
		if in == s {
			return true
		}
	}
	return false
}

func TestANewcomerMeetsTheOwnerOfItsKey(t *testing.T) { // zizq.md 1.15: the table, for owners of every scope
	for incoming := range job.UniqueScopes {
		for own := range job.UniqueScopes {
			for s := job.Scheduled; s < job.States; s++ {
				t.Run(fmt.Sprintf("%s meets %s that is %s", incoming, own, s), func(t *testing.T) {
					scenario(t, func(r *rig) {
						r.bring("a", s, unique("k", own))
						before, _ := r.Count(r.Context(), all)
						added := r.PutAgain(newNamed("q", "b", unique("k", incoming)))[0]
						want := within(listed[own], s) && within(listed[incoming], s)
						if added.Duplicate != want || want != (added.ID == r.IDs["a"]) {
							t.Fatalf("duplicate %t, want %t", added.Duplicate, want)
						}
						after, _ := r.Count(r.Context(), all)
						if j := r.Job("a"); want && (after != before || j.PayloadSize != 1) {
							t.Errorf("%d jobs, then %d; %+v", before, after, j)
						}
						if j, _, _ := r.Get(r.Context(), added.ID); !want && !j.HoldsKey || r.Job("a").HoldsKey != (want || !want && false) {
							t.Errorf("the newcomer %+v, the other %+v", j, r.Job("a"))
						}
					})
				})
			}
		}
	}
}

func TestAKeyIsFreeAgainWhenItsJobIsGone(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"delete": func(r *rig) { _, _ = r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"]) },
		"cancelled": func(r *rig) {
			r.Operate("a", cancel)
			_, _ = r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"])
		},
		"expiry": func(r *rig) { r.Pass(2 * job.Minute) },
		"purge": func(r *rig) {
			r.Operate("a", cancel)
			r.Pass(8 * job.Day)
		},
		"pushed out of a full queue": func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.MaxJobs, q.OnFull, q.RetainDead = 1, job.FullDropOldest, 0 })
			r.AddAll("q", "newer")
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.Add("q", "a", unique("k", job.WhileExists), func(n *engine.NewJob) {
					if name == "expiry" {
						n.Job.ExpiresAt, n.Job.RetainDead = r.Now()+job.Minute, 0
					}
				})
				end(r)
				r.Expect("a", job.None)
				if added := r.PutAgain(newNamed("p", "b", unique("k", job.WhileExists)))[0]; added.Duplicate {
					r.Errorf("%+v", added)
				}
			})
		})
	}
}

func TestAJobPastItsRetentionIsInNobodysWay(t *testing.T) {
	scenario(t, func(r *rig) {
		r.bring("a", job.Done, unique("k", job.WhileExists))
		r.Clock.Step.Add(int64(job.Hour)) // the put comes before the clock's duties
		if added := r.PutAgain(newNamed("q", "b", unique("k", job.WhileExists)))[0]; added.Duplicate {
			r.Errorf("%+v", added)
		}
	})
}

func TestAKeyBelongsToTheServerNotToAQueue(t *testing.T) {
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", unique("k", job.WhileQueued))
		other := newNamed("other", "b", unique("k", job.WhileQueued), func(n *engine.NewJob) { n.Job.Type = "u" })
		if added := r.PutAgain(other)[0]; !added.Duplicate || added.ID != id || added.Job.Queue != "q" {
			r.Errorf("%+v", added)
		}
		if s := r.Stats(); s.Put != 1 || s.Duplicates != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestJobsOfOneCallSeeEachOthersKeys(t *testing.T) { // zizq.md 1.8
	scenario(t, func(r *rig) {
		r.bring("old", job.Leased, unique("k", job.WhileActive))
		added := r.PutAgain(
			newNamed("q", "a", unique("k", job.WhileActive)), // the old one is in its way
			newNamed("q", "b", unique("k", job.WhileQueued)), // it is not
			newNamed("q", "c", unique("k", job.WhileExists)), // the second of them is
			newNamed("q", "d"),
			newNamed("q", "e", unique("l", job.WhileQueued)),
		)
		old := r.IDs["old"]
		for i, want := range []struct {
			duplicate bool
			id        job.ID
		}{{true, old}, {false, added[1].ID}, {true, added[1].ID}, {false, added[3].ID}, {false, added[4].ID}} {
			if a := added[i]; a.Duplicate != want.duplicate || a.ID != want.id || a.Job == nil || a.Job.ID != want.id {
				r.Errorf("%d: %+v", i, a)
			}
		}
		if added[1].ID == old || r.Job("old").HoldsKey {
			r.Errorf("%+v", r.Job("old"))
		}
	})
}

func TestADuplicateByItsKeyDoesNotCountAgainstAFullQueue(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs = 1 })
		r.Add("q", "a", unique("k", job.WhileQueued))
		if added := r.PutAgain(newNamed("q", "b", unique("k", job.WhileQueued)), newNamed("q", "c", unique("k", job.WhileQueued))); !added[0].Duplicate || !added[1].Duplicate {
			r.Errorf("%+v", added)
		}
		r.TooMuch(newNamed("q", "d", unique("l", job.WhileQueued)))
		if added := r.PutAgain(newNamed("p", "e", unique("l", job.WhileQueued)))[0]; added.Duplicate {
			r.Error("a refused call left its key behind")
		}
	})
}

func TestAnIdempotencyKeyGoesBeforeAUniqueKey(t *testing.T) { // core.md section 7
	scenario(t, func(r *rig) {
		id := r.Add("q", "a", keyed("i"), unique("k", job.WhileQueued))
		w := r.Anonymous(9)
		w.Gets("a")
		w.OK("a")
		again := r.PutAgain(newNamed("q", "a", keyed("i"), unique("k", job.WhileQueued)))[0]
		if !again.Duplicate || again.ID != id || again.Job.State != job.Done {
			r.Errorf("%+v", again)
		}
		if _, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "a", keyed("i"), unique("k", job.WhileActive))}); job.KindOf(err) != job.Exists {
			r.Errorf("the scope is content: %v", err)
		}
		twins := r.PutAgain(newNamed("q", "b", keyed("j"), unique("l", job.WhileQueued)), newNamed("q", "c", unique("l", job.WhileQueued)),
			newNamed("q", "b", keyed("j"), unique("l", job.WhileQueued)))
		for i, a := range twins {
			if a.ID != twins[0].ID || a.Job == nil || a.Duplicate != (i > 0) {
				r.Errorf("%d: %+v", i, a)
			}
		}
	})
}

func TestADuplicateByItsUniqueKeyLeavesNoReceipt(t *testing.T) { // nothing is written
	scenario(t, func(r *rig) {
		r.Add("q", "a", unique("k", job.WhileQueued))
		r.PutAgain(newNamed("q", "b", keyed("i"), unique("k", job.WhileQueued)))
		if n := r.Rows(job.Receipts); n != 0 {
			r.Errorf("%d receipts", n)
		}
	})
}

func TestAQueuedKeySurvivesADisconnectAndARestart(t *testing.T) { // zizq.md 9, defect 20
	scenario(t, func(r *rig) {
		r.Add("q", "a", unique("k", job.WhileQueued))
		dup := func(want bool, when string) {
			r.Helper()
			added := r.PutAgain(newNamed("other", "b", unique("k", job.WhileQueued)))[0]
			if added.Duplicate != want {
				r.Fatalf("%s: %+v", when, added)
			}
			if !want {
				if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, added.ID); err != nil {
					r.Fatal(err)
				}
			}
		}
		s := r.Anonymous(1, "q")
		s.Gets("a")
		dup(false, "taken")
		s.End()
		dup(true, "disconnected")
		r.Anonymous(1, "q").Gets("a")
		r.PowerCut()
		dup(true, "after a power cut")
		r.Anonymous(1, "q").Gets("a")
		dup(false, "taken")
		r.Restart(0)
		dup(true, "restarted")
	})
}

func TestKeysSurviveARestart(t *testing.T) { // I5
	scenario(t, func(r *rig) {
		r.bring("a", job.Dead, unique("a", job.WhileExists))
		r.bring("b", job.Scheduled, unique("b", job.WhileActive))
		r.PowerCut()
		for _, key := range []string{"a", "b"} {
			if added := r.PutAgain(newNamed("q", "x", unique(key, job.WhileExists)))[0]; added.ID != r.IDs[key] {
				r.Errorf("%s: %+v", key, added)
			}
		}
	})
}

func TestAReplayLeavesThoseDeadWhoseKeyAnotherJobHas(t *testing.T) { // core.md section 7
	scenario(t, func(r *rig) {
		r.bring("a", job.Dead, unique("k", job.WhileActive))
		r.bring("b", job.Dead, unique("l", job.WhileActive))
		r.Add("other", "owner", unique("k", job.WhileQueued))
		if v, err := enginetest.Operate(r.Context(), r.Engine, r.IDs["a"], rule.Command{Verb: rule.Revive}); job.KindOf(err) != job.Exists {
			r.Errorf("%+v, %v", v, err)
		}
		p := r.Ends(r.StartReplay(job.Replay{Select: job.Selection{Queues: []string{"owners"}}}), 1, 0, 0, 0)
		if p.Conflict != 1 {
			r.Errorf("%+v", p)
		}
		r.Expect("a", job.Dead)
		r.Expect("b", job.Ready)
		if !r.Job("b").HoldsKey {
			r.Error("a job that was replayed does not have its key")
		}
	})
}

func TestTwoDeadJobsOfOneKeyAreNotBothReplayed(t *testing.T) {
	scenario(t, func(r *rig) {
		r.bring("a", job.Dead, unique("k", job.WhileActive))
		r.bring("b", job.Dead, unique("k", job.WhileActive))
		p := r.Ends(r.StartReplay(job.Replay{Select: job.Selection{Queues: []string{"owners"}}}), 1, 0, 0, 0)
		if p.Conflict != 1 {
			r.Errorf("%+v", p)
		}
		r.Expect("a", job.Ready)
		r.Expect("b", job.Dead)
	})
}
