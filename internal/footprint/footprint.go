// Package footprint keeps the resident memory of `hookloop serve` small. It chooses how much
// garbage may lie between two collections, collects the rest of it after a busy time, and gives
// back pages of the program that only its start needed.
//
// It changes settings of the whole process, so that only the program calls it, and no package that
// others embed. It does not limit memory: package server sets Go's soft limit. Its data comes from
// the Go runtime and, on Linux, from /proc/self. Its functions are safe for concurrent use. Tests
// read the settings and the resident pages of the test's own process.
package footprint

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// A heap above large is collected at largePercent of garbage, and a smaller one at Go's default.
	// Most of a large heap are bodies of cached objects, which have no pointers. A small heap has more
	// garbage than content: there, frequent collections cost CPU and save little.
	//
	// A heap above huge is collected at growingPercent while it grows, as by the first lists: its peak
	// is then little more than what it comes to. Later the percentage would only make each event more
	// expensive, because a collection costs more in a larger heap.
	huge, large                                  = 128 << 20, 32 << 20
	growingPercent, largePercent, defaultPercent = 25, 50, 100
	// growthShare is the share of the live heap, as one n-th, by which a growing heap has grown
	// between two collections.
	growthShare = 16
)

// CollectBySize lets the size of the live heap choose the percentage of garbage at which a
// collection starts, from now on. It does nothing if the environment has GOGC.
func CollectBySize() {
	if !isTuned() {
		(&collector{percent: defaultPercent}).afterNext()
	}
}

// isTuned reports whether the user has chosen how often garbage is collected.
func isTuned() bool { return os.Getenv("GOGC") != "" }

// collector sets the percentage after each collection. One collection is over before the next one
// calls it.
type collector struct {
	percent int
	live    uint64 // after the collection before
}

// mark is an object without references: a collection finds it unreachable.
type mark struct{ _ *int }

// afterNext runs tune after the next collection.
func (c *collector) afterNext() {
	runtime.AddCleanup(&mark{}, func(c *collector) { c.tune(); c.afterNext() }, c)
}

func (c *collector) tune() {
	live := liveHeap()
	want := percentFor(live, c.live, c.percent)
	c.live = live
	if want != c.percent {
		c.percent = want
		debug.SetGCPercent(want)
	}
}

// percentFor returns the percentage for a live heap that was before bytes after the collection
// before. A heap that has become less than a quarter smaller than large keeps its percentage.
func percentFor(live, before uint64, present int) int {
	switch {
	case live > huge && live > before+before/growthShare:
		return growingPercent
	case live > large, present < defaultPercent && live > large/4*3:
		return largePercent
	}
	return defaultPercent
}

// liveHeap returns the bytes that the last collection has found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
