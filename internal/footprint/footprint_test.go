package footprint

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	const mb = 1 << 20
	start, grows, calm := growth{}, growth{started: true}, growth{started: true, since: growingCollections}
	for _, c := range []struct {
		name          string
		live          uint64
		growth        growth
		present, want int
	}{
		{"a small heap", 5 * mb, calm, defaultPercent, defaultPercent},
		{"a heap that grows", 40 * mb, grows, defaultPercent, largePercent},
		{"a large heap", 100 * mb, calm, largePercent, largePercent},
		{"a large heap that grows", 120 * mb, grows, largePercent, largePercent},
		{"a large heap at the start", 120 * mb, start, largePercent, largePercent},
		{"a huge heap at the start", 150 * mb, start, largePercent, startPercent},
		{"a huge heap that grows", 150 * mb, grows, defaultPercent, growingPercent},
		{"a huge heap that has grown", 202 * mb, calm, growingPercent, largePercent},
		{"a heap that shrinks a little", 28 * mb, calm, largePercent, largePercent},
		{"a heap that shrinks", 10 * mb, calm, largePercent, defaultPercent},
	} {
		if got := percentFor(c.live, c.growth, c.present); got != c.want {
			t.Errorf("%s: %d percent, want %d", c.name, got, c.want)
		}
	}
}

// TestGrowth has first lists, first syncs with little growth, and events; then a heap that has
// become smaller grows again.
func TestGrowth(t *testing.T) {
	const mb = 1 << 20
	g, now := growth{}, time.Now()
	expect := func(what string, live uint64, since int, started bool) {
		t.Helper()
		now = now.Add(restInterval / 10)
		if g.next(live, now); g.since != since || g.started != started {
			t.Errorf("%s: %d collections since the growth, started is %v, want %d, %v", what, g.since, g.started, since, started)
		}
	}
	for _, live := range []uint64{100 * mb, 150 * mb, 200 * mb} {
		expect("first lists", live, 0, false)
	}
	expect("first syncs", 205*mb, 1, false)
	expect("first syncs", 203*mb, 2, false)
	expect("first syncs", 214*mb, 0, false)
	for i := range startCollections - 1 {
		expect("the end of the start", 215*mb, i+1, false)
	}
	expect("events", 215*mb, startCollections, true)
	expect("many deletions", 90*mb, startCollections, true)
	expect("growth", 110*mb, 0, true)
}

// TestRestEndsTheStart rests with a small and with a large heap.
func TestRestEndsTheStart(t *testing.T) {
	now := time.Now()
	for live, want := range map[uint64]bool{large / 2: false, 2 * large: true} {
		g := growth{}
		g.next(live, now)
		if g.started {
			t.Errorf("a heap of %d bytes: the start is over with the first collection", live)
		}
		if g.next(live, now.Add(restInterval)); g.started != want {
			t.Errorf("a heap of %d bytes has rested: the end of the start is %v, want %v", live, g.started, want)
		}
	}
}

// TestCollectBySize fills the heap and empties it again.
func TestCollectBySize(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(defaultPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	CollectBySize()
	content := make([]byte, 2*large)
	await(t, largePercent)
	runtime.KeepAlive(content)
	await(t, defaultPercent)
}

// await collects until the percentage is set.
func await(t *testing.T, want uint64) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		if metrics.Read(sample); sample[0].Value.Uint64() == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d percent, want %d", sample[0].Value.Uint64(), want)
		}
		runtime.Gosched()
	}
}
