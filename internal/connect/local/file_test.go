//go:build linux

package local

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

func newFile(t *testing.T, change func(*FileOptions)) *File {
	t.Helper()
	o := DefaultFile()
	o.Now = now
	change(&o)
	f, err := NewFile(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func TestFormatsOfFilesAreThoseOfTheOriginal(t *testing.T) {
	for _, c := range []struct {
		change func(*FileOptions)
		body   string
		want   string // of one record
		header string
	}{
		{func(o *FileOptions) {}, `{"k":"v"}`, `tag: [1448403340.000000000, {"k":"v"}]` + "\n", ""},
		{func(o *FileOptions) { o.Format = "plain" }, `{"k":"é"}`, `{"k":"\u00e9"}` + "\n", ""},
		{func(o *FileOptions) { o.Format, o.EscapeUnicode = "plain", false }, `{"k":"é"}`, `{"k":"é"}` + "\n", ""},
		{func(o *FileOptions) { o.Format = "csv" }, `{"k":"v","n":1,"q":"a\"b,c","m":{"x":[1]},"z":null}`, `1448403340.000000000,"v",1,"a""b,c","{""x"":[1]}",null` + "\n", ""},
		{func(o *FileOptions) { o.Format, o.ColumnNames, o.Delimiter = "csv", true, ";" }, `{"k":"v"}`, `1448403340.000000000;"v"` + "\n", `timestamp;"k"` + "\n"},
		{func(o *FileOptions) { o.Format = "ltsv" }, `{"k":"v","t":"a\tb"}`, `"time":1448403340.000000` + "\t" + `"k":"v"` + "\t" + `"t":"a\tb"` + "\n", ""},
		{func(o *FileOptions) { o.Format, o.Delimiter, o.LabelDelimiter = "ltsv", "|", "=" }, `{"k":"v"}`, `"time"=1448403340.000000|"k"="v"` + "\n", ""},
		{func(o *FileOptions) { o.Format = "template" }, `{"message":"text"}`, "1448403340.000000 text\n", ""},
		{func(o *FileOptions) { o.Format, o.Template = "template", "{a} {b}{none} {" }, `{"a":{"x":1},"b":2}`, `{"x":1} 2{none} {` + "\n", ""},
		{func(o *FileOptions) { o.Format = "msgpack" }, `{"k":"v"}`, string(chunk(t, `{"k":"v"}`)), ""},
	} {
		dir := t.TempDir()
		f := newFile(t, func(o *FileOptions) {
			o.Path, o.File, o.Sync = dir, "out", true
			c.change(o)
		})
		for i := range 2 {
			if r := deliver(t, f, "tag", chunk(t, c.body, c.body)); r != ok {
				t.Fatalf("%+v", r)
			}
			if got, want := content(t, filepath.Join(dir, "out")), c.header+strings.Repeat(c.want, 2*i+2); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		}
	}
}

func TestFilesAreNamedAfterTags(t *testing.T) {
	dir := t.TempDir()
	f := newFile(t, func(o *FileOptions) { o.Path, o.Mkdir = filepath.Join(dir, "a", "b"), true })
	for tag, name := range map[string]string{
		"app.web": "app.web", "../../etc/passwd": "____etc_passwd", "a/b:c d": "a_b_c_d", "..": "_", ".": "_", "": "_", "été": "_t_",
	} {
		if r := deliver(t, f, tag, chunk(t, `{}`)); r != ok || content(t, filepath.Join(dir, "a", "b", name)) == "" {
			t.Errorf("%q: %+v", tag, r)
		}
	}
}

func TestAFileThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	f := newFile(t, func(o *FileOptions) { o.Path, o.File = filepath.Join(dir, "later"), "out" })
	r := deliver(t, f, "t", chunk(t, `{}`))
	if r.Outcome != job.Retried || r.Failure.Type != TypeFile || !strings.Contains(r.Failure.Message, "later/out: no such file or directory") || r.Parts != nil {
		t.Errorf("%+v", r)
	}
	if err := os.Mkdir(filepath.Join(dir, "later"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r = deliver(t, f, "t", chunk(t, `{}`)); r != ok {
		t.Errorf("%+v", r)
	}
	isDir := newFile(t, func(o *FileOptions) { o.Path, o.File = dir, "later" })
	if r = deliver(t, isDir, "t", chunk(t, `{}`)); r.Outcome != job.Retried || !strings.Contains(r.Failure.Message, "is a directory") {
		t.Errorf("%+v", r)
	}
	noDir := newFile(t, func(o *FileOptions) { o.Path, o.File, o.Mkdir = filepath.Join(dir, "later", "out", "x"), "y", true })
	if r = deliver(t, noDir, "t", chunk(t, `{}`)); r.Outcome != job.Retried || !strings.Contains(r.Failure.Message, "not a directory") {
		t.Errorf("%+v", r)
	}
}

func TestAFullDiskIsNoDelivery(t *testing.T) {
	full := newFile(t, func(o *FileOptions) { o.Path, o.File = "/dev", "full" })
	if r := deliver(t, full, "t", chunk(t, `{}`)); r.Outcome != job.Retried || !strings.Contains(r.Failure.Message, "no space left") || r.Parts != nil {
		t.Errorf("%+v", r)
	}
	// A file that may not become longer is one on a disk that becomes full in the middle of a chunk.
	const most = 3*textBytesMax + 100
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	f := newFile(t, func(o *FileOptions) { o.Path, o.File, o.Format = dir, "out", "plain" })
	deliver(t, f, "t", chunk(t, `{"first":1}`))
	bodies := make([]string, 1000)
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("x", 1000))
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	r := deliver(t, f, "t", chunk(t, bodies...))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if r.Outcome != job.Retried || r.Parts != nil || content(t, path) != `{"first":1}`+"\n" {
		t.Errorf("%+v, %d bytes in the file", r, len(content(t, path)))
	}
	if r = deliver(t, f, "t", chunk(t, bodies...)); r != ok || content(t, path) != `{"first":1}`+"\n"+strings.Join(bodies, "\n")+"\n" {
		t.Errorf("%+v", r)
	}
}

func TestWhatOthersWroteIsNotCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f := newFile(t, func(o *FileOptions) { o.Format = "plain" })
	for _, others := range []string{"", "theirs\n"} {
		file, err := f.open(path)
		if err != nil {
			t.Fatal(err)
		}
		full := &half{File: file, others: others}
		before := content(t, path)
		whole, err := f.write(full, "t", chunk(t, `{"n":1}`))
		if err == nil || whole != 0 || !strings.HasPrefix(content(t, path), before) || !strings.HasSuffix(content(t, path), others) {
			t.Errorf("%d, %v: %q", whole, err, content(t, path))
		}
		if cut := !strings.Contains(fmt.Sprint(err), "could not be cut off"); cut != (others == "") {
			t.Error(err)
		}
		_ = file.Close()
	}
}

// half is a file that takes half of what is written, while others write too.
type half struct {
	*os.File
	others string
}

func (h *half) Write(p []byte) (int, error) {
	n, err := h.File.Write(p[:len(p)/2])
	_, err2 := h.WriteString(h.others)
	return n, errors.Join(err, err2, syscall.ENOSPC)
}

func TestWhatAPipeHasTakenDoesNotComeAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for i := range 1000 {
		bodies = append(bodies, fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("x", 1000)))
	}
	events := chunk(t, bodies...)
	f := newFile(t, func(o *FileOptions) { o.Path, o.File, o.Format = dir, "pipe", "plain" })
	if r := deliver(t, f, "t", events); r.Outcome != job.Retried || !strings.Contains(r.Failure.Message, "no such device") {
		t.Errorf("nobody reads: %+v", r)
	}
	reader, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stalled := make(chan connect.Result)
	go func() {
		stalled <- f.Deliver(ctx, &connect.Batch{Messages: []connect.Message{{Type: "t", Body: events}}})[0]
	}()
	if _, err := io.CopyN(io.Discard, reader, textBytesMax); err != nil { // and no more
		t.Fatal(err)
	}
	cancel()
	if r := <-stalled; r.Outcome != job.Released || r.Failure != (job.Failure{}) {
		t.Errorf("nobody reads on: %+v", r)
	}
	done := make(chan error)
	go func() { // reads two pieces and goes
		_, err := io.CopyN(io.Discard, reader, 2*textBytesMax+1<<16)
		done <- errors.Join(err, reader.Close())
	}()
	r := deliver(t, f, "t", events)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r.Outcome != job.Retried || r.Parts == nil || !strings.HasSuffix(string(events), string(r.Parts.Rest)) || !strings.Contains(r.Failure.Message, "broken pipe") ||
		!strings.Contains(r.Failure.Message, "could not be cut off again") {
		t.Fatalf("%s %+v", r.Outcome, r.Failure)
	}
	left, _, err := record.Count(r.Parts.Rest)
	if err != nil || left == 0 || left >= 1000-textBytesMax/1100 {
		t.Errorf("%d records are left, %v", left, err)
	}
}

