package proc

import "syscall"

// dieWithParent makes the kernel kill a process when the thread that started it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
