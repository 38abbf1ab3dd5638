//go:build unix

package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// intake is one in memory: what it has taken survives the runs of a source.
type intake struct {
	mu      sync.Mutex
	cursors map[string][]byte
	fail    error
	gate    chan struct{} // closed while it takes; nil = it always does
	taken   chan string   // tag and record
	calls   chan struct{} // each Take that begins
}

func newIntake() *intake {
	return &intake{cursors: map[string][]byte{}, taken: make(chan string, 1<<16), calls: make(chan struct{}, 1<<16)}
}

func (in *intake) Cursors(context.Context) (map[string][]byte, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return maps.Clone(in.cursors), nil
}

func (in *intake) Take(ctx context.Context, list ...connect.Records) error {
	in.calls <- struct{}{}
	if in.gate != nil {
		select {
		case <-in.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fail != nil {
		return in.fail
	}
	for _, l := range list {
		for key, at := range l.At {
			if at == nil {
				delete(in.cursors, key)
			} else {
				in.cursors[key] = bytes.Clone(at)
			}
		}
		r, n := record.NewReader(l.Events), 0
		for ; r.Next(); n++ {
			in.taken <- l.Tag + " " + string(record.AppendJSON(nil, r.Body, false))
		}
		if r.Err() != nil || n != l.Count {
			return fmt.Errorf("%d events are not the %d that were counted: %w", n, l.Count, r.Err())
		}
	}
	return nil
}

// want waits for records, in their order.
func (in *intake) want(t *testing.T, records ...string) {
	t.Helper()
	for _, want := range records {
		select {
		case got := <-in.taken:
			if got != want {
				t.Fatalf("took %s, want %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing more came; want %s", want)
		}
	}
}

// none is for when all has ended.
func (in *intake) none(t *testing.T) {
	t.Helper()
	select {
	case got := <-in.taken:
		t.Fatalf("took %s, want nothing", got)
	default:
	}
}

func (in *intake) offset(t *testing.T, name string) int64 {
	t.Helper()
	list, _ := in.Cursors(t.Context())
	for _, b := range list {
		if c, ok := decodeCursor(b); ok && filepath.Base(c.path) == name {
			return c.at
		}
	}
	return -1
}

type dir struct {
	testing.TB
	path string
}

func (d dir) write(name, text string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.path, name), []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

func (d dir) append(name, text string) {
	d.Helper()
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString(text); err != nil {
		d.Fatal(err)
	}
}

func (d dir) rename(from, to string) {
	d.Helper()
	if err := os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to)); err != nil {
		d.Fatal(err)
	}
}

// start runs a source over the directory until stop is called.
func (d dir) start(t *testing.T, in *intake, change func(*Options)) (stop func() error) {
	t.Helper()
	o := Options{
		Path: []string{filepath.Join(d.path, "*.log")}, Tag: "t", ReadFromHead: true,
		RefreshInterval: time.Millisecond, RotateWait: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, in) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

// all reads what there is, to its end.
func (d dir) all(t *testing.T, in *intake, change func(*Options)) {
	t.Helper()
	o := Options{
		Path: []string{filepath.Join(d.path, "*.log")}, Tag: "t", ReadFromHead: true, ExitOnEOF: true,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func log(lines ...string) []string {
	for i, l := range lines {
		lines[i] = `t {"log":"` + l + `"}`
	}
	return lines
}

func TestLinesAreReadAsTheyCome(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "one\ntwo\r\n\nthr")
	stop := d.start(t, in, nil)
	in.want(t, log("one", "two", "")...)
	d.append("a.log", "ee\nfour")
	in.want(t, log("three")...)
	d.write("b.log", "new\n")
	in.want(t, log("new")...)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	in.none(t)
	d.append("a.log", "\n")
	d.start(t, in, nil)
	in.want(t, log("four")...)
}

func TestWhatWasNotTakenIsReadAgain(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "one\n")
	stop := d.start(t, in, nil)
	in.want(t, log("one")...)
	in.mu.Lock()
	in.fail = errors.New("the disk is full")
	in.mu.Unlock()
	d.append("a.log", "two\n")
	<-in.calls
	<-in.calls // the second is the one that fails
	if err := stop(); err != nil && !errors.Is(err, in.fail) {
		t.Fatal(err)
	}
	in.fail = nil
	d.all(t, in, nil)
	in.want(t, log("two")...)
	d.all(t, in, nil)
	in.none(t)
}

func TestAnIntakeThatFailsEndsTheRun(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	in.fail = errors.New("the disk is full")
	d.write("a.log", "one\n")
	s, err := New(Options{Path: []string{d.path + "/*.log"}, Tag: "t", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), in); !errors.Is(err, in.fail) {
		t.Fatalf("the run ended with %v, want %v", err, in.fail)
	}
}

func TestRotation(t *testing.T) {
	for _, test := range []struct {
		name   string
		rotate func(d dir)
	}{
		{"by rename", func(d dir) { d.rename("a.log", "a.log.1"); d.append("a.log.1", "late\n"); d.write("a.log", "next\n") }},
		{"by rename to a name that is read", func(d dir) { d.rename("a.log", "a.1.log"); d.append("a.1.log", "late\n"); d.write("a.log", "next\n") }},
		{"by copy and truncation", func(d dir) { d.append("a.log", "late\n") }},
		{"by deletion", func(d dir) {
			d.append("a.log", "late\n")
			if err := os.Remove(d.path + "/a.log"); err != nil {
				d.Fatal(err)
			}
			d.write("a.log", "next\n")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, in := dir{t, t.TempDir()}, newIntake()
			d.write("a.log", "one\n")
			stop := d.start(t, in, nil)
			in.want(t, log("one")...)
			test.rotate(d)
			in.want(t, log("late")...)
			if strings.HasPrefix(test.name, "by copy") {
				if err := os.Truncate(d.path+"/a.log", 0); err != nil {
					t.Fatal(err)
				}
				d.append("a.log", "next\n")
			}
			in.want(t, log("next")...)
			d.append("a.log", "more\n")
			in.want(t, log("more")...)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			d.all(t, in, nil)
			in.none(t)
		})
	}
}

func TestAFileThatIsCutAndLongerAtOnceIsReadFromItsBeginning(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "one\n")
	d.all(t, in, nil)
	in.want(t, log("one")...)
	d.write("a.log", "two, and longer\n") // the same inode
	d.all(t, in, nil)
	in.want(t, log("two, and longer")...)

	d.start(t, in, nil)
	d.write("a.log", "three, and still longer\n")
	in.want(t, log("three, and still longer")...)
}

func TestAWriterThatGoesOnWhereItWasInAFileThatWasCut(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	line := strings.Repeat("x", 3*blockBytes)
	d.write("a.log", line+"\n")
	f, err := os.OpenFile(d.path+"/a.log", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	d.start(t, in, func(o *Options) { o.BufferMaxSize = 4 * blockBytes })
	in.want(t, log(line)...)
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("two\n"), int64(len(line)+1)); err != nil {
		t.Fatal(err)
	}
	in.want(t, log("two")...)
}

func TestARotationWhileNothingRanLosesNothing(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "one\n")
	d.all(t, in, nil)
	in.want(t, log("one")...)
	d.append("a.log", "late\n")
	d.rename("a.log", "a.old")
	d.write("a.log", "next\n")
	d.all(t, in, func(o *Options) { o.ReadFromHead = false })
	if got := []string{<-in.taken, <-in.taken}; !slices.Equal(sorted(got), sorted(log("late", "next"))) {
		t.Fatalf("took %v", got)
	}
	d.all(t, in, nil)
	in.none(t)
}

