package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// openUnix listens on a socket at a path.
func (a *Address) openUnix(ctx context.Context, path string, perm fs.FileMode) (net.Listener, error) {
	if err := freeSocket(path); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := permit(path, perm); err != nil {
		_ = l.Close() // nobody has come
		return nil, err
	}
	plainly := *a
	plainly.TLS = nil
	return plainly.opened(l, connectionsMost), nil
}

// freeSocket removes a socket that a process has left which was killed.
func freeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket; remove it, or choose another path", path)
	}
	return os.Remove(path)
}

func permit(path string, perm fs.FileMode) error {
	if perm == 0 {
		perm = 0o644
	}
	return os.Chmod(path, perm)
}
