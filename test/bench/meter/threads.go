package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Threads explains the CPU time of a process.
type Threads struct {
	// CPU is the time that all threads have run.
	CPU time.Duration
	// Kernel is the part of it within system calls and interrupts. The kernel samples it with each
	// tick of its timer, so that it is exact over seconds only.
	Kernel time.Duration
	// Waits is the number of times that a thread has left its CPU to wait, and was woken later.
	Waits int
}

// ReadThreads reads the threads of a process. CPU and Waits do not count threads that have ended: a
// Go process keeps its threads.
func ReadThreads(pid int) (t Threads, err error) {
	t.CPU, err = CPU(pid)
	if err != nil {
		return Threads{}, err
	}
	t.Kernel, err = kernelTime(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Threads{}, err
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return Threads{}, err
	}
	for _, file := range files {
		n, err := waits(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Threads{}, err
		}
		t.Waits += n
	}
	return t, nil
}

// tick is the unit of /proc/PID/stat on all architectures of Linux that Go supports (USER_HZ).
const tick = 10 * time.Millisecond

// kernelTime returns field 15 of a stat file. Field 2 is a name in parentheses, which may contain
// spaces.
func kernelTime(file string) (time.Duration, error) {
	data, err := os.ReadFile(file) //nolint:gosec // a file of /proc
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	const after = 15 - 3 // the fields begin with the third one
	if len(fields) <= after {
		return 0, fmt.Errorf("%s: %q; expected more than %d fields", file, data, after)
	}
	ticks, err := strconv.ParseInt(fields[after], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return time.Duration(ticks) * tick, nil
}

// waits returns the voluntary context switches of a status file.
func waits(file string) (int, error) {
	data, err := os.ReadFile(file) //nolint:gosec // a file of /proc
	if err != nil {
		return 0, err
	}
	n, err := statusNumber(string(data), "voluntary_ctxt_switches")
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return int(n), nil
}
