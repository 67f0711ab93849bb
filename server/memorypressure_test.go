package server

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	testingclock "k8s.io/utils/clock/testing"
)

// TestTight compares the room for garbage with the live heap.
func TestTight(t *testing.T) {
	for _, c := range []struct {
		name string
		heap heap
		want bool
	}{
		{"no limit", heap{live: 100, goal: 101, limit: 1<<63 - 1}, false},
		{"enough room", heap{live: 100, goal: 125, limit: 1000}, false},
		{"little room", heap{live: 100, goal: 105, limit: 110}, true},
		{"more than the limit", heap{live: 100, goal: 101, limit: 50}, true},
	} {
		if got := c.heap.tight(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWatchHeap logs the beginning and the end once each.
func TestWatchHeap(t *testing.T) {
	heaps := []heap{
		{live: 10, goal: 20, limit: 100}, {live: 90, goal: 91, limit: 100}, {live: 90, goal: 91, limit: 100},
		{live: 10, goal: 20, limit: 100},
	}
	lines := watched(t, func() heap {
		h := heaps[0]
		heaps = append(heaps[1:], h)
		return h
	}, len(heaps))
	if len(lines) != 2 || !strings.Contains(lines[0], "too low") || !strings.Contains(lines[1], "enough room again") {
		t.Errorf("the log is %q, want one line when the limit is too low, and one when it is not any more", lines)
	}
}

// watched returns the lines of watchHeap's log after a number of readings.
func watched(t *testing.T, read func() heap, readings int) (lines []string) {
	t.Helper()
	c := testingclock.NewFakeClock(time.Now())
	ctx, stop := context.WithCancel(t.Context())
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	done := make(chan struct{})
	was := make(chan struct{})
	go func() {
		defer close(done)
		watchHeap(ctx, log, func() heap { h := read(); was <- struct{}{}; return h }, c)
	}()
	for range readings {
		for !c.HasWaiters() {
			runtime.Gosched()
		}
		c.Step(reportInterval)
		<-was
	}
	stop()
	<-done
	return lines
}

// starving is the environment variable of a process with half of the memory that it needs.
const starving = "HOOKLOOP_TEST_STARVING"

// TestHalfOfTheMemory runs a process with a live heap of twice its memory limit. It works, reports
// the limit, and does not end.
func TestHalfOfTheMemory(t *testing.T) {
	if os.Getenv(starving) != "" {
		starve(t)
		return
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHalfOfTheMemory$", "-test.v")
	program.Env = append(os.Environ(), starving+"=yes", "GOMEMLIMIT=64MiB")
	out, err := program.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the memory limit is too low for the objects") {
		t.Errorf("%v, and the log is\n%s\nwant success, and a report of the memory limit", err, out)
	}
}

// starve holds 128 MiB in bodies as a cache does, and replaces all of them twice.
func starve(t *testing.T) {
	t.Helper()
	bodies := make([][]byte, 128<<10)
	for range 3 {
		for i := range bodies {
			bodies[i] = slices.Repeat([]byte("x"), 1<<10)
		}
	}
	for _, line := range watched(t, readHeap, 1) {
		t.Log(line)
	}
	if len(bodies[0]) != 1<<10 {
		t.Error("a body is gone")
	}
}
