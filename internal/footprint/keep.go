package footprint

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/go-logr/logr"
)

const (
	// firstDrop is the time after which the program's pages are given back for the first time. Then
	// the interval doubles up to lastDrop: the start is over soon, or takes longer among many objects.
	// The pages that a process uses come back within microseconds.
	firstDrop, lastDrop = 2 * time.Second, time.Minute
	// restInterval is the time between two readings of the heap. A process rests if it has allocated
	// less than restBytes between them. A collection then costs little, because it is rare: the
	// garbage has to grow again first.
	restInterval = 5 * time.Second
	restBytes    = 2 << 20
	// minExcess is the least excess that a collection at rest is made for, or one excessShare-th of
	// the live heap if that is more.
	minExcess, excessShare = 8 << 20, 16
)

// Keep gives back memory that the process does not need, until ctx ends: pages of the program after
// its start, and again from time to time; and, unless the environment has GOGC, garbage and the
// program's pages when the process rests.
func Keep(ctx context.Context) {
	drop, rest := time.NewTimer(firstDrop), time.NewTicker(restInterval)
	defer drop.Stop()
	defer rest.Stop()
	last, next := readHeap(), 2*firstDrop
	for {
		select {
		case <-drop.C:
			giveBackPages(ctx)
			drop.Reset(next)
			next = min(2*next, lastDrop)
		case <-rest.C:
			if isTuned() {
				continue
			}
			if giveBack(last) {
				giveBackPages(ctx)
			}
			last = readHeap()
		case <-ctx.Done():
			return
		}
	}
}

// giveBackPages gives back pages of the program. A failure is logged: the program then only takes
// more memory.
func giveBackPages(ctx context.Context) {
	if err := dropProgramPages(); err != nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("pages of the program stay resident", "error", err.Error())
	}
}

// heap is the state of the heap, in bytes.
type heap struct {
	// allocated is the sum of all allocations so far.
	allocated uint64
	// objects are the present objects, of which the last collection has found live ones in use.
	objects, live uint64
	// free is memory without objects that the process keeps for the next ones.
	free uint64
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return heap{
		allocated: samples[0].Value.Uint64(), objects: samples[1].Value.Uint64(), live: samples[2].Value.Uint64(),
		free: samples[3].Value.Uint64(),
	}
}

// excess is the memory that a collection can give back.
func (h heap) excess() uint64 { return h.free + h.objects - min(h.objects, h.live) }

// isWasteful reports whether the process rests with much garbage; before is the reading before h.
func (h heap) isWasteful(before heap) bool {
	return h.allocated-before.allocated < restBytes && h.excess() > max(minExcess, h.live/excessShare)
}

// giveBack collects garbage and returns free memory to the system if the process rests, and reports
// whether it did; before is the reading before the present one.
func giveBack(before heap) bool {
	if !readHeap().isWasteful(before) {
		return false
	}
	debug.FreeOSMemory()
	return true
}
