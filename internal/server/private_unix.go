//go:build unix

package server

import "syscall"

// hasOwners says whether files have rights of owner, group and others.
const hasOwners = true

// Private lets only the user of this process into what it makes from here on.
func Private() { syscall.Umask(int(others)) }
