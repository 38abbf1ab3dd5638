package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

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

// extendAsk is the body of POST /jobs/extend. The outer ms is for leases without
// their own.
type extendAsk struct {
	Leases *[]wire.Extension `json:"leases"`
	MS     int64             `json:"ms"`
	Worker *string           `json:"worker"`
	Secret *string           `json:"secret"`
}

// wrong joins what is wrong with it.
func (a *extendAsk) wrong() error {
	switch {
	case a.Worker == nil && a.Secret == nil:
		_, err := a.list()
		return err
	case a.Leases != nil:
		return bodyFault("leases", "and worker exclude each other: say which leases, or all of the worker")
	case a.Worker == nil || *a.Worker == "":
		return bodyFault("worker", "is missing: whose secret is it?")
	}
	return errors.Join(jobs.CheckName("worker", *a.Worker), jobs.Within("ms", a.MS, 0, int64(job.Day)))
}

// list is what is asked for each lease. Its error joins one for each problem.
func (a *extendAsk) list() ([]engine.Extension, error) {
	if a.Leases == nil {
		return nil, bodyFault("leases", "is missing; for all leases of a worker send worker and secret")
	}
	list := make([]engine.Extension, len(*a.Leases))
	var bad []error
	for i, l := range *a.Leases {
		if len(bad) > jobs.ProblemsMost {
			break
		}
		x := &list[i]
		var badID, badToken, badProgress error
		x.ID, badID = job.ParseID(l.ID)
		x.Token, badToken = job.ParseToken(l.Lease)
		x.Started, x.For = l.Started, cmp.Or(job.Millis(l.MS), job.Millis(a.MS))
		x.Progress, badProgress = jobs.ProgressOf("progress", l.Progress)
		if badID == nil && badToken == nil && badProgress == nil && x.For >= 0 && x.For <= job.Day {
			continue
		}
		at := "leases[" + strconv.Itoa(i) + "]."
		if badID != nil {
			bad = append(bad, bodyFault(at+"id", "is refused: "+badID.Error()))
		}
		if badToken != nil {
			bad = append(bad, bodyFault(at+"lease", "is refused: "+badToken.Error()))
		}
		_, badProgress = jobs.ProgressOf(at+"progress", l.Progress)
		bad = append(bad, jobs.Within(at+"ms", int64(x.For), 0, int64(job.Day)), badProgress)
	}
	return list, errors.Join(bad...)
}

// extend is POST /jobs/extend, the heartbeat: {leases: [{id, lease, ms,
// started}], ms}, where the outer ms is for leases without their own, or
// {worker, secret, ms} for all that a worker took with its secret.
func (h *workRoom) extend(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		var body extendAsk
		if err := lenient(s, &body, body.wrong); err != nil {
			return err
		}
		if body.Worker != nil || body.Secret != nil {
			return h.extendWorker(w, r, s, &body)
		}
		list, err := body.list()
		if err != nil {
			return jobs.OneRefusal(err)
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
func (h *workRoom) extendWorker(w http.ResponseWriter, r *http.Request, s *scratch, ask *extendAsk) error {
	if err := ask.wrong(); err != nil {
		return jobs.OneRefusal(err)
	}
	if ask.Secret == nil {
		return worker.ErrSecret
	}
	list, err := h.engine.Workers.Extend(r.Context(), h.worker(r, *ask.Worker), *ask.Secret, job.Millis(ask.MS))
	if err != nil {
		return err
	}
	s.out = jobs.AppendVerdicts(s.out, list, func(i int) job.ID { return list[i].Job.ID })
	send(w, http.StatusOK, s.out)
	return nil
}
