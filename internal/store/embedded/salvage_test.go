package embedded_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
			for _, damage := range []string{"flip 1", "flip 2", "flip 3", "zeros", "cut", "gone"} {
				if kind == "table" && (damage == "flip 2" || damage == "flip 3") {
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
			RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1, Wanted: 1,
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
