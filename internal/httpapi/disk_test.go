package httpapi_test

import (
	"context"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// brokenDisk fails while it is on, and names the file as the system does.
type brokenDisk struct{ on, read atomic.Bool }

func (d *brokenDisk) String() string { return "broken disk" }

func (d *brokenDisk) MaybeError(op errorfs.Op) error {
	if d.on.Load() && (d.read.Load() || op.Kind.ReadOrWrite() == errorfs.OpIsWrite) {
		return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.EIO}
	}
	return nil
}

func TestAFailedDiskIsToldWithoutThePathsOfTheServer(t *testing.T) {
	const dir = "/srv/secret"
	disk, clock, log := &brokenDisk{}, engine.SystemClock(), &strings.Builder{}
	st, err := embedded.Open(embedded.Options{Dir: dir, FS: errorfs.Wrap(vfs.NewMem(), disk), Now: clock.Wall})
	if err != nil {
		t.Fatal(err)
	}
	e := part.New(st, clock, rand.Uint64, slog.New(slog.NewTextHandler(log, nil)),
		engine.Options{Server: rule.DefaultServer()})
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := start(t, httpapi.Options{Engine: e})
	disk.on.Store(true)
	const job = `{"type":"t","queue":"q","payload":1}`
	for _, c := range []struct{ method, path, sent string }{
		{"POST", "/jobs", job}, // whose commit fails
		{"POST", "/jobs", job}, // after it
		{"POST", "/jobs/settle", `[{"id":"` + noID + `","outcome":"ok"}]`},
		{"POST", "/jobs/lease", `{"wait_ms":1}`},
		{"GET", "/jobs/" + noID, ""},
		{"GET", "/jobs/take", ""},
		{"GET", "/ready", ""},
	} {
		got := a.call(c.method, c.path, c.sent)
		text, _ := object(t, got.body)["error"].(string)
		if got.status != 503 || text == "" || strings.ContainsAny(text, "/\\") || strings.Contains(text, "secret") {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
	}
	if err := e.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	_ = st.Close()
	if !strings.Contains(log.String(), dir) {
		t.Errorf("the log does not say which file it was:\n%s", log)
	}
}
