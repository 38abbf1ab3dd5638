package httpapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// enqueue is POST /jobs: 201 for a new job, 200 for one that was there.
func (h *jobRoom) enqueue(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		list, err := s.Enqueue(r.Header.Get("Idempotency-Key"))
		if err != nil {
			return err
		}
		if err := h.reachQueues(r, "", 1, func(int) string { return list[0].Job.Queue }); err != nil {
			return err
		}
		carryTrace(r, list)
		added, err := h.putFor(r, list)
		if err != nil {
			return err
		}
		s.out = jobs.AppendAdded(s.out, added[0], &list[0])
		send(w, created(added), s.out)
		return nil
	})
}

// bulk is POST /jobs/bulk, all or nothing.
func (h *jobRoom) bulk(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		if len(r.Header["Idempotency-Key"]) > 0 {
			return job.Errorf(job.Invalid, "the header Idempotency-Key is for POST /jobs; give each job of a bulk its own idempotency_key")
		}
		list, err := s.Bulk()
		if err == nil && len(list) > 0 {
			err = h.reachQueues(r, "jobs", len(list), func(i int) string { return list[i].Job.Queue })
		}
		var added []engine.Added
		if err == nil && len(list) > 0 {
			carryTrace(r, list)
			added, err = h.putFor(r, list)
		}
		if err != nil {
			return err
		}
		s.out = jobs.AppendAddedAll(s.out, added, list)
		send(w, created(added), s.out)
		return nil
	})
}

// putFor puts jobs as far as the token of the request reaches. Budgets belong to
// the server: to make one is for operators, with an enqueue as with POST /budgets.
func (h *jobRoom) putFor(r *http.Request, list []engine.NewJob) ([]engine.Added, error) {
	g := h.grantOf(r)
	if g == nil {
		return h.put(r.Context(), list)
	}
	kept := false // from making a budget
	for i := range list {
		n := &list[i]
		if len(g.Queues) > 0 {
			n.Reach = g.Reaches
		}
		if err := reachBudgets(g, n.Job.Budgets()); err != nil {
			return nil, err
		}
		if len(n.Create) > 0 && !g.Scopes.Allows(job.ScopeOperate) {
			n.Create, kept = nil, true
		}
	}
	added, err := h.put(r.Context(), list)
	if missing, ok := errors.AsType[*job.NoBudget](err); ok && kept {
		return nil, forbidden("budget %q does not exist, and to make it the token %q lacks the scope operate; it has %s", missing.Key, g.Name, g.Scopes)
	}
	return added, err
}

// reachBudgets holds a token for some queues to its budgets: its patterns are
// patterns of budgets, too.
func reachBudgets(g *auth.Grant, list []job.BudgetUse) error {
	for _, u := range list {
		if !g.Reaches(u.Key) {
			return forbidden("the token %q is not for the budget %q, only for those whose key fits %s", g.Name, u.Key, strings.Join(g.Queues, ", "))
		}
	}
	return nil
}

// created is 200 when every job was there before or was taken in, else 201.
func created(added []engine.Added) int {
	if len(added) > 0 && !slices.ContainsFunc(added, func(a engine.Added) bool { return !a.Duplicate && !a.Folded }) {
		return http.StatusOK
	}
	return http.StatusCreated
}

// null answers enqueues like an engine that keeps nothing.
type null struct {
	mu  sync.Mutex // guards ids
	ids *job.IDs
}

func newNull() *null { return &null{ids: job.NewIDs(job.ID{}, rand.Uint64)} }

func (n *null) put(_ context.Context, list []engine.NewJob) ([]engine.Added, error) {
	now := job.Millis(time.Now().UnixMilli())
	added := make([]engine.Added, len(list))
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range list {
		j := list[i].Job
		j.ID, j.Created, j.State = n.ids.Next(now), now, job.Ready
		if j.ReadyAt > now {
			j.State = job.Scheduled
		} else if j.ReadyAt == 0 {
			j.ReadyAt = now
		}
		added[i] = engine.Added{Job: &j, ID: j.ID}
	}
	return added, nil
}
