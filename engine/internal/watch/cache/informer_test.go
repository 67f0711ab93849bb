package cache

import (
	"testing"
	"time"
)

// TestBackoffIsShort however long the API server has been away, and however often: the reflector
// ends a row of failures only after two minutes without one.
func TestBackoffIsShort(t *testing.T) {
	waits := backoff
	distinct := map[time.Duration]bool{}
	for range 100 {
		wait := waits.Step()
		if wait <= 0 || wait > 1500*time.Millisecond {
			t.Fatalf("a watch waits %s for its next try, want at most 1.5 s", wait)
		}
		distinct[wait] = true
	}
	if len(distinct) < 50 {
		t.Errorf("%d waits differ, want jitter", len(distinct))
	}
}
