//go:build !unix

package main

import (
	"os"
	"syscall"
)

// Without process groups only the command itself can be ended.

func ownGroup() *syscall.SysProcAttr { return nil }

func askGroup(leader *os.Process) error { return leader.Kill() }

func killGroup(leader *os.Process) { _ = leader.Kill() }
