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
		{"a heap that grows", 40 << 20, defaultPercent, smallPercent},
		{"a heap that shrinks a little", 28 << 20, smallPercent, smallPercent},
		{"a heap that shrinks", 10 << 20, smallPercent, defaultPercent},
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
	await(t, smallPercent)
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
