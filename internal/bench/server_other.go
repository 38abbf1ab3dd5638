//go:build !linux

package bench

import "syscall"

// serverAttributes: nothing that all other systems have.
func serverAttributes() *syscall.SysProcAttr { return nil }
