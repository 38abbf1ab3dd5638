package embedded_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// salvaged takes what can be read to a new directory and compares it with the ledger:
// what is not there was told of, what was finished does not come back unless changes of
// a log are lost, and the damaged directory is as it was.
func salvaged(t *testing.T, fs *vfs.MemFS, o *outside) (out embedded.Salvaged, err error) {
	t.Helper()
	before := contents(t, fs)
	if err := fs.MkdirAll("new", 0o700); err != nil {
		t.Fatal(err)
	}
	out, err = embedded.Salvage(fs, "root", "new")
	if after := contents(t, fs); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the damaged directory was changed")
	}
	if err != nil {
		if left, _ := fs.List("new"); len(left) > 0 {
			t.Errorf("it was refused (%v), and left %v", err, left)
		}
		return out, err
	}
	if left, _ := fs.List("new"); slices.Contains(left, "damaged.tmp") {
		t.Errorf("it left %v", left)
	}
	s := openDir(t, fs, "new")
	lost, aside, back := 0, map[job.ID]bool{}, 0
	check(t, s.View(t.Context(), func(r store.Reader) error {
		for _, u := range r.Unreadable() {
			if aside[u.ID] = true; o.open[u.ID] == nil {
				t.Errorf("job %s is set aside, and should not be there", u.ID)
			}
		}
		for id, want := range o.open {
			j, err := r.Get(id)
			if aside[id] {
				continue
			}
			if j == nil || err != nil {
				lost++
				continue
			}
			if body, err := store.Payload(s, j.Payload); err != nil || string(body) != string(want) {
				t.Errorf("job %s has another payload (%v)", id, err)
			}
		}
		for _, id := range o.gone {
			if j, _ := r.Get(id); j != nil {
				back++
			}
		}
		return nil
	}))
	check(t, s.Close())
	told := strings.Join(out.Lost, "\n")
	if lost+len(aside) > 0 && told == "" {
		t.Errorf("%d jobs are lost and %d set aside in silence", lost, len(aside))
	}
	if back > 0 && !strings.Contains(told, ".log") {
		t.Errorf("%d jobs that were finished are there again: %s", back, told)
	}
	for range 2 { // what the first start wrote must not keep the next from it
		check(t, openDir(t, fs, "new").Close())
	}
	if got := int64(len(o.open) - lost + back); out.Jobs != got || out.Aside != int64(len(aside)) {
		t.Errorf("it tells of %d jobs and %d set aside, and the directory has %d and %d", out.Jobs, out.Aside, got, len(aside))
	}
	return out, nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What cannot be read costs what stands there, and nothing else.
