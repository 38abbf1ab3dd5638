package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

var flips = flag.Int("flips", 12, "how many places of each kind of file TestAFlippedBit flips")

// outside is what an outside ledger knows: the payloads of jobs that were
// acknowledged, and the jobs that were finished.
type outside struct {
	open map[job.ID][]byte
	gone []job.ID

	aside, unread int // what whole met, of damaged tables
}

// work puts jobs, each durable before the next, and finishes every fifth.
func (o *outside) work(t *testing.T, s store.Store, n int, rng *rand.Rand) {
	t.Helper()
	for i := range n {
		id, body := ids.Next(noon), make([]byte, 40+rng.IntN(200))
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		commit, err := s.Update(context.Background(), func(tx store.Tx) error {
			tx.Durable()
			return errors.Join(tx.PutPayload(id, body), tx.Write(nil, &job.Job{
				ID: id, Payload: id, PayloadSize: uint32(len(body)), Queue: fmt.Sprint("q", i%3), Type: "t", State: job.Ready, ReadyAt: noon,
				RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1, CopiesWanted: 1,
			}))
		})
		if err == nil {
			err = commit.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		o.open[id] = body
		if i%5 == 4 {
			o.finish(t, s, id)
		}
	}
}

func (o *outside) finish(t *testing.T, s store.Store, id job.ID) {
	t.Helper()
	commit, err := s.Update(t.Context(), func(tx store.Tx) error {
		tx.Durable()
		j, err := tx.Get(id)
		return errors.Join(err, tx.Write(j, nil))
	})
	if err == nil {
		err = commit.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(o.open, id)
	o.gone = append(o.gone, id)
}

// whole wants the store to have what the ledger has, and nothing else. Where a table
// is damaged, jobs are named that cannot be read, or their payloads say so.
func (o *outside) whole(t *testing.T, s store.Store) {
	t.Helper()
	found := 0
	err := s.View(t.Context(), func(r store.Reader) error {
		aside := map[job.ID]bool{}
		for _, u := range r.Unreadable() {
			if aside[u.ID] = true; o.open[u.ID] == nil {
				return fmt.Errorf("job %s is set aside, and should not be there", u.ID)
			}
		}
		for id, want := range o.open {
			if aside[id] {
				o.aside++
				continue
			}
			j, err := r.Get(id)
			if err != nil || j == nil {
				return fmt.Errorf("job %s: %v, %w", id, j, err)
			}
			body, err := store.Payload(s, j.Payload)
			if job.KindOf(err) == job.Corrupt {
				o.unread++
				continue
			}
			if err != nil || !bytes.Equal(body, want) {
				return fmt.Errorf("job %s has another payload: %w", id, err)
			}
			found++
		}
		for _, id := range o.gone {
			if j, err := r.Get(id); j != nil || err != nil {
				return fmt.Errorf("job %s was finished and is there again (%w)", id, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("started with damage: %v (the first %d of %d were there)", err, found, len(o.open))
	}
}

// flippable is a directory that was used several times: its jobs are in tables of
// some generations and in the newest log, its list of tables has changes behind its
// beginning. ended says how the last use ended.
func flippable(t *testing.T, ended string) (*vfs.MemFS, *outside) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(1, 2))
	o := &outside{open: map[job.ID][]byte{}}
	for range 2 {
		s := openDir(t, fs, "root")
		o.work(t, s, 100, rng)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openDir(t, fs, "root")
	o.work(t, s, 100, rng)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.work(t, s, 100, rng)
	if ended == "closed" {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return clone(fs), o
}

// clone is the directory as a kill leaves it: what was written is there.
func clone(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// contents are all files of a directory and what they hold.
func contents(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range []string{"root", "root/data"} {
		names, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name != "data" && name != "LOCK" {
				out[dir+"/"+name] = string(readFile(t, fs, dir+"/"+name))
			}
		}
	}
	return out
}

// kindOf sorts the files of a directory.
func kindOf(name string) string {
	base := path.Base(name)
	switch {
	case strings.HasSuffix(base, ".log"):
		return "log"
	case strings.HasSuffix(base, ".sst"):
		return "table"
	}
	kind, _, _ := strings.Cut(base, "-")
	return kind
}

// TestAFlippedBit flips one bit after the other in files of a directory that no
// server uses. A start is whole by the outside ledger (with damage in a table each job
// that cannot be read is named), or refused; then nothing is changed or deleted.
func TestAFlippedBit(t *testing.T) {
	for _, ended := range []string{"killed", "closed"} {
		fs, o := flippable(t, ended)
		files := map[string][]string{}
		for name, content := range contents(t, fs) {
			if strings.Trim(content, "\x00") != "" {
				files[kindOf(name)] = append(files[kindOf(name)], name)
			}
		}
		for _, kind := range []string{"log", "MANIFEST", "table", "OPTIONS", "FORMAT", "SYNCED"} {
			t.Run(ended+" "+kind, func(t *testing.T) {
				flipAll(t, fs, o, files[kind])
			})
		}
	}
}

func flipAll(t *testing.T, fs *vfs.MemFS, o *outside, names []string) {
	slices.Sort(names)
	rng := rand.New(rand.NewPCG(3, 4))
	started, refused := 0, 0
	for range *flips {
		name := names[rng.IntN(len(names))]
		hurt := clone(fs)
		content := readFile(t, hurt, name)
		used := len(strings.TrimRight(string(content), "\x00"))
		bit := rng.IntN(8 * used)
		content[bit/8] ^= 1 << (bit % 8)
		overwrite(t, hurt, name, content)
		before := contents(t, hurt)
		t.Run(fmt.Sprintf("%s byte %d of %d bit %d", name, bit/8, used, bit%8), func(t *testing.T) {
			s, err := embedded.Open(embedded.Options{Dir: "root", FS: hurt, Now: noonNow, Cache: 1 << 20})
			if err == nil {
				started++
				o.whole(t, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			refused++
			if *flips > 100 && testing.Verbose() || refused == 1 {
				t.Log(err)
			}
			after := contents(t, hurt)
			for name, was := range before {
				if strings.HasSuffix(name, "SYNCED") || strings.Contains(name, "marker.") {
					continue // a table that is found damaged by the load, which began a new list
				}
				if is, ok := after[name]; !ok || is != was {
					t.Errorf("the start was refused (%v), and %s is changed or gone (there: %v)", err, name, ok)
				}
			}
		})
	}
	if o.aside+o.unread > 0 && !strings.HasSuffix(names[0], ".sst") {
		t.Errorf("%d jobs were set aside and %d payloads not readable; no table was damaged", o.aside, o.unread)
	}
	t.Logf("%d places: %d starts, %d refused; in tables %d jobs were named as damaged, and %d payloads",
		*flips, started, refused, o.aside, o.unread)
	o.aside, o.unread = 0, 0
}

// overwrite changes a file in place.
func overwrite(t *testing.T, fs vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.WriteAt(content, 0)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
