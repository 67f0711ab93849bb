// Package meter reads the resources that a process has used: CPU time and memory from /proc,
// counters from its metrics endpoint.
//
// It is for benchmarks on Linux, and checks nothing. Its data comes from the kernel and from the
// process itself, at the moment of the call; the caller subtracts. Its functions hold no state.
// Tests read the test's own process and a page of metrics.
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

// Usage holds the CPU time of a process since its start, and its memory now and at most, in bytes.
type Usage struct {
	CPU       time.Duration
	RSS, Peak int64
	// File is the part of RSS that are pages of files, as a rule of the program itself.
	File int64
}

// Process reads the usage of a process.
func Process(pid int) (Usage, error) {
	cpu, err := CPU(pid)
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	u := Usage{CPU: cpu}
	for name, value := range map[string]*int64{"VmRSS": &u.RSS, "VmHWM": &u.Peak, "RssFile": &u.File} {
		kib, err := statusNumber(string(status), name)
		if err != nil {
			return Usage{}, fmt.Errorf("/proc/%d/status: %w", pid, err)
		}
		*value = kib << 10
	}
	return u, nil
}

// statusNumber returns the number of a line of a status file, without its unit.
func statusNumber(status, name string) (int64, error) {
	_, rest, _ := strings.Cut("\n"+status, "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// CPU returns the time that all threads of a process have run. /proc/PID/stat has the same in ticks
// of 10 ms, which is too coarse for single syncs; a thread's schedstat counts nanoseconds. Threads
// that have ended do not count: a Go process keeps its threads.
func CPU(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, fmt.Errorf("process %d: /proc has no threads of it", pid)
	}
	var sum time.Duration
	for _, file := range files {
		ran, err := threadTime(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		sum += ran
	}
	return sum, nil
}

// threadTime returns the first number of a schedstat: nanoseconds on a CPU.
func threadTime(file string) (time.Duration, error) {
	data, err := os.ReadFile(file) //nolint:gosec // a file of /proc
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(string(data), " ")
	ns, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return time.Duration(ns), nil
}
