package embedded

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// namer makes jobs that each have names of their own.
type namer struct{ ids *job.IDs }

func (n namer) job(word string, edit func(*job.Job)) *job.Job {
	id := n.ids.Next(1)
	j := &job.Job{
		ID: id, Queue: "queue " + word, Type: "type " + word, State: job.Ready, Band: job.BandNormal, Created: 1, ReadyAt: 1,
		Requires: []job.Requirement{{Property: "only", Op: "=", Value: word}},
		Payload:  id, Copies: 1, CopiesWanted: 1, RetainDone: job.Unset, RetainDead: job.Unset,
	}
	if edit != nil {
		edit(j)
	}
	return j
}

// Names that were used once are given back, and what has a name keeps it: a type, a
// queue and a line that something is in are never those of others.
func TestNamesUsedOnceAreGivenBack(t *testing.T) {
	const rounds, each = 40, idleMax
	s, update := inMemory(t)
	n := namer{job.NewIDs(job.ID{}, func() uint64 { return 7 })}
	group := func(j *job.Job) { j.Queue, j.Group = "grouped", "g" }
	kept := map[string]*job.Job{
		"waits":  n.job("waits", nil),
		"first":  n.job("first", group),
		"second": n.job("second", group), // no gate stands for it yet
		"done":   n.job("done", func(j *job.Job) { j.State = job.Done }),
		"dead":   n.job("dead", func(j *job.Job) { j.State, j.DiedAt, j.Print = job.Dead, 1, 5 }),
		"later":  n.job("later", func(j *job.Job) { j.State, j.ReadyAt = job.Scheduled, 1<<40 }),
	}
	update(func(tx store.Tx) error {
		q := job.NewQueue("settings only")
		q.Paused = true
		if err := tx.Set(q); err != nil {
			return err
		}
		for _, j := range kept {
			if err := tx.Write(nil, j); err != nil {
				return err
			}
		}
		return nil
	})
	used := len(kept) + 2
	for round := range rounds {
		var list []*job.Job
		update(func(tx store.Tx) error {
			for i := range each {
				edit := func(*job.Job) {}
				switch i % 3 {
				case 1:
					edit = group
				case 2:
					edit = func(j *job.Job) { j.Queue = "many lines" }
				}
				j := n.job(fmt.Sprint(round, " ", i), edit)
				list = append(list, j)
				if err := tx.Write(nil, j); err != nil {
					return err
				}
			}
			return nil
		})
		update(func(tx store.Tx) error {
			for _, j := range list {
				got, err := tx.List(store.Filter{Types: []string{j.Type}}, 9)
				if err != nil || len(got) != 1 || got[0].ID != j.ID {
					return fmt.Errorf("%s: the jobs of the type are %v, %w", j.Type, got, err)
				}
				if err := tx.Write(j, nil); err != nil {
					return err
				}
			}
			return nil
		})
		if round == rounds/2 {
			if err := s.Reopen(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		x := s.index
		for what, size := range map[string]int{
			"names": len(s.names.num), "numbers": len(s.names.list), "types": len(x.types), "queues": len(x.queues),
			"numbers of queues": len(x.order), "lines": len(x.lines), "lines of a queue": len(x.of("many lines").lines),
		} {
			if most := 2 * (idleMax + 3*each + 3*used); size > most {
				t.Fatalf("round %d: there are %d %s for %d jobs, more than %d", round, size, what, len(kept), most)
			}
		}
	}
	update(func(tx store.Tx) error {
		for word, j := range kept {
			for _, f := range []store.Filter{{Types: []string{j.Type}}, {Types: []string{j.Type}, Queues: []string{j.Queue}}} {
				got, err := tx.List(f, 9)
				if count, failed := tx.Count(f); err != nil || failed != nil || count != 1 || len(got) != 1 || got[0].ID != j.ID {
					t.Errorf("%s: the jobs of %+v are %v, counted %d; %v, %v", word, f, got, count, err, failed)
				}
			}
		}
		for _, word := range []string{"waits", "first", "second"} {
			for other := range kept {
				seeker := rule.Seeker{Holder: "h", Properties: map[string]string{"only": other}}
				for _, queues := range [][]string{nil, {kept[word].Queue}} {
					got, err := tx.Ready(queues, seeker, 9)
					has := slices.ContainsFunc(got, func(j *job.Job) bool { return j.ID == kept[word].ID })
					if err != nil || has != (word == other) {
						t.Errorf("a holder for %q of %v gets %v, %v: is %q among them?", other, queues, got, err, word)
					}
				}
			}
			if err := tx.Write(kept[word], nil); err != nil { // then the gate stands for the second
				return err
			}
		}
		if q, err := tx.Row(job.Queues, "settings only"); err != nil || !q.(*job.Queue).Paused || !s.index.of("settings only").row.Paused {
			t.Errorf("the settings of a queue without jobs are %v, %v", q, err)
		}
		return nil
	})
}
