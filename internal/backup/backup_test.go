package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// noise does not compress: other bytes of an archive are other contents.
func noise(n int) string {
	b, rnd := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return string(b)
}

var (
	content = map[string]string{"FORMAT": "2\n", "data/000001.sst": noise(3000), "data/MANIFEST-1": "list", "data/empty": ""}
	order   = []string{"FORMAT", "data/000001.sst", "data/MANIFEST-1", "data/empty"}
)

func open(name string) (io.ReadCloser, error) {
	text, ok := content[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func list() (files []File) {
	for _, name := range order {
		files = append(files, File{name, int64(len(content[name]))})
	}
	return files
}

var manifest = Manifest{Version: "v1", Format: 2, At: 1_700_000_000_000}

func whole(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, manifest, list(), open); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func accept(Manifest) error { return nil }

func TestABackupComesBackAsItWas(t *testing.T) {
	b := whole(t)
	m, err := Check(iotest.OneByteReader(bytes.NewReader(b)))
	if err != nil || m.Files != 4 || m.Bytes != 2+3000+4 || m.Version != "v1" || m.Format != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	dir := t.TempDir()
	var told Manifest
	if got, err := Extract(bytes.NewReader(b), dir, func(m Manifest) error { told = m; return nil }); err != nil || got != m || told != m {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, text := range content {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}

// A body that was cut anywhere is noticed, and leaves nothing behind.
func TestHalfABackupIsNone(t *testing.T) {
	b := whole(t)
	for n := 0; n < len(b); n += 3 {
		if _, err := Check(bytes.NewReader(b[:n])); !errors.Is(err, ErrBroken) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
		}
	}
	dir := t.TempDir()
	for _, n := range []int{0, 10, len(b) / 2, len(b) - 20, len(b) - 1} {
		if _, err := Extract(bytes.NewReader(b[:n]), dir, accept); !errors.Is(err, ErrBroken) {
			t.Errorf("extracting %d bytes: %v", n, err)
		}
		empty(t, dir)
		to := filepath.Join(dir, "b.tar.gz")
		if _, _, err := Save(to, sends(b[:n])); !errors.Is(err, ErrBroken) {
			t.Errorf("saving %d bytes: %v", n, err)
		}
		empty(t, dir)
	}
	plain := inflate(t, b)
	for i := 0; i < len(b); i += 5 { // a byte that is another one: what it says must be the same
		bad := slices.Clone(b)
		bad[i] ^= 0x40
		if _, err := Check(bytes.NewReader(bad)); err == nil && !bytes.Equal(inflate(t, bad), plain) {
			t.Errorf("byte %d changed, and nobody noticed", i)
		}
	}
}

func inflate(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

type entry struct {
	name, text string
	kind       byte
}

func archive(t *testing.T, list ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range list {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.text)), Mode: 0o600}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		} else {
			h.Size, h.Linkname = 0, e.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == 0 {
			if _, err := io.WriteString(w, e.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsNoBackupIsRefused(t *testing.T) {
	const mark = `{"version":"v","format":2,"at":0,"files":2,"bytes":3}`
	begin, end := entry{name: "reprise-root/BACKUP", text: mark}, entry{name: "reprise-root/END", text: mark}
	format, file := entry{name: "reprise-root/FORMAT", text: "2\n"}, entry{name: "reprise-root/data/a", text: "x"}
	if _, err := Check(bytes.NewReader(archive(t, begin, format, file, end))); err != nil {
		t.Fatal("the good one:", err)
	}
	named := func(name string) entry { return entry{name: name, text: "x"} }
	for what, list := range map[string][]entry{
		"nothing in it":             {},
		"no manifest":               {format, file, end},
		"no end":                    {begin, format, file},
		"an end too early":          {begin, format, end},
		"another end":               {begin, format, file, {name: "reprise-root/END", text: strings.Replace(mark, `"at":0`, `"at":1`, 1)}},
		"something after the end":   {begin, format, file, end, named("reprise-root/data/b")},
		"one file more":             {begin, format, file, named("reprise-root/data/b"), end},
		"a file twice":              {begin, file, file, end},
		"a way out":                 {begin, format, named("reprise-root/data/../../etc/x"), end},
		"an absolute path":          {begin, format, named("/data/a"), end},
		"a hidden name":             {begin, format, named("reprise-root/data/.a"), end},
		"a directory below":         {begin, format, named("reprise-root/data/a/b"), end},
		"a file beside":             {begin, format, named("reprise-root/LOCK"), end},
		"another root":              {begin, format, named("zizq-root/data/a"), end},
		"a symbolic link":           {begin, format, {"reprise-root/data/a", "/etc/passwd", tar.TypeSymlink}, end},
		"a hard link":               {begin, format, {"reprise-root/data/a", "reprise-root/FORMAT", tar.TypeLink}, end},
		"another format":            {begin, {name: format.name, text: "3\n"}, file, end},
		"a format that is none":     {begin, {name: format.name, text: "x\n"}, file, end},
		"no format":                 {begin, file, named("reprise-root/data/bc"), end},
		"a file that is too large":  {begin, format, {name: file.name, text: "xyz"}, end},
		"a file that is too small":  {begin, format, {name: file.name, text: ""}, end},
		"a manifest that is no one": {{name: begin.name, text: "{"}, format, file, end},
	} {
		dir := t.TempDir()
		b := archive(t, list...)
		if _, err := Check(bytes.NewReader(b)); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := Extract(bytes.NewReader(b), dir, accept); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", what, err)
		}
		empty(t, dir)
	}
	if _, err := Check(bytes.NewReader(append(whole(t), 0))); !errors.Is(err, ErrBroken) {
		t.Errorf("a byte behind it: %v", err)
	}
}

func TestARefusedExtractTouchesNothing(t *testing.T) {
	dir, why := t.TempDir(), errors.New("no")
	if _, err := Extract(bytes.NewReader(whole(t)), dir, func(Manifest) error { return why }); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	empty(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Extract(bytes.NewReader(whole(t)), dir, accept); !errors.Is(err, os.ErrExist) {
		t.Errorf("over data that is there: %v", err)
	}
}

func TestABackupIsSavedWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	m, size, err := Save(path, sends(whole(t)))
	if err != nil || m.Files != 4 || size != int64(len(whole(t))) {
		t.Fatalf("%+v, %d, %v", m, size, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != size {
		t.Errorf("%v, %v: it holds payloads", info.Mode(), err)
	}
	// A file that cannot be written costs the server nothing.
	unasked := func() (io.ReadCloser, error) {
		t.Error("a backup is asked for that cannot be kept")
		return nil, errors.New("never")
	}
	if _, _, err := Save(path, unasked); err == nil || !strings.Contains(err.Error(), "exists already") || strings.Contains(err.Error(), "removed") {
		t.Errorf("over one that exists: %v", err)
	}
	if _, _, err := Save(filepath.Join(t.TempDir(), "no", "b"), unasked); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into no directory: %v", err)
	}
	// One that is refused leaves nothing, and is told as it is.
	dir, refused := t.TempDir(), errors.New("one is being made already")
	if _, _, err := Save(filepath.Join(dir, "b"), func() (io.ReadCloser, error) { return nil, refused }); err == nil || err.Error() != refused.Error() {
		t.Errorf("a refused one: %v", err)
	}
	if _, _, err := Save(filepath.Join(dir, "b"), sends(whole(t)[:100])); err == nil || !strings.Contains(err.Error(), "is not complete and was removed") {
		t.Errorf("half of one: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("they leave %v, %v", left, err)
	}
}

// sends answers with an archive.
func sends(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

// A file that changes while it is being copied makes no backup.
func TestAFileThatChangesIsNoticed(t *testing.T) {
	files := list()
	files[1].Size--
	if err := Write(io.Discard, manifest, files, open); err == nil {
		t.Error("one byte more was not noticed")
	}
	files[1].Size += 2
	if err := Write(io.Discard, manifest, files, open); err == nil {
		t.Error("one byte less was not noticed")
	}
	files[1] = File{"data/gone", 1}
	if err := Write(io.Discard, manifest, files, open); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
}