func TestAFileOfWhichNothingWasTakenYetIsFoundAgainToo(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	none := func(o *Options) { o.ReadFromHead = false }
	d.all(t, in, none) // there is nothing
	d.write("a.log", "")
	stop := d.start(t, in, none)
	for in.offset(t, "a.log") < 0 {
		<-in.calls
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	d.append("a.log", "one\n")
	d.rename("a.log", "a.old")
	d.write("a.log", "next\n")
	d.all(t, in, none)
	in.want(t, log("next", "one")...)
}

func sorted(list []string) []string { slices.Sort(list); return list }

func TestARotatedFileIsForgottenAfterItsTime(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "one\nthe end")
	d.start(t, in, func(o *Options) { o.RotateWait = time.Millisecond })
	in.want(t, log("one")...)
	d.rename("a.log", "a.old")
	in.want(t, log("the end")...) // it would be lost
	for in.offset(t, "a.log") >= 0 {
		<-in.calls
	}
}

func TestCursorsOfFilesThatAreNoMoreAreForgotten(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "one\n")
	d.all(t, in, nil)
	if err := os.Remove(d.path + "/a.log"); err != nil {
		t.Fatal(err)
	}
	d.all(t, in, nil)
	if delete(in.cursors, marker); len(in.cursors) > 0 {
		t.Fatalf("kept %v", in.cursors)
	}
}

