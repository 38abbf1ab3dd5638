package server

import (
	"net"
	"path/filepath"
	"testing"
)

func TestTheSupervisorIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	t.Setenv("NOTIFY_SOCKET", path)
	if err := notify("READY=1"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	n, err := l.Read(b)
	if err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("it heard %q, %v", b[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", path+"-not")
	if notify("READY=1") == nil {
		t.Error("nobody listens, and that is no error")
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := notify("READY=1"); err != nil {
		t.Errorf("without a supervisor: %v", err)
	}
}
