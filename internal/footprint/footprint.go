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
	"time"
)

const (
	// A heap above large is collected at largePercent of garbage, and a smaller one at Go's default.
	// Most of a large heap are bodies of cached objects, which have no pointers. A small heap has more
	// garbage than content: there, frequent collections cost CPU and save little.
	//
	// A heap above huge is collected at startPercent at the start of the process, and at
	// growingPercent while it grows later: its peak is then little more than what it comes to.
	// Otherwise the percentage would only make each event more expensive, because a collection costs
	// more in a larger heap.
	huge, large                                                = 128 << 20, 32 << 20
	startPercent, growingPercent, largePercent, defaultPercent = 15, 25, 50, 100
	// A heap has grown if it is larger by one growthShare-th than when it had grown before. It grows
	// until growingCollections have not found it larger: first syncs leave much garbage beside little
	// that stays. The start is over after startCollections, or when a heap above large
	// has rested.
	growthShare                          = 16
	startCollections, growingCollections = 24, 3
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
	growth  growth
}

// growth is the growth of the live heap since the start of the process.
type growth struct {
	grown   uint64    // live heap when it had grown last
	since   int       // collections since then
	started bool      // the start is over
	last    time.Time // of the last collection
}

// next takes the live heap after a collection into account.
func (g *growth) next(live uint64, now time.Time) {
	rested := live > large && !g.last.IsZero() && now.Sub(g.last) >= restInterval
	g.last = now
	switch {
	case live > g.grown+g.grown/growthShare:
		g.grown, g.since = live, 0
	case live < g.grown/2: // an increase is growth again
		g.grown = live
		fallthrough
	default:
		g.since = min(g.since+1, startCollections)
	}
	g.started = g.started || rested || g.since == startCollections
}

// mark is an object without references: a collection finds it unreachable.
type mark struct{ _ *int }

// afterNext runs tune after the next collection.
func (c *collector) afterNext() {
	runtime.AddCleanup(&mark{}, func(c *collector) { c.tune(); c.afterNext() }, c)
}

func (c *collector) tune() {
	live := liveHeap()
	c.growth.next(live, time.Now())
	want := percentFor(live, c.growth, c.percent)
	if want != c.percent {
		c.percent = want
		debug.SetGCPercent(want)
	}
}

// percentFor returns the percentage for a live heap. One that has become less than a quarter
// smaller than large keeps its percentage.
func percentFor(live uint64, g growth, present int) int {
	switch {
	case live > huge && !g.started:
		return startPercent
	case live > huge && g.since < growingCollections:
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
