package turn_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/turn"
)

var leased = turn.Options{Members: -1, For: job.Hour}

// tells settles members in one call, each written "a1 ok" or "a1 retry", and wants
// their verdicts to recall others: "a1; a2: a3 a4" is one for each entry.
func (r *rig) tells(held map[string]engine.Delivery, entries, want string) {
	r.Helper()
	var list []engine.Settle
	for entry := range strings.SplitSeq(entries, ", ") {
		name, how, _ := strings.Cut(entry, " ")
		d := held[name]
		o := map[string]job.Outcome{"ok": job.OK, "retry": job.Retried, "release": job.Released}[how]
		list = append(list, engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: o})
	}
	verdicts, err := r.Settle(r.Context(), list)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for i, v := range verdicts {
		text := r.Names[list[i].ID]
		if v.Err != nil {
			text += " " + v.Err.Error()
		}
		for n, id := range v.Recalled {
			if text += " "; n == 0 {
				text = strings.TrimSuffix(text, " ") + ": "
			}
			text += r.Names[id]
		}
		got = append(got, text)
	}
	if text := strings.Join(got, "; "); text != want {
		r.Fatalf("told %q, recalled %q, want %q", entries, text, want)
	}
}

// stop is what an operator stops, and how it goes on.
type stop struct {
	stop, resume func(r *rig) error
	strict, all  string // which members are recalled when a1 ends, of a1 to a4
}

var stops = map[string]stop{
	"the group": {
		func(r *rig) error { return r.Part.Desk.PauseGroup(r.Context(), job.Actor{}, "in", "a", true) },
		func(r *rig) error { return r.Part.Desk.PauseGroup(r.Context(), job.Actor{}, "in", "a", false) }, "a2 a3 a4", "a2 a3 a4",
	},
	"the inbox": {
		func(r *rig) error { return r.pauseInbox(true) },
		func(r *rig) error { return r.pauseInbox(false) }, "a2 a3 a4", "a2 a3 a4",
	},
	"the next message": {
		func(r *rig) error {
			_, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Pause, r.IDs["a2"])
			return err
		},
		func(r *rig) error {
			_, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Resume, r.IDs["a2"])
			return err
		}, "a2 a3 a4", "a2",
	},
}

func (r *rig) pauseInbox(paused bool) error {
	_, err := r.Part.Desk.SetQueue(r.Context(), "in", func(q *job.Queue) error { q.Paused = paused; return nil }, job.Actor{})
	return err
}

// What is paused stops inside a turn that a worker has: the member at work finishes,
// the others go back untouched, and the verdict names them.
func TestAPauseStopsATurnThatAWorkerHas(t *testing.T) { // inbox.md 10
	for name, s := range stops {
		for _, outcome := range []string{"ok", "retry", "release"} {
			t.Run(name+", "+outcome, func(t *testing.T) {
				inbox(t, bothModes, func(r *rig) {
					recalled := s.strict
					if r.mode("in") == job.OrderStart {
						recalled = s.all
					}
					if r.mode("in") == job.OrderStrict && outcome != "ok" { // they go back anyway
						recalled = "a2 a3 a4"
					}
					r.Members("a1", "a2", "a3", "a4")
					before := map[string]*job.Job{}
					for _, name := range []string{"a2", "a3", "a4"} {
						before[name] = r.Job(name)
					}
					held := r.Took(leased, "a: a1 a2 a3 a4")
					r.Pass(job.Second)
					r.did(s.stop(r))
					for _, name := range []string{"a1", "a2", "a3", "a4"} {
						r.Expect(name, job.Leased) // nobody is torn out of a handler
					}
					r.tells(held, "a1 "+outcome, "a1: "+recalled)
					for _, name := range strings.Fields(recalled) {
						j, was := r.Expect(name, job.Ready), before[name]
						if j.ReadyAt != was.ReadyAt || j.Attempts+j.Losses+j.Evictions+j.Suppressed != 0 || len(j.Leases) != 0 {
							r.Errorf("%s was %+v, and went back as %+v", name, was, j)
						}
						r.Refused(job.Superseded, engine.Settle{ID: j.ID, Token: held[name].Lease.Token, Outcome: job.Retried})
						r.Settled(held[name], job.Released) // says what happened already
					}
					if name == "the next message" && outcome == "release" && r.mode("in") == job.OrderStrict {
						r.Took(whole, "a: a1") // it is before the paused one, and due
						return
					}
					r.Took(whole, "")
					r.did(s.resume(r))
					if outcome == "ok" && recalled == "a2" {
						r.tells(held, "a3 ok", "a3")
						r.tells(held, "a4 ok", "a4")
						r.Took(whole, "a: a2")
						return
					}
					if recalled == "a2" { // the rest goes on
						r.tells(held, "a3 ok, a4 ok", "a3; a4")
						r.Pass(job.Minute)
						r.Took(whole, "a: a1 a2")
						return
					}
					r.Pass(job.Minute)
					r.Took(whole, map[bool]string{true: "a: a2 a3 a4", false: "a: a1 a2 a3 a4"}[outcome == "ok"])
				})
			})
		}
	}
}