func TestWhatCanBeReadOfADamagedDirectoryIsSalvaged(t *testing.T) {
	for _, ended := range []string{"killed", "closed"} {
		fs, o := flippable(t, ended)
		for name, content := range contents(t, fs) {
			kind := kindOf(name)
			used := len(strings.TrimRight(content, "\x00"))
			if used == 0 {
				continue
			}
			for _, damage := range []string{"flip 1", "flip 2", "flip 3", "zeros", "cut", "cut between records", "emptied", "gone"} {
				if kind == "table" && (damage == "flip 2" || damage == "flip 3") || kind != "log" && strings.HasSuffix(damage, "ed") || kind != "log" && damage == "cut between records" {
					continue // the search for the end of a bad block takes its time
				}
				t.Run(ended+" "+name+" "+damage, func(t *testing.T) {
					hurt := clone(fs)
					b := []byte(content)
					rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(damage[len(damage)-1])))
					switch damage {
					case "zeros":
						at := rng.IntN(used)
						clear(b[at:min(at+4096, used)])
					case "cut":
						b = b[:used/2]
					case "cut between records":
						b = b[:recordFrom(b, used/2)]
					case "emptied":
						b = nil
					case "gone":
					default:
						b[rng.IntN(used)] ^= 1 << rng.IntN(8)
					}
					check(t, hurt.Remove(name))
					if damage != "gone" {
						writeFile(t, hurt, name, b)
					}
					out, err := salvaged(t, hurt, o)
					switch {
					case err != nil && (kind == "table" && job.KindOf(err) == job.Corrupt || kind == "FORMAT" && job.KindOf(err) == job.Invalid):
						t.Log(err)
					case err != nil:
						t.Error(err)
					case kind != "table" && kind != "log" && out.Jobs != int64(len(o.open)):
						t.Errorf("%d of %d jobs came over: %q", out.Jobs, len(o.open), out.Lost)
					case kind == "log" && !strings.HasPrefix(damage, "flip") && damage != "zeros" && out.Jobs < int64(len(o.open)) &&
						!strings.Contains(fmt.Sprint(out.Lost), path.Base(name)):
						t.Errorf("%d of %d jobs came over, and %q does not tell of the log", out.Jobs, len(o.open), out.Lost)
					case kind == "log" && strings.HasPrefix(damage, "flip") && out.Jobs < int64(len(o.open)-1):
						t.Errorf("one changed record cost %d of %d jobs", int64(len(o.open))-out.Jobs, len(o.open))
					case len(out.Lost) > 0:
						t.Logf("%d of %d jobs, %d set aside: %q", out.Jobs, len(o.open), out.Aside, out.Lost)
					}
					if known := ended == "closed" && !strings.HasSuffix(name, "SYNCED"); err == nil && known && out.Was != int64(len(o.open)) {
						t.Errorf("there were %d jobs, and not %d", len(o.open), out.Was)
					}
				})
			}
		}
	}
}

// recordFrom is the end of the first record of a log that reaches so far.
func recordFrom(b []byte, far int) (at int) {
	for at < far {
		if at += 19 + int(binary.LittleEndian.Uint16(b[at+4:])); at>>15 != (at+19)>>15 {
			at = (at + 19) >> 15 << 15 // the rest of a block is padding
		}
	}
	return at
}

// What is whole comes over whole, and nothing is told of it.
func TestASalvageOfWhatIsWholeLosesNothing(t *testing.T) {
	for _, ended := range []string{"killed", "closed"} {
		fs, o := flippable(t, ended)
		out, err := salvaged(t, fs, o)
		if err != nil || out.Jobs != int64(len(o.open)) || len(out.Lost) > 0 || out.Rows {
			t.Errorf("%s: %d of %d jobs, %q (%v)", ended, out.Jobs, len(o.open), out.Lost, err)
		}
	}
}

// SYNCED knows which list of tables is the newest, whatever a marker says; and a list of
// another day may stand beside the copy of the right one.
func TestASalvageTakesTheNewestListOfTables(t *testing.T) {
	for _, as := range []string{"MANIFEST-000001", "MANIFEST-999999"} {
		fs, o := flippable(t, "closed")
		names, err := fs.List("root/data")
		check(t, err)
		for _, name := range names {
			if strings.HasPrefix(name, "marker.manifest.") {
				check(t, fs.Rename("root/data/"+name, "root/data/marker.manifest.000099."+as))
			}
			if strings.HasPrefix(name, "MANIFEST-") {
				check(t, fs.Remove("root/data/"+name))
			}
		}
		first, _ := inTables(t, aJob("q"))
		names, err = first.List("root/data")
		check(t, err)
		for _, name := range names {
			if strings.HasPrefix(name, "MANIFEST-") {
				writeFile(t, fs, "root/data/MANIFEST-000001", readFile(t, first, "root/data/"+name))
			}
		}
		out, err := salvaged(t, fs, o)
		if err != nil || out.Jobs != int64(len(o.open)) {
			t.Errorf("%s: %d of %d jobs (%v), %q", as, out.Jobs, len(o.open), err, out.Lost)
		}
	}
}