func TestWhatIsThereAtTheFirstStartIsLeftUnlessAskedFor(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "old\n")
	none := func(o *Options) { o.ReadFromHead = false }
	d.all(t, in, none)
	in.none(t)
	if got := in.offset(t, "a.log"); got != 4 {
		t.Fatalf("the cursor is %d, want 4", got)
	}
	d.append("a.log", "new\n") // while nothing runs
	d.write("b.log", "appeared\n")
	d.all(t, in, none)
	in.want(t, log("new", "appeared")...)
	d.write("c.log", "skipped\n")
	d.all(t, in, func(o *Options) { o.ReadFromHead, o.SkipNewContent = false, true })
	in.none(t)
}

func TestOldFilesAreLeft(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "old\n")
	d.write("b.log", "new\n")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(d.path+"/a.log", old, old); err != nil {
		t.Fatal(err)
	}
	d.all(t, in, func(o *Options) { o.IgnoreOlder = time.Minute })
	in.want(t, log("new")...)
	in.none(t)
}

func TestThingsThatAreNoFilesOfLines(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("a.log", "one\n")
	if err := syscall.Mkfifo(d.path+"/b.log", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(d.path+"/nowhere", d.path+"/c.log"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(d.path+"/a.log", d.path+"/d.log"); err != nil { // read once
		t.Fatal(err)
	}
	d.start(t, in, nil)
	in.want(t, log("one")...)
	d.rename("a.log", "a.old")
	if err := os.Mkdir(d.path+"/a.log", 0o700); err != nil {
		t.Fatal(err)
	}
	d.append("a.old", "two\n")
	in.want(t, log("two")...)
	if err := os.Remove(d.path + "/a.log"); err != nil {
		t.Fatal(err)
	}
	d.write("a.log", "three\n")
	in.want(t, log("three")...)
	in.none(t)
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 99) + "ä" + strings.Repeat("y", 2*blockBytes)
	text := "one\n" + long + "\n" + "two\n" + long
	for _, test := range []struct {
		name   string
		change func(*Options)
		want   []string
	}{
		{"stop the file", func(*Options) {}, log("one")},
		{"are left", func(o *Options) { o.SkipLongLines = true }, log("one", "two")},
		{"are cut", func(o *Options) { o.TruncateLongLines = true }, log("one", long[:99], "two", long[:99])},
		{"are cut although they shall be left", func(o *Options) { o.TruncateLongLines, o.SkipLongLines = true, true }, log("one", long[:99], "two", long[:99])},
		{"are read if they may be", func(o *Options) { o.BufferMaxSize = 4 << 20 }, log("one", long, "two", long)},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, in := dir{t, t.TempDir()}, newIntake()
			d.write("a.log", text)
			d.all(t, in, func(o *Options) { o.BufferMaxSize = 100; test.change(o) })
			in.want(t, test.want...)
			in.none(t)
			if test.name == "stop the file" {
				if got := in.offset(t, "a.log"); got != 4 {
					t.Fatalf("the cursor is %d, want 4", got)
				}
				return
			}
			d.append("a.log", " and its end\nthree\n")
			d.all(t, in, func(o *Options) { o.BufferMaxSize = 100; test.change(o) })
			if strings.HasPrefix(test.name, "are read") {
				in.want(t, log(" and its end")...) // exit_on_eof has taken the beginning
			}
			in.want(t, log("three")...)
			in.none(t)
		})
	}
}

