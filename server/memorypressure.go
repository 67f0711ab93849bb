package server

import (
	"context"
	"runtime/metrics"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// heap describes the heap after the last garbage collection, and Go's soft memory limit, in bytes.
type heap struct{ live, goal, limit uint64 }

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"}, {Name: "/gc/gomemlimit:bytes"},
	}
	metrics.Read(samples)
	return heap{live: samples[0].Value.Uint64(), goal: samples[1].Value.Uint64(), limit: samples[2].Value.Uint64()}
}

// minRoom says how much garbage should fit beside the live heap: at least the live heap divided by
// minRoom. Without a limit, Go leaves a quarter or more; with less than minRoom allows, collections
// take much of the CPU time.
const minRoom = 10

// tight returns true if the memory limit leaves little room for garbage. Go then collects more
// often, using up to half of the CPU time, and exceeds the limit rather than fail.
func (h heap) tight() bool { return h.limit < noLimit && h.goal < h.live+h.live/minRoom }

// noLimit is larger than any real memory limit.
const noLimit = 1 << 62

// watchHeap logs when the memory limit starts to slow the process down, and when it stops doing so.
// It returns when ctx ends.
func watchHeap(ctx context.Context, log logr.Logger, read func() heap, c clock.WithTicker) {
	ticker := c.NewTicker(5 * time.Second)
	defer ticker.Stop()
	tight := false
	for {
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
		h := read()
		switch now := h.tight(); {
		case now && !tight:
			log.Error(nil, "the memory limit is too low for the objects: garbage collections slow the process down; raise it",
				"liveHeapBytes", h.live, "memoryLimitBytes", h.limit)
			tight = true
		case !now && tight:
			log.Info("the memory limit leaves enough room again", "liveHeapBytes", h.live, "memoryLimitBytes", h.limit)
			tight = false
		}
	}
}