// A disk that takes no more ends it with a reason, and leaves nothing.
func TestASalvageOnAFullDiskLeavesNothing(t *testing.T) {
	fs, o := flippable(t, "killed")
	for room := int64(1); ; room *= 3 {
		disk := &fullDisk{FS: fs, room: room}
		out, err := embedded.Salvage(disk, "root", "new")
		if err == nil {
			if out.Jobs != int64(len(o.open)) || room == 1 {
				t.Errorf("%d of %d jobs in %d writes", out.Jobs, len(o.open), room)
			}
			return
		}
		if _, bad := fs.Stat("new"); bad == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("after %d writes it left something, or said %v", room, err)
		}
	}
}

// fullDisk takes so many writes and syncs below "new".
type fullDisk struct {
	vfs.FS
	room int64
	used atomic.Int64
}

func (d *fullDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return &fullFile{f, d}, err
}

type fullFile struct {
	vfs.File
	disk *fullDisk
}

func (f *fullFile) Write(p []byte) (int, error) {
	if f.disk.used.Add(1) > f.disk.room {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// inTables are stores that were used one after the other, so that what each wrote is in
// a table of its own, and the names of those tables. Behind them may stand one into
// which Pebble put the others together.
func inTables(t *testing.T, uses ...func(store.Tx) error) (fs *vfs.MemFS, tables []string) {
	t.Helper()
	fs = vfs.NewCrashableMem()
	for i := range len(uses) + 1 {
		s := openDir(t, fs, "root")
		names, err := fs.List("root/data")
		check(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") && !slices.Contains(tables, name) {
				tables = append(tables, name)
			}
		}
		if i < len(uses) {
			commit, err := s.Update(t.Context(), func(tx store.Tx) error { tx.Durable(); return uses[i](tx) })
			check(t, err)
			check(t, commit.Wait())
		}
		check(t, s.Close())
	}
	if len(tables) < len(uses) {
		t.Fatalf("got the tables %v", tables)
	}
	return fs, tables
}

func aJob(queue string) func(store.Tx) error {
	return func(tx store.Tx) error {
		id := ids.Next(noon)
		return errors.Join(tx.PutPayload(id, []byte("1")), tx.Write(nil, &job.Job{
			ID: id, Payload: id, PayloadSize: 1, Queue: queue, Type: "t", State: job.Ready, ReadyAt: noon,
			RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1, CopiesWanted: 1,
		}))
	}
}

// Without its tokens a server would be open to everybody, without its numbers it would
// give them out twice, and a queue may have been paused, or strictly ordered.
func TestASalvageWithoutRowsIsRefused(t *testing.T) {
	for what, row := range map[string]job.Row{
		"tokens": &job.Credential{ID: "c1", Name: "root", Scopes: 1}, "numbers": &job.Reserve{Name: "seq", Next: 7}, "a queue": job.NewQueue("q"),
	} {
		t.Run(what, func(t *testing.T) {
			fs, tables := inTables(t, func(tx store.Tx) error { return tx.Set(row) }, aJob("q"))
			for _, name := range slices.Delete(tables, 1, 2) { // that of the job stays
				check(t, fs.RemoveAll("root/data/"+name))
			}
			_, err := salvaged(t, fs, &outside{})
			if job.KindOf(err) != job.Corrupt || !strings.Contains(err.Error(), "only a backup helps") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A copy of each list of tables is there as long as the list is.
func TestTheCopyOfTheListOfTablesGoesWithIt(t *testing.T) {
	fs, _ := inTables(t, aJob("q"), aJob("q"))
	copies, err := fs.List("root")
	check(t, err)
	lists, err := fs.List("root/data")
	check(t, err)
	other := func(name string) bool { return !strings.HasPrefix(name, "MANIFEST-") }
	copies, lists = slices.DeleteFunc(copies, other), slices.DeleteFunc(lists, other)
	slices.Sort(copies)
	if slices.Sort(lists); len(lists) == 0 || !slices.Equal(copies, lists) {
		t.Errorf("the lists are %v, and the copies %v", lists, copies)
	}
	for _, name := range lists {
		if string(readFile(t, fs, "root/"+name)) != string(readFile(t, fs, "root/data/"+name)) {
			t.Errorf("the copy of %s differs", name)
		}
	}
}
