//go:build !race

package bench

import "testing"

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
