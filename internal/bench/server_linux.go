package bench

import "syscall"

// serverAttributes keep a Ctrl-C meant for the bench from the server, which is
// stopped by its process id instead, and keep a server from outliving a bench
// that was killed.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
