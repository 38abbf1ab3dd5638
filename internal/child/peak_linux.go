package child

import "syscall"

// peakOf is the largest size in memory, which Linux tells in KiB.
func peakOf(usage any) int64 {
	if u, ok := usage.(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}
