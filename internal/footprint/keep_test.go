package footprint

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestIsWasteful(t *testing.T) {
	const mb = 1 << 20
	early, later := heap{allocated: 90 * mb}, uint64(91*mb)
	for _, c := range []struct {
		name         string
		before, last heap
		want         bool
	}{
		{"little garbage", early, heap{allocated: later, objects: 30 * mb, live: 25 * mb}, false},
		{"garbage at rest", early, heap{allocated: later, objects: 45 * mb, live: 30 * mb}, true},
		{"garbage, busy", early, heap{allocated: 95 * mb, objects: 45 * mb, live: 30 * mb}, false},
		{"free memory", early, heap{allocated: later, objects: 30 * mb, live: 30 * mb, free: 9 * mb}, true},
		{"a large heap", early, heap{allocated: later, objects: 260 * mb, live: 250 * mb}, false},
		{"a large heap with garbage", early, heap{allocated: later, objects: 270 * mb, live: 250 * mb}, true},
		{"before the first collection", heap{}, heap{allocated: mb, objects: mb, live: 2 * mb}, false},
	} {
		if got := c.last.isWasteful(c.before); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestGiveBack leaves garbage and rests.
func TestGiveBack(t *testing.T) {
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	const most = 8 * minExcess
	content := make([]byte, 2*most)
	runtime.KeepAlive(content)
	full := readHeap()
	if full.excess() < most {
		t.Fatalf("the excess is %d bytes, want %d or more", full.excess(), most)
	}
	if giveBack(heap{}) { // all allocations are since that reading
		t.Error("a busy process has collected")
	}
	if !giveBack(full) {
		t.Error("a process at rest has not collected")
	}
	if rested := readHeap(); rested.excess() >= minExcess {
		t.Errorf("at rest the excess is %d bytes, want less than %d", rested.excess(), minExcess)
	}
}
