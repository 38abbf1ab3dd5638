package model

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// edit gives a job another payload: from then on it is that which comes with every
// delivery, and nothing else of the job changes.
func (w *world) edit(id job.ID) {
	body := append(slices.Clone(w.bodies[id]), '+')
	v, err := w.Desk.Do(w.Context(), job.Actor{}, desk.Patch{Payload: body}.Verb(), id)
	j, want := w.model.jobs[id], job.NotFound
	if j != nil {
		if want = job.WrongState; j.State != job.Leased {
			want = w.model.patch(j, j.Priority, j.ReadyAt)
		}
	}
	if w.refused("edit", err, want); want != accepted {
		return
	}
	j.Payload, j.PayloadSize = v.Job.Payload, uint32(len(body))
	w.bodies[id] = body
	if w.model.made[id] != nil {
		w.model.made[id] = body
	}
}
