// Package confine runs a process under a memory limit that the kernel enforces, and measures its
// peak.
//
// It needs writable cgroups, of version 1 or 2, as root has them; otherwise New returns an error.
// It does not depend on the program that it runs. It is tested with a process that exceeds the
// limit.
package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Group is a memory limit that processes share.
type Group struct {
	dir    string
	events string // the file of the number of processes killed
}

// layouts are the parents of a new group, and the files of its limit and of its kills.
var layouts = []struct{ parent, limit, swap, events string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"},
	{"/sys/fs/cgroup", "memory.max", "memory.swap.max", "memory.events"},
}

// New makes a group with a limit.
func New(limit int64) (*Group, error) {
	var errs []error
	for _, l := range layouts {
		g, err := makeGroup(l.parent, l.limit, l.events, limit)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// the file is missing without swap
		_ = os.WriteFile(filepath.Join(g.dir, l.swap), []byte("0"), 0o600)
		return g, nil
	}
	return nil, fmt.Errorf("no cgroup can limit memory: %w", errors.Join(errs...))
}

func makeGroup(parent, file, events string, limit int64) (*Group, error) {
	if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "hookloop-")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, file)); err != nil { // a group of version 2 without the memory controller
		return nil, errors.Join(err, os.Remove(dir))
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0o600); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &Group{dir: dir, events: filepath.Join(dir, events)}, nil
}

// Command returns a command line that runs another command line in the group.
func (g *Group) Command(path string, args []string) (string, []string) {
	return "/bin/sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, g.dir, path}, args...)
}

// Killed returns the number of processes that the kernel has killed because of the limit.
func (g *Group) Killed() (int, error) {
	text, err := os.ReadFile(g.events)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if name, count, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
			return strconv.Atoi(count)
		}
	}
	return 0, fmt.Errorf("%s has no oom_kill", g.events)
}

// Close removes the group after its processes have ended.
func (g *Group) Close() error {
	var err error
	for range 100 { // the kernel takes a moment to remove the last process
		err = os.Remove(g.dir)
		if err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// Peak returns the greatest amount of memory of a process since its start or the last Reset, in
// bytes.
func Peak(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(text, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("process %d has no VmHWM", pid)
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10, err
}

// Reset begins a new measurement of Peak.
func Reset(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600)
}
