package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// workRoom serves those who run jobs: takes, leases and how attempts end.
type workRoom struct {
	*core
	pulse *pulse
}

func newWorkRoom(c *core) *workRoom { return &workRoom{c, newPulse(c.heartbeat)} }

func (h *workRoom) routes() []route {
	return []route{
		get("/jobs/take", works, queryQueues, endpoint{serve: h.take}).streaming(),
		post("/jobs/lease", works, handlerAsks, endpoint{serve: h.lease}).as("lease").waiting(),
		post("/jobs/extend", works, handlerAsks, endpoint{serve: h.extend}).as("settle"),
		post("/jobs/settle", works, handlerAsks, endpoint{serve: h.settle}).as("settle"),
		post("/jobs/success", works, handlerAsks, endpoint{serve: h.successAll}).as("settle"),
		post("/jobs/{id}/success", works, pathJob, endpoint{serve: h.success}).as("settle"),
		post("/jobs/{id}/failure", works, pathJob, endpoint{serve: h.failure}).as("settle"),
		post("/jobs/{id}/release", works, pathJob, endpoint{serve: h.release}),
		post("/jobs/{id}/progress", works, pathJob, leniently(h.core, h.progress)),
	}
}

// one settles one attempt and returns its verdict.
func (h *workRoom) one(ctx context.Context, s engine.Settle) (engine.Verdict, error) {
	verdicts, err := h.engine.Settle(ctx, []engine.Settle{s})
	if err != nil {
		return engine.Verdict{}, err
	}
	return verdicts[0], verdicts[0].Err
}

// errNotHeld is what Zizq says of a settle for an id that cannot be one.
var errNotHeld = job.Errorf(job.NotFound, "job not found in in-flight set")

// success is POST /jobs/{id}/success. It has no body, or one nobody reads.
func (h *workRoom) success(w http.ResponseWriter, r *http.Request, text, _ string) {
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
func (h *workRoom) successAll(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		list, unknown, err := s.Success()
		verdicts, err := h.settled(r, list, err)
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

// settled settles what was read, as far as the token of the request reaches.
func (h *workRoom) settled(r *http.Request, list []engine.Settle, err error) ([]engine.Verdict, error) {
	if err == nil {
		err = h.reachIDs(r, len(list), func(i int) job.ID { return list[i].ID })
	}
	if err != nil {
		return nil, err
	}
	return h.engine.Settle(r.Context(), list)
}

// failure is POST /jobs/{id}/failure.
func (h *workRoom) failure(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.ends(w, r, text, func(s *scratch, id job.ID) (engine.Settle, error) { return s.Failure(id) })
}

// ends settles one attempt as its body tells, read by read, and answers with
// the job.
func (h *workRoom) ends(w http.ResponseWriter, r *http.Request, text string, read func(*scratch, job.ID) (engine.Settle, error)) {
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
func (h *workRoom) settle(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		list, err := s.Settles()
		verdicts, err := h.settled(r, list, err)
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

// leaseAsk is the body of POST /jobs/lease. A secret that is empty is refused, unlike none.
type leaseAsk struct {
	wire.Lease
	Secret *string `json:"secret"`
}

// wrong joins what is wrong with it.
func (a *leaseAsk) wrong() error {
	bad := []error{
		jobs.Within("max", int64(a.Max), 1, leaseMax),
		jobs.Within("lease_ms", a.LeaseMS, 1, int64(job.Day)),
		jobs.Within("wait_ms", a.WaitMS, 0, leaseWaitMax.Milliseconds()),
		nameGiven("worker", a.Worker), nameGiven("engine", a.Engine),
		asRegistered(a.Worker, a.Secret, a.Register), asked(a.Queues, a.Properties),
	}
	switch {
	case a.Engine == "":
		bad = append(bad, queueNames(a.Queues))
	case a.Worker != "":
		bad = append(bad, bodyFault("engine", "and worker exclude each other: an engine is its own worker"))
	}
	return errors.Join(bad...)
}

// nameGiven refuses what cannot be a name, if something was given.
func nameGiven(field, name string) error {
	if name == "" {
		return nil
	}
	return jobs.CheckName(field, name)
}

// lease is POST /jobs/lease, the unary take with a long poll.
func (h *workRoom) lease(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		ask := leaseAsk{Lease: wire.Lease{Max: 1, LeaseMS: int64(engine.LeaseDefault)}}
		err := cmp.Or(lenient(s, &ask, ask.wrong), jobs.OneRefusal(ask.wrong()))
		if err == nil {
			err = h.reachQueues(r, "queues", len(ask.Queues), func(i int) string { return ask.Queues[i] })
		}
		if err != nil {
			return err
		}
		// The body is read: only the client's leaving ends the wait early.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		ctx, cancel := context.WithTimeout(r.Context(), max(time.Duration(ask.WaitMS)*time.Millisecond, leaseWaitMin))
		defer cancel()
		room := h.room(r)
		defer room.leave()
		if ask.Register {
			secret, err := h.engine.Workers.Register(r.Context(), h.worker(r, ask.Worker))
			if err != nil {
				return err
			}
			ask.Secret = &secret
		}
		list, err := h.leased(engine.WithRoom(ctx, room.patient(r.Context())), r, &ask)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if ask.Register {
			s.out = jobs.AppendRegistered(s.out, list, *ask.Secret)
		} else {
			s.out = jobs.AppendLeases(s.out, list)
		}
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// leased waits for jobs.
func (h *workRoom) leased(ctx context.Context, r *http.Request, ask *leaseAsk) ([]engine.Delivery, error) {
	if ask.Engine != "" {
		return h.engine.Grid.EngineLease(ctx, h.worker(r, ask.Engine), ask.Epoch, ask.Max, ask.Queues)
	}
	o := engine.LeaseOptions{
		Worker: h.worker(r, ask.Worker), Queues: ask.Queues, Max: ask.Max, For: job.Millis(ask.LeaseMS), Properties: ask.Properties,
	}
	if ask.Secret != nil {
		var err error
		if o.Worker, err = h.engine.Workers.Name(context.WithoutCancel(ctx), o.Worker, *ask.Secret); err != nil {
			return nil, err
		}
	}
	return h.engine.Lease(ctx, o)
}

// queueNames refuses names that no queue can have: who asks for them would wait
// for ever.
func queueNames(list []string) error {
	var bad []error
	for i, name := range list[:min(len(list), askedMax)] {
		bad = append(bad, jobs.CheckName("queues["+strconv.Itoa(i)+"]", name))
	}
	return errors.Join(bad...)
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
		return bodyFault("queues", fmt.Sprintf("must not have more than %d names of %d bytes together; without names, work of all queues is taken", askedMax, askedBytesMax))
	}
	for name, value := range properties {
		bytes += len(name) + len(value)
	}
	if len(properties) > askedMax || bytes > askedBytesMax {
		return bodyFault("properties", fmt.Sprintf("must not be more than %d, and not more than %d bytes together with the queues", askedMax, askedBytesMax))
	}
	return nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
