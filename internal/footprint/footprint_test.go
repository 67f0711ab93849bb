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
	for _, c := range []struct {
		name          string
		live, before  uint64
		present, want int
	}{
		{"a small heap", 5 * mb, 5 * mb, defaultPercent, defaultPercent},
		{"a heap that grows", 40 * mb, 20 * mb, defaultPercent, largePercent},
		{"a large heap", 100 * mb, 100 * mb, largePercent, largePercent},
		{"a large heap that grows", 120 * mb, 100 * mb, largePercent, largePercent},
		{"a huge heap that grows", 150 * mb, 120 * mb, largePercent, growingPercent},
		{"a huge heap that grows much", 200 * mb, 10 * mb, defaultPercent, growingPercent},
		{"a huge heap that has grown", 202 * mb, 200 * mb, growingPercent, largePercent},
		{"a huge heap that shrinks", 150 * mb, 200 * mb, growingPercent, largePercent},
		{"a heap that shrinks a little", 28 * mb, 40 * mb, largePercent, largePercent},
		{"a heap that shrinks", 10 * mb, 40 * mb, largePercent, defaultPercent},
	} {
		if got := percentFor(c.live, c.before, c.present); got != c.want {
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