func TestFilesThatAreFullArePutAside(t *testing.T) {
	dir := t.TempDir()
	second := now()
	f := newFile(t, func(o *FileOptions) {
		o.Path, o.File, o.Format, o.Rotate, o.RotateMaxSize, o.RotateMaxFiles = dir, "out[1]", "plain", true, 10, 3
		o.Now = func() time.Time { return second }
	})
	for i := range 7 {
		second = second.Add(time.Duration(i%2) * time.Second) // two of a second
		if r := deliver(t, f, "t", chunk(t, fmt.Sprintf(`{"number":%d}`, i))); r != ok {
			t.Fatalf("%+v", r)
		}
		f.tidiers.Wait()
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names, texts []string
	for _, e := range entries {
		names = append(names, e.Name())
		from, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		if strings.HasSuffix(e.Name(), ".gz") {
			z, err := gzip.NewReader(from)
			if err != nil {
				t.Fatal(err)
			}
			text, err = io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
		} else {
			text, _ = io.ReadAll(from)
		}
		_ = from.Close()
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	if len(names) != 4 || names[0] != "out[1]" || strings.Join(texts, " ") != `{"number":6} {"number":3} {"number":4} {"number":5}` {
		t.Errorf("%v: %v", names, texts)
	}
}

func TestAllThatIsWrongWithAFileIsToldAtOnce(t *testing.T) {
	_, err := NewFile(FileOptions{Format: "xml", File: "a\x00", Rotate: true})
	var fields []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		one, _ := errors.AsType[*job.Error](e)
		fields = append(fields, one.Field)
	}
	if fmt.Sprint(fields) != "[format rotate_max_size rotate_max_files file]" {
		t.Error(err)
	}
	if _, err := NewFile(DefaultFile()); err != nil {
		t.Error(err)
	}
	var _ connect.Sink = Null{}
}
