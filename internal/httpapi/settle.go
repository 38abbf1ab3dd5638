package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// one settles one attempt and returns its verdict.
func (h *handler) one(ctx context.Context, s engine.Settle) (engine.Verdict, error) {
	verdicts, err := h.engine.Settle(ctx, []engine.Settle{s})
	if err != nil {
		return engine.Verdict{}, err
	}
	return verdicts[0], verdicts[0].Err
}

// errNotHeld is what Zizq says of a settle for an id that cannot be one.
var errNotHeld = job.Errorf(job.NotFound, "job not found in in-flight set")

// success is POST /jobs/{id}/success. It has no body, or one nobody reads.
func (h *handler) success(w http.ResponseWriter, r *http.Request, text, _ string) {
	id, err := job.ParseID(text)
	if err != nil {
		err = errNotHeld
	} else {
		_, err = h.one(r.Context(), engine.Settle{ID: id, Outcome: job.OK})
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// successAll is POST /jobs/success: 204, or 422 with the ids that were not
// there while the others are done. Clients take both as the end of it; what may
// work later, the engine refuses as a whole.
func (h *handler) successAll(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		list, unknown, err := s.Success()
		if err == nil {
			err = h.reachIDs(r, len(list), func(i int) job.ID { return list[i].ID })
		}
		if err != nil {
			return err
		}
		verdicts, err := h.engine.Settle(r.Context(), list)
		if err != nil {
			return err
		}
		if missing, why := jobs.Missing(list, verdicts, unknown); len(missing) > 0 {
			send(w, http.StatusUnprocessableEntity, jobs.AppendMissing(nil, missing, why))
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
		return nil
	})
}

// failure is POST /jobs/{id}/failure.
func (h *handler) failure(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.ends(w, r, text, func(s *scratch, id job.ID) (engine.Settle, error) { return s.Failure(id) })
}

// ends settles one attempt as its body tells, read by read, and answers with
// the job.
func (h *handler) ends(w http.ResponseWriter, r *http.Request, text string, read func(*scratch, job.ID) (engine.Settle, error)) {
	h.withBody(w, r, func(s *scratch) error {
		id, bad := job.ParseID(text)
		end, err := read(s, id)
		if err == nil && bad != nil {
			err = errNotHeld
		}
		if err != nil {
			return err
		}
		verdict, err := h.one(r.Context(), end)
		if err != nil {
			return err
		}
		s.out = jobs.AppendVerdictJob(s.out, id, verdict)
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// settle is POST /jobs/settle: any mix of outcomes, one verdict per entry.
func (h *handler) settle(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		list, err := s.Settles()
		if err == nil {
			err = h.reachIDs(r, len(list), func(i int) job.ID { return list[i].ID })
		}
		if err != nil {
			return err
		}
		verdicts, err := h.engine.Settle(r.Context(), list)
		if err != nil {
			return err
		}
		s.out = jobs.AppendVerdicts(s.out, verdicts, func(i int) job.ID { return list[i].ID })
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// Limits of POST /jobs/lease. Looking for work takes one commit
// of the engine, so that long it waits at least.
const (
	leaseMax     = 1000
	leaseWaitMin = 100 * time.Millisecond
	leaseWaitMax = 5 * time.Minute
)

// lease is POST /jobs/lease, the unary take with a long poll.
func (h *handler) lease(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		body := struct {
			Queues     []string          `json:"queues"`
			Max        int               `json:"max"`
			LeaseMS    int64             `json:"lease_ms"`
			WaitMS     int64             `json:"wait_ms"`
			Worker     string            `json:"worker"`
			Register   bool              `json:"register"`
			Secret     *string           `json:"secret"`
			Properties map[string]string `json:"properties"`
			Engine     string            `json:"engine"`
			Epoch      int64             `json:"epoch"`
		}{Max: 1, LeaseMS: int64(engine.LeaseDefault)}
		if err := lenient(s, &body); err != nil {
			return err
		}
		err := cmp.Or(
			within("max", int64(body.Max), 1, leaseMax),
			within("lease_ms", body.LeaseMS, 1, int64(job.Day)),
			within("wait_ms", body.WaitMS, 0, leaseWaitMax.Milliseconds()),
		)
		if err == nil && body.Worker != "" {
			err = jobs.CheckName("worker", body.Worker)
		}
		if err == nil && body.Engine != "" {
			err = jobs.CheckName("engine", body.Engine)
		}
		if err == nil {
			err = asRegistered(body.Worker, body.Secret, body.Register)
		}
		if err == nil {
			err = asked(body.Queues, body.Properties)
		}
		if err == nil && body.Engine == "" {
			err = queueNames(body.Queues)
		}
		if err == nil && body.Engine != "" && body.Worker != "" {
			err = &job.Error{Kind: job.Invalid, Field: "engine", Text: "engine and worker exclude each other: an engine is its own worker"}
		}
		if err == nil {
			err = h.reachQueues(r, "queues", len(body.Queues), func(i int) string { return body.Queues[i] })
		}
		if err != nil {
			return err
		}
		// The body is read: only the client's leaving ends the wait early.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		ctx, cancel := context.WithTimeout(r.Context(), max(time.Duration(body.WaitMS)*time.Millisecond, leaseWaitMin))
		defer cancel()
		room := h.room(r)
		defer room.leave()
		ctx = engine.WithRoom(ctx, room.patient(r.Context()))
		o := engine.LeaseOptions{
			Worker: h.worker(r, body.Worker), Queues: body.Queues, Max: body.Max, For: job.Millis(body.LeaseMS), Properties: body.Properties,
		}
		var list []engine.Delivery
		switch {
		case body.Engine != "":
			list, err = h.engine.MachineLease(ctx, h.worker(r, body.Engine), body.Epoch, body.Max, body.Queues)
		case body.Register:
			if o.Secret, err = h.engine.Register(r.Context(), o.Worker); err != nil {
				return err
			}
			list, err = h.engine.Lease(ctx, o)
		default:
			if body.Secret != nil {
				o.Secret = *body.Secret
			}
			list, err = h.engine.Lease(ctx, o)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if body.Register {
			s.out = jobs.AppendRegistered(s.out, list, o.Secret)
		} else {
			s.out = jobs.AppendLeases(s.out, list)
		}
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// queueNames refuses names that no queue can have: who asks for them would wait
// for ever.
func queueNames(list []string) error {
	for i, name := range list {
		if err := jobs.CheckName("queue", name); err != nil {
			return job.Errorf(job.Invalid, "queues[%d]: %v", i, err)
		}
	}
	return nil
}

// What one who takes may ask for: it is kept as long as it waits.
const (
	askedMax      = 1000
	askedBytesMax = 64 << 10
)

// asked refuses to keep more than that of queues and properties.
func asked(queues []string, properties map[string]string) error {
	bytes := 0
	for _, name := range queues {
		bytes += len(name)
	}
	if len(queues) > askedMax || bytes > askedBytesMax {
		return job.Errorf(job.Invalid, "queues must not have more than %d names of %d bytes together; without names, work of all queues is taken", askedMax, askedBytesMax)
	}
	for name, value := range properties {
		bytes += len(name) + len(value)
	}
	if len(properties) > askedMax || bytes > askedBytesMax {
		return job.Errorf(job.Invalid, "properties must not be more than %d, and not more than %d bytes together with the queues", askedMax, askedBytesMax)
	}
	return nil
}

// within refuses a number outside its bounds.
func within(field string, n, least, most int64) error {
	if n >= least && n <= most {
		return nil
	}
	return &job.Error{Kind: job.Invalid, Field: field, Text: field + " must be a whole number from " + itoa(least) + " to " + itoa(most)}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
