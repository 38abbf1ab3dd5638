package server

import (
	"cmp"
	"errors"
	"syscall"
)

// ownerOnly gives a socket its rights before it has a name, so that there is
// no moment in which others could connect.
func ownerOnly(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
	return cmp.Or(err, failed)
}

// refusedDial reports whether nobody listens at a socket.
func refusedDial(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