func TestTheSameLineAtEveryEdgeOfTheBound(t *testing.T) {
	for n := 98; n <= 102; n++ {
		d, in := dir{t, t.TempDir()}, newIntake()
		line := strings.Repeat("x", n)
		d.write("a.log", line+"\nnext\n")
		d.all(t, in, func(o *Options) { o.BufferMaxSize, o.SkipLongLines = 100, true })
		if n <= 100 {
			in.want(t, log(line)...)
		}
		in.want(t, log("next")...)
		in.none(t)
	}
}

func TestBytesAreKept(t *testing.T) {
	d, in := dir{t, t.TempDir()}, &raw{}
	line := "\x00a\xff\xfe\x80b\x00"
	d.write("a.log", line+"\n")
	s, err := New(Options{Path: []string{d.path + "/*.log"}, Tag: "t", ReadFromHead: true, ExitOnEOF: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	r := record.NewReader(in.events)
	if !r.Next() {
		t.Fatal("there is no event")
	}
	path, _ := record.ParsePath("$log")
	if got, _ := record.Text(path.Find(r.Body)); string(got) != line {
		t.Fatalf("read %q, want %q", got, line)
	}
}

type raw struct{ events []byte }

func (*raw) Cursors(context.Context) (map[string][]byte, error) { return nil, nil }
func (in *raw) Take(_ context.Context, list ...connect.Records) error {
	for _, l := range list {
		in.events = append(in.events, l.Events...)
	}
	return nil
}

func TestTagsAndKeys(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	d.write("web_7.log", "one\n\ntwo\n")
	d.write("web_7.skip.log", "no\n")
	path := d.path + "/web_7.log"
	d.all(t, in, func(o *Options) {
		o.Tag, o.PathKey, o.OffsetKey, o.Key, o.SkipEmptyLines = "kube.*", "file", "at", "msg", true
		o.ExcludePath = []string{"*.skip.log"}
	})
	tag := "kube." + strings.ReplaceAll(path[1:], "/", ".")
	in.want(t, tag+` {"file":"`+path+`","at":0,"msg":"one"}`, tag+` {"file":"`+path+`","at":5,"msg":"two"}`)
	in.none(t)

	in = newIntake()
	d.all(t, in, func(o *Options) {
		o.Tag, o.TagRegex, o.ExcludePath = "app.<name>.<n>", `/(?<name>[a-z]+)_(?<n>\d)\.log$/`, []string{"*.skip.log"}
	})
	in.want(t, `app.web.7 {"log":"one"}`)
}

// joined joins lines that begin with a space to the one before.
type joined struct{ held []string }

func (j *joined) Line(dst, line []byte, now time.Time) ([]byte, int, int) {
	if len(line) > 0 && line[0] == ' ' {
		j.held = append(j.held, string(line))
		return dst, 0, len(j.held)
	}
	dst, n := j.Rest(dst, now)
	j.held = []string{string(line)}
	return dst, n, 1
}

func (j *joined) Rest(dst []byte, now time.Time) ([]byte, int) {
	if len(j.held) == 0 {
		return dst, 0
	}
	dst = record.AppendText(dst, record.At(now), "log", []byte(strings.Join(j.held, "|")))
	j.held = nil
	return dst, 1
}

func TestLinesThatBelongTogether(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	change := func(flush time.Duration) func(*Options) {
		return func(o *Options) {
			o.Lines, o.MultilineFlush, o.OffsetKey = func() connect.Lines { return &joined{} }, flush, "at"
		}
	}
	d.write("a.log", "one\n 1\n 2\ntwo\n 1\n")
	stop := d.start(t, in, change(time.Hour))
	in.want(t, `t {"log":"one| 1| 2","at":0}`)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := in.offset(t, "a.log"); got != 10 {
		t.Fatalf("the cursor is %d, want 10: the second event was not taken", got)
	}
	d.append("a.log", " 2\n")
	d.start(t, in, change(time.Nanosecond))
	in.want(t, `t {"log":"two| 1| 2","at":10}`)
}

func TestARunThatWaitsForTheIntakeStillSeesRotations(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	in.gate = make(chan struct{})
	d.write("a.log", "one\n")
	looks := make(chan struct{}, 1<<16)
	d.start(t, in, func(o *Options) {
		o.Now = func() time.Time {
			select {
			case looks <- struct{}{}:
			default:
			}
			return time.Now()
		}
	})
	<-in.calls // it waits
	for i := range 5 {
		d.rename("a.log", "gone")
		d.write("a.log", fmt.Sprintf("%d\n", i))
		for range 20 {
			<-looks
		}
	}
	close(in.gate)
	got := []string{}
	for range 6 {
		got = append(got, <-in.taken)
	}
	if want := log("0", "1", "2", "3", "4", "one"); !slices.Equal(sorted(got), want) {
		t.Fatalf("took %v, want %v", got, want)
	}
}

func TestManyFilesAndBatches(t *testing.T) {
	d, in := dir{t, t.TempDir()}, newIntake()
	want := []string{}
	for i := range 20 {
		text := strings.Builder{}
		for n := range 2000 {
			line := fmt.Sprintf("%d of %d %s", n, i, strings.Repeat("x", n%300))
			text.WriteString(line + "\n")
			want = append(want, log(line)...)
		}
		d.write(fmt.Sprintf("%d.log", i), text.String())
	}
	d.all(t, in, nil)
	close(in.taken)
	got := []string{}
	for r := range in.taken {
		got = append(got, r)
	}
	if !slices.Equal(sorted(got), sorted(want)) {
		t.Fatalf("took %d records, want %d", len(got), len(want))
	}
}

func TestAllFaultsOfTheOptionsAreToldAtOnce(t *testing.T) {
	_, err := New(Options{
		ExcludePath: []string{"["}, TagRegex: "(", RefreshInterval: -1, RotateWait: -1, IgnoreOlder: -1,
		BufferChunkSize: 10, BufferMaxSize: 5,
	})
	if err == nil {
		t.Fatal("they were taken")
	}
	for _, name := range []string{"path", "exclude_path", "tag_regex", "refresh_interval", "rotate_wait", "ignore_older", "buffer_max_size"} {
		if !strings.Contains("\n"+err.Error(), "\n"+name+": ") {
			t.Errorf("%q does not speak of %s", err, name)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func FuzzCursor(f *testing.F) {
	c := cursor{at: 5, skipping: true, print: fingerprint{4, 9}, path: "/a"}
	f.Add(c.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := decodeCursor(b)
		if again, fine := decodeCursor(c.encode()); ok && (!fine || again != c) {
			t.Fatalf("%+v became %+v", c, again)
		}
	})
}

// FuzzCut compares the lines of a file with those that are cut with the plainest means.
func FuzzCut(f *testing.F) {
	f.Add([]byte("a\n\nb\r\nccccccccccccc\nd"), []byte("e\n"), uint8(0))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaa"), []byte("a\nb\n"), uint8(1))
	f.Fuzz(func(t *testing.T, one, two []byte, how uint8) {
		d, in := dir{t, t.TempDir()}, &raw{}
		o := Options{
			Path: []string{d.path + "/a.log"}, Tag: "t", BufferMaxSize: 10, ReadFromHead: true, Now: time.Now,
			TruncateLongLines: how&1 != 0, SkipLongLines: how&1 == 0, SkipEmptyLines: how&2 != 0,
		}
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		r := s.reader(nil)
		r.block = make([]byte, 12+how%40) // small, to meet its ends
		for _, text := range [][]byte{one, two} {
			d.append("a.log", string(text))
			r.look(t.Context())
			for r.read(t.Context()) {
			}
		}
		if err := in.Take(t.Context(), r.batch.records()...); err != nil {
			t.Fatal(err)
		}
		want := []byte(nil)
		all := append(bytes.Clone(one), two...)
		for line := range bytes.Lines(all) {
			line, ended := bytes.CutSuffix(line, []byte("\n"))
			if !ended && len(line) <= 10 || len(line) > 10 && o.SkipLongLines {
				continue
			} else if len(line) > 10 {
				line = whole(line[:10])
			}
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) > 0 || !o.SkipEmptyLines {
				want = msgp.AppendStringFromBytes(want, line)
			}
		}
		got, path := []byte(nil), must(record.ParsePath("$log"))
		for e := record.NewReader(in.events); e.Next(); {
			got = append(got, path.Find(e.Body)...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("cut %q, want %q", got, want)
		}
		for _, f := range r.files {
			_ = f.f.Close()
		}
	})
}
