package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill a process when the thread that started it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// awaitStop waits until a child process has stopped or ended. A later wait still sees the child's
// state.
func awaitStop(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD): // it has ended and was waited for
			return nil
		default:
			return err
		}
	}
}
