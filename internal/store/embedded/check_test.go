package embedded_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// filesOf are those of a kind below root/data.
func filesOf(t *testing.T, fs vfs.FS, kind string) (names []string) {
	t.Helper()
	for name := range contents(t, fs) {
		if kindOf(name) == kind {
			names = append(names, name)
		}
	}
	return names
}

func removeAll(t *testing.T, fs vfs.FS, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := fs.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
}

// Files that are missing, cut or of another time are refused before anything is
// deleted; so is a directory whose database is gone: no start is empty in place of
// what was there.
func TestADirectoryWithoutAllOfItsFilesIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		change func(t *testing.T, fs *vfs.MemFS)
		says   string
	}{
		"the data directory is missing": {func(t *testing.T, fs *vfs.MemFS) { removeAll(t, fs, "root/data") }, "the database is gone"},
		"the data directory is emptied": {func(t *testing.T, fs *vfs.MemFS) {
			for name := range contents(t, fs) {
				if strings.HasPrefix(name, "root/data/") {
					removeAll(t, fs, name)
				}
			}
		}, "the database is gone"},
		"the data directory and what is known of it are missing": {func(t *testing.T, fs *vfs.MemFS) {
			removeAll(t, fs, "root/data", "root/SYNCED")
		}, "the database is gone"},
		"the newest log is missing": {func(t *testing.T, fs *vfs.MemFS) { removeAll(t, fs, newestLogOf(t, fs)) }, "is missing"},
		"the newest log is cut": {func(t *testing.T, fs *vfs.MemFS) {
			name := newestLogOf(t, fs)
			writeFile(t, fs, name, readFile(t, fs, name)[:3000])
		}, "is damaged at byte"},
		"the tables are missing": {func(t *testing.T, fs *vfs.MemFS) { removeAll(t, fs, filesOf(t, fs, "table")...) }, "file does not exist"},
		"the lists of tables are missing": {func(t *testing.T, fs *vfs.MemFS) {
			removeAll(t, fs, filesOf(t, fs, "MANIFEST")...)
		}, "is missing"},
		"the names of the lists are missing": {func(t *testing.T, fs *vfs.MemFS) {
			for name := range contents(t, fs) {
				if strings.Contains(name, "marker.manifest") {
					removeAll(t, fs, name)
				}
			}
		}, "the database is gone"},
		"a list of tables is cut": {func(t *testing.T, fs *vfs.MemFS) {
			for _, name := range filesOf(t, fs, "MANIFEST") {
				writeFile(t, fs, name, readFile(t, fs, name)[:100])
			}
		}, "tables are named in what is missing"},
		"the files are those of an earlier day": {func(t *testing.T, fs *vfs.MemFS) {
			removeAll(t, fs, "root/data")
			old := openDir(t, fs, "old")
			put(t, old, 10)
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			if err := fs.Rename("old/data", "root/data"); err != nil {
				t.Fatal(err)
			}
		}, "is damaged at byte"},
	} {
		t.Run(what, func(t *testing.T) {
			fs, _ := flippable(t, "killed")
			c.change(t, fs)
			before := contentsLeft(t, fs)
			refuses(t, fs, "root", job.Corrupt, c.says)
			for name, was := range before {
				if is, ok := contentsLeft(t, fs)[name]; !ok || is != was {
					t.Errorf("%s is changed or gone (there: %v)", name, ok)
				}
			}
			refuses(t, fs, "root", job.Corrupt, c.says)
			if _, err := embedded.Inspect(fs, "root"); job.KindOf(err) != job.Corrupt || !strings.Contains(err.Error(), c.says) {
				t.Errorf("an inspection says %v", err)
			}
		})
	}
}

// contentsLeft are the files of a directory, none if its database is gone.
func contentsLeft(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	if _, err := fs.Stat("root/data"); err != nil {
		return nil
	}
	return contents(t, fs)
}

func newestLogOf(t *testing.T, fs vfs.FS) string {
	t.Helper()
	newest := ""
	for _, name := range filesOf(t, fs, "log") {
		newest = max(newest, name)
	}
	return newest
}

