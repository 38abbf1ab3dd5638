//go:build !linux

package server

import (
	"syscall"
	"time"
)

// userTimeout does nothing: only Linux has it.
func userTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
