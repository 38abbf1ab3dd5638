package model

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

// registered is the holder of a worker that leases with its secret: another one
// than that of the bare name.
func registered(worker, secret string) string { return "u/" + worker + "\x00" + secret[:16] }

// secret registers a worker the first time; restarts change nothing about it.
func (w *world) secret(worker string) string {
	if w.secrets[worker] == "" {
		secret, err := w.Workers.Register(w.Context(), worker)
		w.must(err)
		if w.secrets == nil {
			w.secrets = map[string]string{}
		}
		w.secrets[worker] = secret
	}
	return w.secrets[worker]
}

// extendWorker is the heartbeat of all that a worker leased with its secret.
func (w *world) extendWorker(t *rapid.T) {
	worker := one(t, "worker", workers...)
	secret, span := w.secret(worker), one[job.Millis](t, "for", 3500, 8000, 0)
	if rapid.Bool().Draw(t, "wrong") {
		_, err := w.Workers.Extend(w.Context(), worker+"x", secret, span)
		w.refused("extend worker", err, job.Forbidden)
		return
	}
	list, err := w.Workers.Extend(w.Context(), worker, secret, span)
	w.must(err)
	want := w.model.extendAll(registered(worker, secret), span)
	got := make([]job.ID, len(list))
	for i, v := range list {
		w.must(v.Err)
		got[i] = v.Job.ID
	}
	if !slices.Equal(got, want) {
		w.Fatalf("%s extended %v, want %v", worker, got, want)
	}
}

// extendAll moves the ends of all leases of a holder.
func (m *model) extendAll(holder string, span job.Millis) (ids []job.ID) {
	for _, j := range m.sorted(func(j *job.Job) bool { return j.HeldBy(holder) }) {
		for i := range j.Leases {
			if j.Leases[i].Holder == holder {
				l := &j.Leases[i]
				if span > 0 { // else as long as before
					l.Length = span
				}
				l.Until = m.now + l.Length
			}
		}
		ids = append(ids, j.ID)
	}
	return ids
}
