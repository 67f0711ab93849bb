package supervisor

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/utils/clock"
)

// The backoff between starts of a controller that fails: granted rights take effect within
// maxStartWait.
const (
	minStartWait = time.Second
	maxStartWait = 15 * time.Second
)

// starts delays the next start of controllers that failed. A changed declaration is started
// immediately. newStarts makes one; the zero value is not usable. It is safe for concurrent use.
type starts struct {
	clock clock.PassiveClock

	mu     sync.Mutex // guards failed
	failed map[object.Ref]*failedStart
}

// failedStart is a controller that could not be started, or failed later.
type failedStart struct {
	config *config
	// failures counts consecutive failures; ready is the time at which the controller ran after the
	// last one, zero if it never did.
	failures int
	ready    time.Time
	due      time.Time
}

func newStarts(c clock.PassiveClock) *starts {
	return &starts{clock: c, failed: map[object.Ref]*failedStart{}}
}

// wait returns the time until the next start of a controller; 0 for no wait.
func (s *starts) wait(key object.Ref, c *config) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.failed[key]
	if f == nil || !f.config.same(c) {
		return 0
	}
	return max(0, f.due.Sub(s.clock.Now()))
}

// again reports whether the last start of this very controller failed.
func (s *starts) again(key object.Ref, c *config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.failed[key]
	return f != nil && f.config.same(c)
}

// fail records a failure and returns the wait before the next start. The count starts anew for a
// controller that ran for longer than the longest wait.
func (s *starts) fail(key object.Ref, c *config) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	f := s.failed[key]
	if f == nil || !f.config.same(c) || !f.ready.IsZero() && now.Sub(f.ready) > maxStartWait {
		f = &failedStart{config: c}
		s.failed[key] = f
	}
	wait := min(maxStartWait, minStartWait<<min(f.failures, 10))
	wait += rand.N(wait/10 + 1) //nolint:gosec // jitter needs no secret
	f.failures++
	f.ready, f.due = time.Time{}, now.Add(wait)
	return wait
}

// ready records that a controller runs.
func (s *starts) ready(key object.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.failed[key]; f != nil {
		f.ready = s.clock.Now()
	}
}

// forget removes a controller that is no longer declared.
func (s *starts) forget(key object.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, key)
}
