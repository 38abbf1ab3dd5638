//go:build !unix

package httpapi

import "syscall"

// direct says whether a socket can be offered something.
const direct = false

func offer(syscall.RawConn, []byte) int { return 0 }
