package hookprocess

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// watch is the shell script that leads the group. It waits until its standard input is closed and
// then kills the group. This process holds the other end, so the group ends with it, even if it is
// killed. Linux's parent-death signal would not do: it reaches the program, but not its
// descendants.
const watch = `trap "" TERM INT HUP; read -r _; kill -KILL 0`

// group is a process group whose leader can kill it.
type group struct {
	leader *exec.Cmd
	input  io.Closer
}

// newGroup starts the leader of a process group.
func newGroup() (*group, error) {
	leader := exec.Command("/bin/sh", "-c", watch)
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := leader.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := leader.Start(); err != nil {
		return nil, fmt.Errorf("the process group of the hook: %w", err)
	}
	return &group{leader, input}, nil
}

// member returns the attributes that put a new process into the group.
func (g *group) member() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: g.leader.Process.Pid}
}

// signal sends a signal to the group. The leader ignores SIGTERM.
func (g *group) signal(s syscall.Signal) {
	_ = syscall.Kill(-g.leader.Process.Pid, s) // the leader is alive until end, so the group exists
}

// end kills the group and waits for its leader.
func (g *group) end() {
	g.signal(syscall.SIGKILL)
	_ = g.input.Close() // closed by the end of the leader at the latest
	_ = g.leader.Wait() // killed, as it should be
}
