//go:build unix

package jq

import "syscall"

// niceness of a child: others go first where processors are short. On Linux that is
// of the first thread and of those that it makes.
const niceness = 5

func yield() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness) }
