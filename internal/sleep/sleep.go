// Package sleep waits on a clock, and no longer than its caller.
//
// It is safe for concurrent use. Its tests run on a fake clock.
package sleep

import (
	"time"

	"k8s.io/utils/clock"
)

// For waits for d on clock c, or until done is closed. It reports whether it waited for all of d.
func For(done <-chan struct{}, c clock.Clock, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C():
		return true
	}
}