func (r *rig) mode(queue string) job.Order {
	r.Helper()
	q, _, err := r.Queue(r.Context(), queue)
	r.did(err)
	return q.Order
}

func (r *rig) did(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func TestATurnGoesOnThatWasPausedAndResumed(t *testing.T) { // inbox.md 10
	for name, s := range stops {
		t.Run(name, func(t *testing.T) {
			inbox(t, bothModes, func(r *rig) {
				r.Members("a1", "a2", "a3", "a4")
				held := r.Took(leased, "a: a1 a2 a3 a4")
				r.did(s.stop(r))
				r.did(s.resume(r))
				r.tells(held, "a1 ok", "a1")
				r.tells(held, "a2 ok, a3 ok, a4 ok", "a2; a3; a4")
			})
		})
	}
}

// What a worker reports in one call has happened, whatever was paused meanwhile; and
// a recalled member that it handled nevertheless is done, as long as the order holds.
func TestWhatAWorkerDidIsNotLostToAPause(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "a2", "a3", "a4")
		held := r.Took(leased, "a: a1 a2 a3 a4")
		r.did(r.Part.Desk.PauseGroup(r.Context(), job.Actor{}, "in", "a", true))
		r.tells(held, "a1 ok, a2 ok", "a1; a2: a3 a4")
		r.Settled(held["a3"], job.OK) // late, and true
		if j := r.Expect("a4", job.Ready); len(j.Leases) != 0 {
			r.Errorf("%+v", j)
		}
		r.did(r.Part.Desk.PauseGroup(r.Context(), job.Actor{}, "in", "a", false))
		r.Took(whole, "a: a4")
	})
}

// A message that expires while another one of its turn is handled is not handled.
func TestAMessageThatExpiresInATurnIsRecalled(t *testing.T) { // inbox.md 9
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1")
		r.Member("a2", func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + job.Minute })
		r.Members("a3")
		held := r.Took(leased, "a: a1 a2 a3")
		r.Pass(job.Minute)
		r.tells(held, "a1 ok", "a1: a2")
		if j := r.Expect("a2", job.Dead); j.Reason != job.Expired || j.Attempts+j.Losses+j.Evictions != 0 {
			r.Errorf("%+v", j)
		}
		r.tells(held, "a3 ok", "a3")
	})
}

// Who asks before each delivery is not recalled: what is in its hands together goes
// out together.
func TestAHolderInTheProcessIsNotRecalled(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "a2")
		held := r.Took(whole, "a: a1 a2")
		r.did(r.Part.Desk.PauseGroup(r.Context(), job.Actor{}, "in", "a", true))
		r.tells(held, "a1 ok", "a1")
		r.tells(held, "a2 ok", "a2")
	})
}

// A hold that one member asks for is a hold of the group, and stops its turn.
func TestAHoldStopsATurn(t *testing.T) { // core.md 2
	scenario(t, func(r *rig) {
		r.SetQueue("in", toTheEnd)
		r.Members("a1", "a2", "a3")
		held := r.Took(leased, "a: a1 a2 a3")
		verdicts, err := r.Settle(r.Context(), []engine.Settle{{ID: r.IDs["a1"], Token: held["a1"].Lease.Token, Hold: job.Minute}})
		if err != nil || verdicts[0].Err != nil || len(verdicts[0].Recalled) != 2 {
			r.Fatalf("%+v, %v", verdicts, err)
		}
		r.Took(whole, "")
		r.Pass(2 * job.Minute)
		r.Took(whole, "a: a2 a3")
	})
}
