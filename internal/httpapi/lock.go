package httpapi

import (
	"net/http"
	"strconv"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/lock"
	"github.com/reprisehq/reprise/wire"
)

var (
	oneLock    = &resource{get: (*handler).showLock, post: (*handler).takeLock, del: (*handler).unlock}
	extendLock = &resource{post: (*handler).extendLock}
	breakLock  = &resource{post: (*handler).breakLock}
)

// locks is GET /locks.
func (h *handler) locks(w http.ResponseWriter, r *http.Request, _, _ string) {
	list, err := h.engine.Locks.List(r.Context(), "", job.LocksMax)
	h.shown(w, r, err, func(b []byte) []byte { return jobs.AppendLocks(b, list) })
}

// showLock is GET /locks/{name}.
func (h *handler) showLock(w http.ResponseWriter, r *http.Request, name, _ string) {
	s, err := h.engine.Locks.Get(r.Context(), name)
	h.shownLock(w, r, s, err)
}

func (h *handler) shownLock(w http.ResponseWriter, r *http.Request, s lock.State, err error) {
	h.shown(w, r, err, func(b []byte) []byte { return jobs.AppendLock(b, s, false) })
}

// takeLock is POST /locks/{name}.
func (h *handler) takeLock(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		ask, err := s.TakeLock(name)
		if err == nil {
			err = jobs.CheckName("name", name)
		}
		if err != nil {
			return err
		}
		l, got, err := h.engine.Locks.Take(r.Context(), ask)
		switch {
		case err != nil:
			return err
		case !got:
			h.refused(wire.CodeLocked)
			seconds := (l.Until - l.Asked + job.Second - 1) / job.Second
			w.Header()["Retry-After"] = []string{strconv.FormatInt(int64(seconds), 10)}
			s.out = jobs.AppendLocked(s.out, l)
			send(w, http.StatusLocked, s.out)
		default:
			s.out = jobs.AppendLock(s.out, l, true)
			send(w, http.StatusOK, s.out)
		}
		return nil
	})
}

// extendLock is POST /locks/{name}/extend.
func (h *handler) extendLock(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		token, most, err := s.ExtendLock()
		if err != nil {
			return err
		}
		l, err := h.engine.Locks.Extend(r.Context(), name, token, most)
		return s.tell(w, http.StatusOK, err, func(out []byte) []byte { return jobs.AppendLock(out, l, false) })
	})
}

// unlock is DELETE /locks/{name}.
func (h *handler) unlock(w http.ResponseWriter, r *http.Request, name, _ string) {
	token, err := jobs.LockToken(wire.LockTokenHeader, r.Header.Get(wire.LockTokenHeader))
	var l lock.State
	if err == nil {
		l, err = h.engine.Locks.Release(r.Context(), name, token)
	}
	h.shownLock(w, r, l, err)
}

// breakLock is POST /locks/{name}/break.
func (h *handler) breakLock(w http.ResponseWriter, r *http.Request, name, _ string) {
	by, err := actorOf(r)
	var l lock.State
	if err == nil {
		l, err = h.engine.Locks.Break(r.Context(), name, by)
	}
	h.shownLock(w, r, l, err)
}
