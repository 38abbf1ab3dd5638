package server

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatOthersCouldReadIsMended: what a server made is taken from others, with a
// notice, and nothing else in the directory.
func TestWhatOthersCouldReadIsMended(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"FORMAT", "LOCK", "data/000004.log", "data/deep/file", "notes"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var fs1 Findings
	fs1.access(dir, stat(t, dir))
	finds(t, fs1, "directory", HealthWarn, "have rights on 6 of its files")
	var out bytes.Buffer
	tighten(dir, slog.New(slog.NewTextHandler(&out, nil)))
	if !strings.Contains(out.String(), "took away the rights") || !strings.Contains(out.String(), "files=6") {
		t.Errorf("it said %s", &out)
	}
	for name, want := range map[string]fs.FileMode{
		".": 0o700, "FORMAT": 0o600, "LOCK": 0o600, "data": 0o700, "data/000004.log": 0o600, "data/deep": 0o700, "notes": 0o644,
	} {
		if got := stat(t, filepath.Join(dir, name)).Mode().Perm(); got != want {
			t.Errorf("%s has the mode %o, want %o", name, got, want)
		}
	}
	var fs2 Findings
	fs2.access(dir, stat(t, dir))
	finds(t, fs2, "directory", HealthOK, "mode 700")
	out.Reset()
	if tighten(dir, slog.New(slog.NewTextHandler(&out, nil))); out.Len() > 0 {
		t.Errorf("the second time it said %s", &out)
	}
}

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
