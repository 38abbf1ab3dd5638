//go:build !linux

package server

import (
	"errors"
	"os"
	"syscall"
)

// ownerOnly leaves it to the chmod that follows: only Linux knows rights of a
// socket without a name.
func ownerOnly(_, _ string, _ syscall.RawConn) error { return nil }

// refusedDial reports whether nobody listens at a socket.
func refusedDial(err error) bool { return !errors.Is(err, os.ErrDeadlineExceeded) }
