package server

import (
	"cmp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout bounds how long what was sent may stay unacknowledged, also by a
// peer that answers but has closed its window: a worker that is stopped.
// Without it the kernel keeps such a connection for ever, and its jobs.
func userTimeout(d time.Duration) func(network, address string, c syscall.RawConn) error {
	if d <= 0 {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
		})
		return cmp.Or(err, failed)
	}
}
