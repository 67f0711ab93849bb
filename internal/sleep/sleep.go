// Package sleep waits on a clock that tests can replace, and stops waiting when the caller is done.
// It is safe for concurrent use.
package sleep

import (
	"time"

	"k8s.io/utils/clock"
)

// For waits for d on clock c, or until done is closed. It returns true if it has waited for all of
// d.
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
