//go:build !linux

package child

// peakOf: each system has units of its own.
func peakOf(any) int64 { return 0 }
