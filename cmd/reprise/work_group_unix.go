//go:build unix

package main

import (
	"os"
	"syscall"
)

// ownGroup makes a command the leader of a process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// askGroup asks all of a leader's group to end.
func askGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGTERM) }

// killGroup ends what is left of a leader's group.
func killGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) }
