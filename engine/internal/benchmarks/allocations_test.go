//go:build !race

package benchmarks

import (
	"runtime"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

// TestNoopSyncAllocates bounds the allocations of a sync without changes. They are a count, unlike
// times, so that a change which adds some fails on every machine. The race detector adds its own;
// make unit runs the test without it.
func TestNoopSyncAllocates(t *testing.T) {
	for _, transport := range noopSyncs {
		t.Run(transport.name, func(t *testing.T) {
			got := testing.AllocsPerRun(500, newSync(t, transport.open(t)))
			t.Logf("%v allocations", got)
			if got > transport.allocations {
				t.Errorf("%v allocations for a sync, want at most %v", got, transport.allocations)
			}
		})
	}
}

// TestUpdateSyncAllocates bounds the allocations of a sync that writes all children and the
// parent's status, with those of the replaced API server.
func TestUpdateSyncAllocates(t *testing.T) {
	const most = 1260
	got := testing.AllocsPerRun(200, newUpdate(t))
	t.Logf("%v allocations", got)
	if got > most {
		t.Errorf("%v allocations for a sync, want at most %v", got, most)
	}
}

// TestEditAllocates bounds the allocations of an edit of one child over a stream, on both sides and
// in two syncs: the same number among 1,000 children as among 3,000. Their bytes grow by lists of
// pointers, and by the group of children that the hook's function owns.
func TestEditAllocates(t *testing.T) {
	const edits, most, perChild = 50, 1000, 500
	var bytes []uint64
	sizes := []int{1000, 3000}
	for _, n := range sizes {
		edit := newEdit(t, n, func(b testing.TB, a *hook.Answer) *hook.Opened { return openGRPC(b, "Stream", a) })
		got := testing.AllocsPerRun(edits, edit)
		if got > most {
			t.Errorf("%v allocations for an edit of one of %d children, want at most %d", got, n, most)
		}
		bytes = append(bytes, min(allocated(edits, edit), allocated(edits, edit), allocated(edits, edit)))
		t.Logf("%d children: %v allocations, %d bytes", n, got, bytes[len(bytes)-1])
	}
	if limit := bytes[0] + uint64(perChild*(sizes[1]-sizes[0])); bytes[1] > limit {
		t.Errorf("%d bytes for an edit of one of %d children, want at most %d", bytes[1], sizes[1], limit)
	}
}

// allocated returns the bytes of a call, from a number of calls. Other goroutines add some: buffers
// that a pool has lost, and timers.
func allocated(calls uint64, call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / calls
}
