package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// told names the settings that the tests change.
func told(from, to *job.Queue) (list []job.Change) {
	if from.MaxJobs != to.MaxJobs {
		list = append(list, job.Change{Field: "max_jobs", From: fmt.Sprint(from.MaxJobs), To: fmt.Sprint(to.MaxJobs)})
	}
	return list
}

// auditor reads the audit log again and again.
type auditor struct {
	*rig
	seen int
}

// told wants the entries that were written since the last time, the oldest
// first, each as: who, what, of what, how many, changes.
func (r *auditor) told(want ...string) {
	r.Helper()
	list, err := r.Part.Audit.List(r.Context(), job.ID{}, 1000)
	if err != nil {
		r.Fatal(err)
	}
	slices.Reverse(list)
	var got []string
	for _, a := range list[r.seen:] {
		text := fmt.Sprintf("%s %s %s %d", a.By.Name, a.Action, a.Subject, a.Count)
		for _, c := range a.Changes {
			text += fmt.Sprintf(" %s:%s>%s", c.Field, c.From, c.To)
		}
		if a.At != r.Now() {
			text += fmt.Sprintf(" at %d, not %d", a.At, r.Now())
		}
		got = append(got, text)
	}
	r.seen = len(list)
	if !slices.Equal(got, want) {
		r.Errorf("the audit log says\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestEveryActionOfAnOperatorIsAudited(t *testing.T) { // retry.md section 3
	ann := job.Actor{Name: "ann", From: "::1"}
	scenario(t, func(r *rig) {
		ctx, log := r.Context(), &auditor{rig: r}
		must := func(err error) {
			r.Helper()
			if err != nil {
				r.Fatal(err)
			}
		}
		set := func(edit func(*job.Queue)) error {
			_, err := r.Part.Desk.SetQueue(ctx, "q", func(q *job.Queue) error { edit(q); return nil }, ann)
			return err
		}
		must(set(func(q *job.Queue) { q.Paused, q.MaxJobs = true, 9 }))
		log.told("ann pause queue q 0", "ann set queue q 0 max_jobs:0>9")
		must(set(func(q *job.Queue) { q.Paused = true })) // is already
		log.told()
		must(set(func(q *job.Queue) { q.Paused = false }))
		log.told("ann resume queue q 0")
		if err := set(func(q *job.Queue) { q.Paused, q.Protection.MaxRunning = true, -1 }); job.KindOf(err) != job.Invalid {
			t.Error(err)
		}
		log.told() // what was refused

		for _, c := range []struct{ group, subject string }{{"", "queue q"}, {"g", "group g of queue q"}} {
			end, err := r.Part.Guard.Hold(ctx, "q", c.group, r.Now()+job.Minute, ann)
			must(err)
			log.told(fmt.Sprintf("ann hold %s 0 hold_until:0>%d", c.subject, end))
			_, err = r.Part.Guard.Hold(ctx, "q", c.group, r.Now()+job.Second, ann) // the longer one stays
			must(err)
			log.told()
			must(r.Part.Guard.Release(ctx, "q", c.group, ann))
			log.told(fmt.Sprintf("ann release %s 0 hold_until:%d>0", c.subject, end))
			must(r.Part.Guard.Release(ctx, "q", c.group, ann))
			log.told()

			must(r.Part.Guard.ForceBreaker(ctx, "q", c.group, job.BreakerOpen, ann))
			must(r.Part.Guard.ForceBreaker(ctx, "q", c.group, job.BreakerOpen, ann))
			must(r.Part.Guard.ForceBreaker(ctx, "q", c.group, job.BreakerClosed, ann))
			must(r.Part.Guard.ReleaseBreaker(ctx, "q", c.group, ann))
			must(r.Part.Guard.ReleaseBreaker(ctx, "q", c.group, ann))
			log.told("ann breaker open "+c.subject+" 0", "ann breaker closed "+c.subject+" 0", "ann breaker auto "+c.subject+" 0")
		}

		r.AddAll("q", "a", "b")
		w := r.Anonymous(1)
		w.Gets("a")
		w.OK("a") // what producers and workers do is not in the log
		log.told()
		id := r.IDs["b"]
		_, err := r.Part.Desk.Do(ctx, ann, desk.Delete, id)
		must(err)
		log.told("ann delete " + id.String() + " 1")
		if _, err := r.Part.Desk.Do(ctx, ann, desk.Delete, id); job.KindOf(err) != job.NotFound {
			t.Error(err)
		}
		log.told()
	}, func(r *rig) { r.Opts.Changes = told })
}

func TestWhatWasChangedOfAQueueSurvivesAPowerCutWithItsEntry(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs = 7 })
		r.PowerCut()
		list, err := r.Part.Audit.List(r.Context(), job.ID{}, 10)
		if err != nil || len(list) != 1 || len(list[0].Changes) != 1 || list[0].Changes[0] != (job.Change{Field: "max_jobs", From: "0", To: "7"}) {
			t.Errorf("%+v %v", list, err)
		}
	}, func(r *rig) { r.Opts.Changes = told })
}
