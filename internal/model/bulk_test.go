package model

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
)

// many is a call over many jobs: it does to each that the filter chooses what
// a call over one would do, and says to how many.
func (w *world) many(t *rapid.T) {
	s := query.Search{}
	f := &s.Filter
	if rapid.Bool().Draw(t, "by queue") {
		f.Queues = []string{one(t, "queue", w.used...)}
	}
	if rapid.Bool().Draw(t, "by state") {
		f.States = []job.State{one(t, "state", job.Scheduled, job.Ready, job.Leased, job.Done, job.Dead), job.Ready}
	}
	if len(w.ids) > 0 && rapid.Bool().Draw(t, "by id") {
		f.IDs = []job.ID{w.anyID(t), w.anyID(t)}
	}
	if rapid.Bool().Draw(t, "by priority") {
		priority := one[uint16](t, "priority", 3, 5)
		s.Where = func(j *job.Job) bool { return j.Priority == priority }
	}
	list := slices.DeleteFunc(w.model.list(*f), func(j *job.Job) bool {
		return len(f.IDs) > 0 && !slices.Contains(f.IDs, j.ID) || s.Where != nil && !s.Where(j)
	})
	switch one(t, "verb", "delete", "patch", "patch", "move", "move", "reset") {
	case "delete":
		n, _, err := w.Desk.DoAll(w.Context(), desk.Delete, s)
		w.must(err)
		for _, j := range list {
			w.model.remove(j)
		}
		w.counted("deleted", n, len(list))
	case "patch":
		priority, readyAt := one[uint16](t, "new priority", 3, 5), w.model.now+one[job.Millis](t, "ready in", 0, 1200)
		w.patched(s, list, desk.Patch{Edit: func(j *job.Job, _ job.Millis) { j.Priority, j.ReadyAt = priority, readyAt }}, func(j *job.Job) job.Kind {
			return w.model.patch(j, priority, readyAt)
		})
	case "move":
		to := one(t, "to", w.used...)
		w.patched(s, list, desk.Patch{Queue: to}, func(j *job.Job) job.Kind { return w.model.move(j, to) })
	case "reset":
		if !rapid.Bool().Draw(t, "really") { // it leaves little to look at
			return
		}
		n, err := w.Desk.Reset(w.Context())
		w.must(err)
		w.counted("reset", n, len(w.model.jobs))
		clear(w.model.receipts)
		for _, j := range w.model.sorted(func(*job.Job) bool { return true }) {
			w.model.remove(j)
		}
		w.noBudgets()
	}
}

func (w *world) patched(s query.Search, list []*job.Job, p desk.Patch, model func(*job.Job) job.Kind) {
	n, refused, err := w.Desk.DoAll(w.Context(), p.Verb(), s)
	w.must(err)
	done, not := 0, 0
	for _, j := range list {
		switch {
		case !j.State.Open():
		case model(j) == accepted:
			done++
		default:
			not++
		}
	}
	w.counted("patched", n, done)
	w.counted("refused", refused, not)
}

func (w *world) counted(what string, got int64, want int) {
	if got != int64(want) {
		w.Fatalf("%s %d, want %d", what, got, want)
	}
}

// move takes a job to another queue.
func (m *model) move(j *job.Job, to string) job.Kind {
	strict := j.Group != "" && (j.Order == job.OrderStrict || m.queues[to].Order == job.OrderStrict)
	between := m.queues[j.Queue].Turns != m.queues[to].Turns // of an inbox and a plain queue
	if j.Queue != to && (between || strict || j.Group != "" && j.State == job.Leased) {
		return job.WrongState
	}
	j.Queue = to
	m.setOrder(j)
	if j.State != job.Leased {
		m.wait(j)
	}
	return accepted
}
