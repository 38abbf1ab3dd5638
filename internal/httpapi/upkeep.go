package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// Upkeep looks after the files of the store. Its errors are *job.Error.
type Upkeep interface {
	// Backup prepares a copy. write sends it and must be called at most once;
	// done lets go of it.
	Backup(ctx context.Context) (write func(io.Writer) error, done func(), err error)
	// Compact gives the space of what was deleted back now.
	Compact(ctx context.Context) error
}

const noUpkeep = "this server's store is looked after elsewhere"

// backup is POST /backup: a whole copy of the store as a gzipped tar archive.
// What goes wrong before its first byte is answered as any error; after that
// the connection is broken, and the end mark is missing.
func (h *opsRoom) backup(w http.ResponseWriter, r *http.Request, _, _ string) {
	if h.upkeep == nil {
		refuse(w, http.StatusNotFound, wire.CodeNotFound, noUpkeep)
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, bodyIgnored) // unread, it would hide that the client left
	by := actorOf(r)
	write, done, err := h.upkeep.Backup(r.Context())
	if err != nil {
		h.log.ErrorContext(r.Context(), "a backup could not begin", "error", err)
		h.problem(w, r, err)
		return
	}
	defer done()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // it may take longer than any other request
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Disposition", `attachment; filename="backup.tar.gz"`)
	out := &patient{w: w, rc: rc}
	err = write(out)
	h.noteBackup(r, by, out.sent, err)
	if err != nil {
		h.log.ErrorContext(r.Context(), "a backup broke off", "error", err)
		panic(http.ErrAbortHandler)
	}
}

// noteBackup puts into the audit log who took a copy of everything, whole or
// not, before the last piece of it is on its way.
func (h *opsRoom) noteBackup(r *http.Request, by job.Actor, bytes int64, why error) {
	action := "backup"
	if why != nil {
		action = "backup broken off"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), noteMax)
	defer cancel()
	if err := h.engine.Audit.Note(ctx, by, action, itoa(bytes)+" bytes", 0); err != nil {
		h.log.ErrorContext(r.Context(), "a backup is missing in the audit log", "by", by.Name, "from", by.From, "bytes", bytes, "error", err)
	}
}

// noteMax is how long the end of a backup waits for its entry in the audit log.
const noteMax = 10 * time.Second

// patient gives a reader writeMax for each piece, however many there are.
type patient struct {
	w    io.Writer
	rc   *http.ResponseController
	sent int64
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeMax))
	n, err := p.w.Write(b)
	p.sent += int64(n)
	return n, err
}

// compact is POST /compact; it answers when it is done.
func (h *opsRoom) compact(w http.ResponseWriter, r *http.Request, _, _ string) {
	if h.upkeep == nil {
		refuse(w, http.StatusNotFound, wire.CodeNotFound, noUpkeep)
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, bodyIgnored)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err := h.upkeep.Compact(r.Context()); err != nil {
		h.problem(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
