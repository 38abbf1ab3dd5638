package httpapi

import (
	"cmp"
	"net/http"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/worker"
	"github.com/reprisehq/reprise/wire"
)

// asRegistered refuses a lease that names a secret or asks for one and cannot
// have it.
func asRegistered(worker string, secret *string, register bool) error {
	switch {
	case register && secret != nil:
		return bodyFault("register", "and secret exclude each other: a worker that has a secret is registered")
	case worker == "" && (register || secret != nil):
		return bodyFault("worker", "is missing: a secret is that of a worker with a name")
	case secret != nil && *secret == "":
		return bodyFault("secret", "must not be empty")
	}
	return nil
}

func bodyFault(field, why string) error {
	return &job.Error{Kind: job.Invalid, Field: field, Text: field + " " + why}
}

// extend is POST /jobs/extend, the heartbeat: {leases: [{id, lease, ms,
// started}], ms}, where the outer ms is for leases without their own, or
// {worker, secret, ms} for all that a worker took with its secret.
func (h *workRoom) extend(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		var body struct {
			Leases *[]struct {
				ID       string         `json:"id"`
				Lease    string         `json:"lease"`
				MS       int64          `json:"ms"`
				Started  bool           `json:"started"`
				Progress *wire.Progress `json:"progress"`
			} `json:"leases"`
			MS     int64   `json:"ms"`
			Worker *string `json:"worker"`
			Secret *string `json:"secret"`
		}
		if err := lenient(s, &body); err != nil {
			return err
		}
		if body.Worker != nil || body.Secret != nil {
			if body.Leases != nil {
				return bodyFault("leases", "and worker exclude each other: say which leases, or all of the worker")
			}
			return h.extendWorker(w, r, s, body.Worker, body.Secret, body.MS)
		}
		if body.Leases == nil {
			return bodyFault("leases", "is missing; for all leases of a worker send worker and secret")
		}
		list := make([]engine.Extension, len(*body.Leases))
		for i, l := range *body.Leases {
			x := &list[i]
			var badID, badToken error
			x.ID, badID = job.ParseID(l.ID)
			x.Token, badToken = job.ParseToken(l.Lease)
			x.Started, x.For = l.Started, job.Millis(l.MS)
			if l.MS == 0 {
				x.For = job.Millis(body.MS)
			}
			var badProgress error
			x.Progress, badProgress = jobs.ProgressOf(l.Progress)
			if err := cmp.Or(badProgress, badID, badToken, jobs.Within("ms", int64(x.For), 0, int64(job.Day))); err != nil {
				return job.Errorf(job.Invalid, "leases[%d]: %v", i, err)
			}
		}
		if err := h.reachIDs(r, len(list), func(i int) job.ID { return list[i].ID }); err != nil {
			return err
		}
		verdicts, err := h.engine.Extend(r.Context(), list)
		if err != nil {
			return err
		}
		s.out = jobs.AppendVerdicts(s.out, verdicts, func(i int) job.ID { return list[i].ID })
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// extendWorker answers the heartbeat of a worker. ms left out is that of each lease.
func (h *workRoom) extendWorker(w http.ResponseWriter, r *http.Request, s *scratch, name, secret *string, ms int64) error {
	if name == nil || *name == "" {
		return bodyFault("worker", "is missing: whose secret is it?")
	}
	if secret == nil {
		return worker.ErrSecret
	}
	err := jobs.CheckName("worker", *name)
	if err == nil {
		err = jobs.Within("ms", ms, 0, int64(job.Day))
	}
	if err != nil {
		return err
	}
	list, err := h.engine.Workers.Extend(r.Context(), h.worker(r, *name), *secret, job.Millis(ms))
	if err != nil {
		return err
	}
	s.out = jobs.AppendVerdicts(s.out, list, func(i int) job.ID { return list[i].Job.ID })
	send(w, http.StatusOK, s.out)
	return nil
}
