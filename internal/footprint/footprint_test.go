package footprint

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	for _, c := range []struct {
		name          string
		live          uint64
		present, want int
	}{
		{"a small heap", 5 << 20, defaultPercent, defaultPercent},
		{"a heap that grows", 40 << 20, defaultPercent, largePercent},
		{"a heap that grows much", 200 << 20, defaultPercent, hugePercent},
		{"a large heap that grows", 130 << 20, largePercent, hugePercent},
		{"a heap that shrinks a little", 28 << 20, largePercent, largePercent},
		{"a huge heap that shrinks a little", 110 << 20, hugePercent, hugePercent},
		{"a huge heap that shrinks", 90 << 20, hugePercent, largePercent},
		{"a huge heap that shrinks much", 10 << 20, hugePercent, defaultPercent},
		{"a heap that shrinks", 10 << 20, largePercent, defaultPercent},
	} {
		if got := percentFor(c.live, c.present); got != c.want {
			t.Errorf("%s: %d percent, want %d", c.name, got, c.want)
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
