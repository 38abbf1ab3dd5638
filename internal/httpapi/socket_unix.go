//go:build unix

package httpapi

import "syscall"

// direct says whether a socket can be offered something.
const direct = true

// offer writes what the socket takes without waiting, and says how much that is.
func offer(raw syscall.RawConn, b []byte) (n int) {
	_ = raw.Control(func(fd uintptr) { // unlike Write it asks for no deadline
		n, _ = syscall.Write(int(fd), b) // a connection that is gone is noticed by who reads it
	})
	return max(n, 0)
}