// A directory of an earlier version has no SYNCED: it opens, and gets one.
func TestADirectoryOfAnEarlierVersionIsWatchedFromNowOn(t *testing.T) {
	fs, o := flippable(t, "killed")
	removeAll(t, fs, "root/SYNCED")
	s := openDir(t, fs, "root")
	o.whole(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	removeAll(t, fs, "root/data")
	refuses(t, fs, "root", job.Corrupt, "the database is gone: root/data has no MANIFEST, and had one and 320 jobs")
}

// The number of jobs at the last close is compared, whatever else fits.
func TestTheNumberOfJobsIsThatOfTheLastClose(t *testing.T) {
	fs, _ := filled(t)
	s := openDir(t, fs, "root")
	s.ClaimJobs(4)
	claimed := readFile(t, fs, "root/SYNCED")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, "root/SYNCED", claimed)
	in, err := embedded.Inspect(fs, "root")
	if err != nil || in.Damaged != 1 || in.Examples[0] != "it has 3 jobs, and had 4 when it was closed" {
		t.Errorf("the inspection says %+v, %v", in, err)
	}
	refuses(t, fs, "root", job.Corrupt, "has 3 jobs, and had 4 when it was closed")
}

// A version that does not know of SYNCED may have worked in the directory between two
// that do: what it did is no damage.
func TestAnEarlierVersionMayWorkInBetween(t *testing.T) {
	fs, list := filled(t)
	known := readFile(t, fs, "root/SYNCED")
	s := openDir(t, fs, "root")
	settled(t, s, list[0], nil)
	put(t, s, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, "root/SYNCED", known)
	if in, err := embedded.Inspect(fs, "root"); err != nil {
		t.Errorf("an inspection says %v, %v", in, err)
	}
	if err := openDir(t, fs, "root").Close(); err != nil {
		t.Fatal(err)
	}
}

// The first start on a directory of an earlier version may end when the new list of
// tables is known and not yet the one in use.
func TestAFirstStartMayEndAnywhere(t *testing.T) {
	fs, o := flippable(t, "killed")
	removeAll(t, fs, "root/SYNCED")
	before := contents(t, fs)
	if err := openDir(t, fs, "root").Close(); err != nil {
		t.Fatal(err)
	}
	known := readFile(t, fs, "root/SYNCED")[:8<<10] // without the ends of logs, which came later
	for name := range contents(t, fs) {
		removeAll(t, fs, name)
	}
	for name, text := range before {
		writeFile(t, fs, name, []byte(text))
	}
	writeFile(t, fs, "root/SYNCED", known)
	s := openDir(t, fs, "root")
	o.whole(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Without SYNCED nobody can tell what is missing, and the log says so; of one of which
// a part is lost the number of jobs is not believed.
func TestAStartWithoutWhatTheDiskConfirmedIsTold(t *testing.T) {
	fs, _ := filled(t)
	known := readFile(t, fs, "root/SYNCED")
	var said strings.Builder
	logf := func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }
	start := func(what string, wants bool) {
		t.Helper()
		said.Reset()
		s, err := embedded.Open(embedded.Options{FS: fs, Dir: "root", Now: noonNow, Cache: 1 << 20, Logf: logf})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		put(t, s, 10) // one more than was known before
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "nobody can tell whether the disk lost jobs"); got != wants {
			t.Errorf("%s: it says %q", what, said.String())
		}
	}
	start("as it is", false)
	removeAll(t, fs, "root/SYNCED")
	start("gone", true)
	writeFile(t, fs, "root/SYNCED", bytes.Repeat([]byte("x"), len(known)))
	start("garbage", true)
	for _, cut := range []int{4 << 10, 0} { // one of them has the latest claims
		text := readFile(t, fs, "root/SYNCED")
		copy(text[cut:cut+100], make([]byte, 100))
		writeFile(t, fs, "root/SYNCED", text)
		start("a block is lost", false)
		start("it is whole again", false)
	}
}
