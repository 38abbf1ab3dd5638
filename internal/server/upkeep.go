package server

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/reprisehq/reprise/internal/backup"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// upkeep looks after the files of the store of a running server.
type upkeep struct {
	store  *embedded.Store
	engine *engine.Engine
	log    *slog.Logger
}

// Backup implements httpapi.Upkeep.
func (u *upkeep) Backup(ctx context.Context) (write func(io.Writer) error, done func(), err error) {
	began := time.Now()
	_, _, reserve := u.engine.Disk()
	snap, err := u.store.Snapshot(reserve)
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		if err := snap.Close(); err != nil {
			u.log.ErrorContext(ctx, "what was put together for a backup could not be removed", "error", err)
		}
	}
	u.log.InfoContext(ctx, "a backup began", "files", len(snap.Files), "bytes", snap.Bytes(), "prepared_in", time.Since(began).String())
	m := backup.Manifest{Version: Version, Format: snap.Format, At: int64(u.engine.Now())}
	files := make([]backup.File, len(snap.Files))
	for i, f := range snap.Files {
		files[i] = backup.File(f)
	}
	write = func(w io.Writer) error {
		if err := backup.Write(w, m, files, snap.Open); err != nil {
			return err
		}
		u.log.InfoContext(ctx, "a backup was sent", "took", time.Since(began).String())
		return nil
	}
	return write, done, nil
}

// Compact implements httpapi.Upkeep.
func (u *upkeep) Compact(ctx context.Context) error {
	began := time.Now()
	if err := u.store.Compact(ctx); err != nil {
		return err
	}
	u.log.InfoContext(ctx, "compacted", "took", time.Since(began).String())
	return nil
}
