package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
)

// names says which jobs a search finds, in its order.
func (r *rig) finds(s query.Search) (found []string) {
	r.Helper()
	err := r.Each(r.Context(), s, func(l query.Listed) (bool, error) {
		found = append(found, r.Names[l.Job.ID])
		return true, nil
	})
	if err != nil {
		r.Fatal(err)
	}
	return found
}

// named judges by the payload, which is a job's name.
func named(keep func(name string) bool) query.Judge {
	return oneByOne(func(payload []byte) (bool, error) { return keep(string(payload)), nil })
}

// oneByOne looks at one payload after another.
func oneByOne(keep func(payload []byte) (bool, error)) query.Judge {
	return func(_ context.Context, list []query.Listed) (chosen []query.Listed, err error) {
		for _, l := range list {
			yes, err := keep(l.Payload)
			if err != nil {
				return nil, err
			}
			if yes {
				chosen = append(chosen, l)
			}
		}
		return chosen, nil
	}
}

func TestASearchLooksAtEveryCandidateOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		all := numbered("j", 1100)
		r.AddAll("q", all...)
		r.AddAll("other", "x")
		var want []string
		for i := 3; i < 1100; i += 10 {
			want = append(want, fmt.Sprintf("j%03d", i))
		}
		third := func(name string) bool { return name[len(name)-1] == '3' }
		s := query.Search{Filter: engine.Filter{Queues: []string{"q"}}}
		s.Judge = named(third)
		if got := r.finds(s); !slices.Equal(got, want) {
			t.Errorf("by payload: %v", got)
		}
		s.Filter.Desc = true
		slices.Reverse(want)
		if got := r.finds(s); !slices.Equal(got, want) {
			t.Errorf("by payload, newest first: %v", got)
		}
		s.Judge, s.Where = nil, func(j *job.Job) bool { return third(r.Names[j.ID]) }
		if got := r.finds(s); !slices.Equal(got, want) {
			t.Errorf("by the job: %v", got)
		}
		s.Judge = named(func(name string) bool { return name == "j103" || name == "j104" })
		if got := r.finds(s); !slices.Equal(got, []string{"j103"}) {
			t.Errorf("by both: %v", got)
		}
	})
}

func TestASearchEndsWithItsJudgeAndItsCaller(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", numbered("j", 5)...)
		no, looked := errors.New("no"), 0
		s := query.Search{Judge: oneByOne(func([]byte) (bool, error) { looked++; return false, no })}
		if err := r.Each(r.Context(), s, nil); !errors.Is(err, no) || looked != 1 {
			t.Errorf("%v after %d", err, looked)
		}
		ctx, cancel := context.WithCancel(r.Context())
		s.Judge = oneByOne(func([]byte) (bool, error) { cancel(); return false, ctx.Err() })
		if err := r.Each(ctx, s, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller left: %v", err)
		}
		n := 0
		s = query.Search{Payload: true}
		err := r.Each(r.Context(), s, func(l query.Listed) (bool, error) {
			if string(l.Payload) != r.Names[l.Job.ID] {
				t.Errorf("the payload of %s is %s", r.Names[l.Job.ID], l.Payload)
			}
			n++
			return n < 2, nil
		})
		if err != nil || n != 2 {
			t.Errorf("enough was %d, %v", n, err)
		}
	})
}

// A judge may take its time: takes and puts go on while it does.
func TestNobodyWaitsForAJudge(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		s := query.Search{Judge: oneByOne(func([]byte) (bool, error) {
			close(entered)
			<-leave
			return true, nil
		})}
		go func() {
			defer close(done)
			if got := r.finds(s); !slices.Equal(got, []string{"a"}) {
				t.Errorf("found %v", got)
			}
		}()
		<-entered
		r.AddAll("q", "b")
		r.Anonymous(2).Gets("a", "b")
		if got := r.finds(query.Search{}); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("a search without a judge found %v", got)
		}
		close(leave)
		<-done
	})
}

// A run that was chosen by payloads touches those and no others, also over a
// restart: the judge is asked before it begins, and never again.
func TestARunByPayloadsHasTheJobsItsJudgeChose(t *testing.T) {
	scenario(t, func(r *rig) {
		all := numbered("j", 620)
		r.Dies("q", boom, all)
		chosen := func(name string) bool { return name >= "j05" && name < "j57" } // 520 of them, more than a page
		want := 0
		for _, name := range all {
			if chosen(name) {
				want++
			}
		}
		start := func(ask job.Replay, judge query.Judge) job.ID {
			r.Helper()
			ask.By, ask.Select.Filter = ann, "as the test says"
			p, err := r.Part.Dead.StartReplay(r.Context(), ask, judge)
			if err != nil {
				r.Fatal(err)
			}
			return p.ID
		}
		r.Ends(start(job.Replay{}, named(func(string) bool { return false })), 0, 0, 0, 0)
		if n := r.CountOf(dead("q")); n != int64(len(all)) {
			r.Fatalf("a run without jobs left %d dead", n)
		}
		id := start(job.Replay{Rate: 1000}, named(chosen))
		r.Pass(300)
		r.Restart(0)
		r.Pass(3 * job.Second)
		r.Ends(id, int64(want), 0, 0, 0)
		for _, name := range all {
			if state := r.Job(name).State; (state == job.Ready) != chosen(name) {
				r.Fatalf("%s is %s", name, state)
			}
		}
	}, func(r *rig) { r.Opts.Server.RetainDead = job.Day })
}
