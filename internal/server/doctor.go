package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// Health is how a check came out.
type Health string

// The outcomes.
const (
	HealthOK   Health = "ok"
	HealthWarn Health = "warn"
	HealthFail Health = "fail"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Health Health `json:"health"`
	Text   string `json:"text"`         // what was found
	Do     string `json:"do,omitempty"` // what to do about it
}

// Findings are the outcomes of all checks.
type Findings []Finding

func (fs *Findings) ok(check, format string, args ...any) {
	*fs = append(*fs, Finding{check, HealthOK, fmt.Sprintf(format, args...), ""})
}

func (fs *Findings) warn(check, do, format string, args ...any) {
	*fs = append(*fs, Finding{check, HealthWarn, fmt.Sprintf(format, args...), do})
}

func (fs *Findings) fail(check, do, format string, args ...any) {
	*fs = append(*fs, Finding{check, HealthFail, fmt.Sprintf(format, args...), do})
}

// Err says how many checks failed; nil if none did.
func (fs Findings) Err() error {
	failed := 0
	for _, f := range fs {
		if f.Health == HealthFail {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d checks failed", failed, len(fs))
}

// Write prints the findings as a table, what to do below each.
func (fs Findings) Write(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range fs {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Health, f.Check, oneLine(f.Text))
		if f.Do != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", f.Do)
		}
	}
	return w.Flush()
}

// WriteJSON prints them for programs.
func (fs Findings) WriteJSON(to io.Writer) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(fs)
}

