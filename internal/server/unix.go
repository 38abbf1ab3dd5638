package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// listenUnix opens a socket of the file system that only the user of this
// process may connect to. A socket that a dead server left behind is taken
// away; one at which somebody answers, or a file of another kind, is not.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("listening on the socket: %w", err)
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("listening on the socket: %s is there and is no socket; name another path with --unix", path)
	case answered(path):
		return nil, fmt.Errorf("listening on the socket: a server answers at %s; name another path with --unix", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("taking away the socket of a server that is gone: %w", err)
		}
	}
	open := net.ListenConfig{Control: ownerOnly}
	listener, err := open.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on the socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // where ownerOnly cannot do it
		return nil, errors.Join(fmt.Errorf("listening on the socket: %w", err), listener.Close())
	}
	return listener, nil
}

// answered reports whether somebody accepts at a socket, or has so much to do
// that it does not.
func answered(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return !refusedDial(err)
	}
	_ = conn.Close()
	return true
}
