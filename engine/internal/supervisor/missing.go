package supervisor

import (
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/utils/clock"
)

// missingGrace is the time for which a resource may be missing before an Event warns of it: a user
// who applies a CRD and its controller together has nothing to repair.
const missingGrace = 5 * time.Second

// missing notes since when controllers have waited for a resource. It is safe for concurrent use.
type missing struct {
	clock clock.PassiveClock

	mu    sync.Mutex // guards since
	since map[object.Ref]*absence
}

// absence is a resource that a controller waits for.
type absence struct {
	problem  string
	since    time.Time
	reported bool
}

func newMissing(c clock.PassiveClock) *missing {
	return &missing{clock: c, since: map[object.Ref]*absence{}}
}

// note takes a problem into account. It returns the time until its Event is due, and whether that
// is now; an Event is due once.
func (m *missing) note(key object.Ref, problem string) (wait time.Duration, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	a := m.since[key]
	if a == nil || a.problem != problem {
		a = &absence{problem: problem, since: now}
		m.since[key] = a
	}
	if a.reported {
		return 0, false
	}
	if wait := missingGrace - now.Sub(a.since); wait > 0 {
		return wait, false
	}
	a.reported = true
	return 0, true
}

// forget ends the wait of a controller.
func (m *missing) forget(key object.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.since, key)
}
