package meter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/meter"
)

func (r *rig) listen(f meter.EventFilter) *meter.Listener {
	r.Helper()
	l, err := r.Part.Meter.Listen(f)
	if err != nil {
		r.Fatal(err)
	}
	return l
}

// heard reads what there is by now.
func (r *rig) heard(l *meter.Listener) (list []meter.Event, lost uint64) {
	r.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	for {
		some, n, err := l.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return list, lost
		}
		if err != nil {
			r.Fatal(err)
		}
		list, lost = append(list, some...), lost+n
	}
}

func (r *rig) story(list []meter.Event) (out []string) {
	for _, ev := range list {
		line := ev.Kind.String() + " " + r.Names[ev.ID]
		if ev.Reason != "" {
			line += " " + ev.Reason
		}
		out = append(out, line)
	}
	return out
}

func TestEventsTellTheLifeOfJobs(t *testing.T) {
	scenario(t, func(r *rig) {
		all, dead := r.listen(meter.EventFilter{}), r.listen(meter.EventFilter{Queues: []string{"q"}, Kinds: []meter.EventKind{meter.JobDied, meter.JobCancelled}})
		defer all.Close()
		r.Add("q", "a", retry(job.Retry{Curve: wait(job.Second), Limit: job.LimitOf(1)}))
		r.Add("q", "b")
		r.Add("else", "c")
		s := r.Anonymous(2, "q")
		s.Gets("a", "b")
		s.Fails("a", func(s *engine.Settle) { s.Failure.Timeout = true })
		s.OK("b")
		r.Pass(job.Second)
		s.Gets("a")
		s.Fails("a")
		r.Operate("a", revive)
		s.Gets("a")
		s.End()
		r.Operate("a", cancel)
		r.Operate("c", cancel)
		want := []string{
			"enqueued a", "enqueued b", "enqueued c", "taken a", "taken b", "retried a timeout", "completed b", "ready a", "taken a",
			"died a exhausted", "revived a", "taken a", "lapsed a disconnect", "cancelled a", "cancelled c",
		}
		list, lost := r.heard(all)
		if got := r.story(list); !slices.Equal(got, want) || lost != 0 {
			t.Errorf("got  %q\nwant %q; %d lost", got, want, lost)
		}
		for _, ev := range list {
			if ev.Type != "t" || ev.At == 0 || ev.Gone || ev.Queue == "" {
				t.Errorf("got %+v", ev)
			}
		}
		if list, _ := r.heard(dead); len(list) != 2 || list[0].Attempt != 2 || list[0].State != job.Dead {
			t.Errorf("who chose deaths of q heard %+v", list)
		}
		dead.Close()
		r.AddAll("q", "d")
		if list, _ := r.heard(dead); len(list) != 0 {
			t.Errorf("who closed heard %+v", list)
		}
	})
}

// A reader that does not read loses, is told how many and where, and holds
// nobody up.
func TestASlowListenerIsToldWhatItLost(t *testing.T) {
	const more, room = 100, 4096
	scenario(t, func(r *rig) {
		l := r.listen(meter.EventFilter{})
		defer l.Close()
		var jobs []engine.NewJob
		for i := range room + more {
			jobs = append(jobs, newNamed("q", fmt.Sprint(i)))
		}
		added, err := r.Put(r.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range added {
			r.Call(a.ID, fmt.Sprint(i))
		}
		list, lost, err := l.Next(r.Context())
		if err != nil || len(list) != room || lost != more {
			t.Fatalf("%d events, %d lost, %v", len(list), lost, err)
		}
		if first, last := r.Names[list[0].ID], r.Names[list[room-1].ID]; first != "0" || last != fmt.Sprint(room-1) {
			t.Errorf("from %s to %s", first, last)
		}
		r.Add("q", "after")
		if list, lost := r.heard(l); len(list) != 1 || lost != 0 || r.Names[list[0].ID] != "after" {
			t.Errorf("then %+v, %d lost", list, lost)
		}
	}, func(r *rig) { r.Twice = false })
}

func TestListenersAreBoundedAndEndWithTheServer(t *testing.T) {
	scenario(t, func(r *rig) {
		var list []*meter.Listener
		for range 64 {
			list = append(list, r.listen(meter.EventFilter{}))
		}
		if _, err := r.Part.Meter.Listen(meter.EventFilter{}); job.KindOf(err) != job.OverLimit {
			t.Errorf("one more: %v", err)
		}
		list[0].Close()
		list[0].Close()
		list[0] = r.listen(meter.EventFilter{})
		r.AddAll("q", "a")
		r.End()
		for _, l := range list {
			if got, _, err := l.Next(r.Context()); err != nil || len(got) != 1 {
				t.Fatalf("what came before the stop: %v, %v", got, err)
			}
			if _, _, err := l.Next(r.Context()); !errors.Is(err, engine.ErrStreamEnded) {
				t.Fatalf("after the stop: %v", err)
			}
			l.Close()
		}
		if _, err := r.Part.Meter.Listen(meter.EventFilter{}); job.KindOf(err) != job.Unavailable {
			t.Errorf("after the stop: %v", err)
		}
	})
}

// Whoever adds events up knows what the store knows: over random histories,
// the last event of each job tells its state, or that it is gone.
func TestEventsAddUpToTheStore(t *testing.T) {
	for seed := range uint64(20) {
		scenario(t, func(r *rig) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			l := r.listen(meter.EventFilter{})
			defer l.Close()
			states := map[job.ID]job.State{}
			s := r.Anonymous(5)
			for i := range 120 {
				switch n := rnd.IntN(10); {
				case n < 4:
					r.Add("q", fmt.Sprint(i), retry(job.Retry{Curve: wait(job.Second), Limit: job.LimitOf(uint32(rnd.IntN(3)))}),
						due(r.Clock.Wall()+job.Millis(rnd.IntN(3000)-1500)), func(n *engine.NewJob) {
							n.Job.RetainDone, n.Job.RetainDead = job.Millis(rnd.IntN(2)*5000), job.Millis(rnd.IntN(2)*5000)
							n.Job.ExpiresAt = r.Clock.Wall() + job.Millis(rnd.IntN(20_000)+1)
						})
				case n < 8:
					s.Read()
					for _, d := range s.Held {
						r.Try(engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Outcome(rnd.IntN(4))})
						delete(s.Held, r.Names[d.Job.ID])
						break
					}
				case n == 8:
					s.End()
					s = r.Anonymous(5)
				default:
					r.Pass(job.Millis(rnd.IntN(4000)))
				}
			}
			list, lost := r.heard(l)
			for _, ev := range list {
				if states[ev.ID] = ev.State; ev.Gone {
					delete(states, ev.ID)
				}
			}
			stored, err := r.List(r.Context(), all, 1000)
			if err != nil || lost > 0 {
				t.Fatal(err, lost)
			}
			for _, j := range stored {
				if states[j.Job.ID] != j.Job.State {
					t.Errorf("seed %d: %s is %s, events say %s", seed, r.Names[j.Job.ID], j.Job.State, states[j.Job.ID])
				}
				delete(states, j.Job.ID)
			}
			for id, state := range states {
				t.Errorf("seed %d: %s is gone, events say %s", seed, r.Names[id], state)
			}
		})
	}
}