// Doctor looks at everything a server with this configuration depends on.
// loaded is the error of Load. peer is a server to ask; nil = the one that would
// listen here, if something does. Nothing is changed.
func Doctor(ctx context.Context, cfg config.Config, loaded error, peer *Peer) (fs Findings) {
	if loaded != nil {
		fs.fail("configuration", "correct it; `reprise config --check` tells the same", "%v", loaded)
	} else if cfg.File != "" {
		fs.ok("configuration", "%s has no problems", cfg.File)
	} else {
		fs.ok("configuration", "no problems")
	}
	tokens := fs.directory(ctx, cfg)
	if loaded == nil {
		fs.exposure(cfg, tokens)
	}
	fs.limits()
	fs.egress(cfg)
	fs.certificate("certificate", "", cfg)
	if cfg.Admin {
		fs.certificate("admin certificate", "admin-", cfg.AsAdmin())
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if peer != nil {
		fs.peer(ctx, peer)
	} else {
		fs.listening(ctx, cfg)
	}
	return fs
}

// directory looks at the data directory and all below it. It is true if there is a
// token, or that cannot be told.
func (fs *Findings) directory(ctx context.Context, cfg config.Config) (tokens bool) {
	dir, err := filepath.Abs(cfg.RootDir)
	if err != nil {
		dir = cfg.RootDir
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		fs.warn("directory", "nothing, if this is the first start; else name the right one with --root-dir", "%s does not exist; a server would create it", dir)
		fs.disk(filepath.Dir(dir), cfg.DiskReserve)
		fs.clock(0)
		return false
	case err != nil:
		fs.fail("directory", "let the user of the server read it", "%v", err)
		return false
	case !info.IsDir():
		fs.fail("directory", "name a directory with --root-dir", "%s is no directory", dir)
		return false
	}
	fs.access(dir, info)
	fs.disk(dir, cfg.DiskReserve)
	for _, left := range []string{"backup.tmp", "PROBE"} {
		if _, err := os.Stat(filepath.Join(dir, left)); err == nil {
			fs.warn("leftovers", "nothing, while a server makes a backup or opens its store again; else the next start removes it", "%s is there", left)
		}
	}
	return fs.store(ctx, dir)
}

const damagedToDo = "copy the directory aside (delete nothing yet), look at the disk, and restore a backup; without one, `reprise restore DIRECTORY --root-dir NEW` saves what can be read"

// store looks into the database, if no server does. It is true as directory is.
func (fs *Findings) store(_ context.Context, dir string) (tokens bool) {
	format, err := embedded.ReadFormat(vfs.Default, filepath.Join(dir, "FORMAT"))
	switch data, _ := os.ReadDir(filepath.Join(dir, "data")); {
	case errors.Is(err, os.ErrNotExist) && len(data) == 0:
		if others, _ := os.ReadDir(dir); len(others) > 0 {
			fs.warn("store", "name the right one with --root-dir, if this is not a new one", "the directory holds no data of Reprise, and %d other files, such as %s", len(others), others[0].Name())
		} else {
			fs.ok("store", "the directory is empty")
		}
		fs.clock(0)
		return false
	case errors.Is(err, os.ErrNotExist):
		fs.fail("format", "restore the backup the data came from into a new directory", "there is data and no FORMAT file")
		return false
	case err != nil:
		fs.fail("format", "see whether this is a data directory of Reprise; if it is, restore a backup", "%v", err)
		return false
	case format > embedded.Format:
		fs.fail("format", "start a newer version, or restore a backup made with this one", "the directory has format %d, this version knows up to %d", format, embedded.Format)
		return false
	}
	fs.ok("format", "%d, and this version knows up to %d", format, embedded.Format)
	in, err := embedded.Inspect(vfs.Default, dir)
	switch {
	case job.KindOf(err) == job.Exists:
		fs.ok("store", "in use by a running server; to have every record read, stop it and ask again")
	case err != nil:
		fs.fail("store", damagedToDo, "%v", err)
	case in.Damaged > 0:
		fs.fail("store", damagedToDo,
			"%d damaged records: %s", in.Damaged, strings.Join(in.Examples, "; "))
	default:
		var jobs int64
		for _, n := range in.Jobs {
			jobs += n
		}
		fs.ok("store", "%d jobs (%d scheduled, %d ready, %d in flight, %d completed, %d dead), %d MiB of payloads, all of it read",
			jobs, in.Jobs[job.Scheduled], in.Jobs[job.Ready], in.Jobs[job.Leased], in.Jobs[job.Done], in.Jobs[job.Dead],
			in.PayloadBytes>>20)
		if in.Orphans > 0 {
			fs.warn("store", "nothing; please report it", "%d payloads belong to no job and take space", in.Orphans)
		}
	}
	fs.clock(in.Latest)
	return err != nil || in.Tokens > 0
}

// clock compares the clock with the latest date in the store.
func (fs *Findings) clock(latest job.Millis) {
	now := time.Now()
	if ahead := time.UnixMilli(int64(latest)).Sub(now); latest > 0 && ahead > 5*time.Second {
		fs.fail("clock", "set the clock; until it has caught up, the server's date stands still and what is due waits",
			"the latest record is from %s, which is %s ahead of this clock", time.UnixMilli(int64(latest)).UTC().Format(time.RFC3339), ahead.Round(time.Second))
		return
	}
	if now.Year() < 2024 {
		fs.fail("clock", "set the clock", "it says %s", now.UTC().Format(time.RFC3339))
		return
	}
	if synced, known := clockSynced(); known && !synced {
		fs.warn("clock", "run an NTP client (chrony, systemd-timesyncd)", "%s, and the kernel says it is not synchronised", now.UTC().Format(time.RFC3339))
		return
	}
	fs.ok("clock", "%s, behind nothing that was written", now.UTC().Format(time.RFC3339))
}

// disk compares the free space with the reserve.
func (fs *Findings) disk(dir string, reserve config.DiskReserve) {
	u, err := vfs.Default.GetDiskUsage(dir)
	if err != nil {
		fs.warn("disk", "", "its free space cannot be told: %v", err)
		return
	}
	keep := max(reserve.Bytes, int64(reserve.Percent/100*float64(u.TotalBytes)))
	text := fmt.Sprintf("%d MiB free of %d MiB, reserve %d MiB", u.AvailBytes>>20, u.TotalBytes>>20, keep>>20)
	switch free := int64(u.AvailBytes); {
	case free < keep:
		fs.fail("disk", "make room, or enqueues are refused; see \"When the disk fills up\" in docs/operations.md", "%s", text)
	case free < 2*keep || free < 1<<30:
		fs.warn("disk", "make room soon: below the reserve enqueues are refused", "%s", text)
	default:
		fs.ok("disk", "%s", text)
	}
}

// egress tells what may be called from here.
func (fs *Findings) egress(cfg config.Config) {
	e, err := cfg.Egress()
	if err != nil { // of a target in the file, which the loading told
		fs.fail("egress", "correct the target", "%v", err)
		return
	}
	lines := e.Lines()
	switch {
	case len(lines) == 0 && len(cfg.EgressAllow) == 0:
		fs.ok("egress", "no target is in the file, and none may be set over the API; egress.allow would allow some")
	case len(lines) == 0:
		fs.ok("egress", "no target may be set over the API")
	case slices.ContainsFunc(lines, func(s string) bool { return s == "0.0.0.0/0" || s == "::/0" }):
		fs.warn("egress", "name the addresses that are meant; * is every public one",
			"targets set over the API may be in this network and on this machine too: %s", strings.Join(lines, ", "))
	default:
		fs.ok("egress", "targets set over the API may be %s", strings.Join(lines, ", "))
	}
}
