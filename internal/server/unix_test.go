package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAUnixSocketIsForItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := listenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its rights are %v, %v", info.Mode(), err)
	}
	if _, err := listenUnix(t.Context(), path); err == nil || !strings.Contains(err.Error(), "a server answers at") {
		t.Errorf("a second server listens: %v", err)
	}
	if _, err := net.Dial("unix", path); err != nil {
		t.Errorf("the second server took the socket of the first away: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays behind: %v", err)
	}
}

func TestASocketThatADeadServerLeftIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	l, err := listenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestAFileIsNotTakenForASocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notes")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link, dir} {
		if _, err := listenUnix(t.Context(), p); err == nil || !strings.Contains(err.Error(), "is no socket") {
			t.Errorf("%s: %v", p, err)
		}
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file is gone: %q, %v", text, err)
	}
}
