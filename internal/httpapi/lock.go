package httpapi

import (
	"net/http"
	"strconv"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// lockRoom serves named locks.
type lockRoom struct{ *core }

func (h *lockRoom) routes() []route {
	return []route{
		get("/locks", reads, wholeServer, h.bare(h.list)),
		get("/locks/{name}", reads, pathQueue, h.bare(h.show)),
		post("/locks/{name}", works, pathQueue, asking(h.core, lenient, func(c *call, b *jobs.LockAsk) (job.LockAsk, error) { return b.Take(c.id) }, h.take)),
		del("/locks/{name}", works, pathQueue, h.bare(h.release)),
		post("/locks/{name}/extend", works, pathQueue, asking(h.core, lenient, fromBody((*jobs.ExtendLock).Extend), h.extend)),
		post("/locks/{name}/break", operates, pathQueue, h.bare(h.breakUp)),
	}
}

var shownLock = shown(jobs.LockOf)

// list is GET /locks.
func (h *lockRoom) list(c *call) (any, error) {
	list, err := h.engine.Locks.List(c.Context(), "", job.LocksMax)
	return jobs.LocksOf(list), err
}

// show is GET /locks/{name}.
func (h *lockRoom) show(c *call) (any, error) {
	return shownLock(h.engine.Locks.Get(c.Context(), c.id))
}

// take is POST /locks/{name}.
func (h *lockRoom) take(c *call, ask job.LockAsk) (any, error) {
	l, got, err := h.engine.Locks.Take(c.Context(), ask)
	if err != nil {
		return nil, err
	}
	if !got {
		h.refused(wire.CodeLocked)
		seconds := (l.Until - l.Asked + job.Second - 1) / job.Second
		c.w.Header()["Retry-After"] = []string{strconv.FormatInt(int64(seconds), 10)}
		c.status = http.StatusLocked
		return jobs.LockedOf(l), nil
	}
	mine := jobs.LockOf(l)
	mine.Token = string(l.Token.AppendTo(nil))
	return mine, nil
}

// extend is POST /locks/{name}/extend.
func (h *lockRoom) extend(c *call, ask jobs.LockExtension) (any, error) {
	return shownLock(h.engine.Locks.Extend(c.Context(), c.id, ask.Token, ask.Most))
}

// release is DELETE /locks/{name}.
func (h *lockRoom) release(c *call) (any, error) {
	token, err := jobs.LockToken(wire.LockTokenHeader, c.Header.Get(wire.LockTokenHeader))
	if err != nil {
		return nil, err
	}
	return shownLock(h.engine.Locks.Release(c.Context(), c.id, token))
}

// breakUp is POST /locks/{name}/break.
func (h *lockRoom) breakUp(c *call) (any, error) {
	return shownLock(h.engine.Locks.Break(c.Context(), c.id, c.by))
}
