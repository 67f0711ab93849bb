package stream

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// takeoverDelay is the time for which a session of another build must be open before that build
	// gets all questions. It doubles, up to maxTakeoverDelay, if the previous change was less than
	// calmPeriod ago, because each change resyncs all parents.
	takeoverDelay    = 5 * time.Second
	maxTakeoverDelay = 5 * time.Minute
	calmPeriod       = 10 * time.Minute
	// maxArrivals bounds the remembered arrivals of sessions.
	maxArrivals = 1024
)

// builds selects the build of a hook that answers: the one with the latest new session, after a
// delay. A session that reconnects is not new, whereas a rollback to an earlier build creates new
// sessions. The Pool's lock guards it.
type builds struct {
	clock       clock.WithDelayedExecution
	active      string    // the selected build, even while none of its sessions is open
	absentSince time.Time // when its last session closed; zero while one is open
	strayed     bool      // another build has answered in between
	wait        time.Duration
	changed     time.Time // time of the last takeover
	last        uint64
	arrivals    *lru.Cache             // of uint64, by arrival
	open        map[*Session]openBuild // sessions that were open at the last update
	timer       clock.Timer
}

// arrival is a session with a build.
type arrival struct{ session, build string }

// openBuild is the build of an open session, the time since when it has been open with it, and its
// arrival number.
type openBuild struct {
	build   string
	since   time.Time
	arrived uint64
}

func newBuilds(c clock.WithDelayedExecution) *builds {
	return &builds{clock: c, wait: takeoverDelay, arrivals: lru.New(maxArrivals), open: map[*Session]openBuild{}}
}

// update records the open sessions.
func (b *builds) update(sessions []*Session) {
	now := b.clock.Now()
	before := b.open
	b.open = make(map[*Session]openBuild, len(sessions))
	for _, s := range sessions {
		build := s.Build()
		o, found := before[s]
		if !found || o.build != build {
			o = openBuild{build: build, since: now, arrived: b.arrival(arrival{s.ID(), build})}
		}
		b.open[s] = o
	}
	if b.active == "" {
		b.active = b.latest()
	}
	switch {
	case slices.ContainsFunc(sessions, func(s *Session) bool { return s.Build() == b.active }):
		b.absentSince = time.Time{}
	case b.absentSince.IsZero():
		b.absentSince = now
	}
}

// arrival returns a number that grows with each new pair of session and build.
func (b *builds) arrival(a arrival) uint64 {
	if known, found := b.arrivals.Get(a); found {
		return known.(uint64) // the only type that is added
	}
	b.last++
	b.arrivals.Add(a, b.last)
	return b.last
}

// Arrivals returns the number of remembered arrivals of sessions. It is at most maxArrivals.
func (p *Pool) Arrivals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.builds.arrivals.Len()
}

// latest returns the build of the open session that arrived last, or an empty string.
func (b *builds) latest() string {
	var found openBuild
	for _, o := range b.open {
		if o.arrived > found.arrived {
			found = o
		}
	}
	return found.build
}

// rank orders the builds of open sessions: the selected one is the highest, then the latest.
func (b *builds) rank(s *Session) uint64 {
	if s.Build() == b.active {
		return b.last + 1
	}
	return b.open[s].arrived
}

// advance selects another build if its delay has passed, and reports whether parents must be
// resynced. next is the delay until the next check; 0 means the next update.
func (b *builds) advance() (changed bool, next time.Duration) {
	candidate := b.latest()
	if candidate == "" || candidate == b.active && !b.strayed {
		return false, 0
	}
	if left := b.wait - b.age(candidate); left > 0 {
		return false, left
	}
	now := b.clock.Now()
	if !b.changed.IsZero() && now.Sub(b.changed) < calmPeriod {
		b.wait = min(2*b.wait, maxTakeoverDelay)
	} else {
		b.wait = takeoverDelay
	}
	b.changed = now
	b.active = candidate
	b.strayed = false
	return true, 0
}

// age returns the time for which a session of a build has been open, limited to the time for which
// the selected build has been absent, if it is.
func (b *builds) age(build string) time.Duration {
	var longest time.Duration
	for _, o := range b.open {
		if o.build == build {
			longest = max(longest, b.clock.Since(o.since))
		}
	}
	if !b.absentSince.IsZero() && build != b.active {
		return min(longest, b.clock.Since(b.absentSince))
	}
	return longest
}

// Changed must be called when a session opens or closes. If a session is open, earlier failures are
// cleared.
func (p *Pool) Changed() {
	p.update(func() {
		if len(p.open()) > 0 {
			p.fault = nil
		}
		maps.DeleteFunc(p.faults, func(s *Session, _ error) bool { return s.Open() })
	})
	p.updateBuilds()
	p.notifyWatchers()
}

// updateBuilds selects another build if it is time, and calls buildChanged.
func (p *Pool) updateBuilds() {
	p.mu.Lock()
	p.builds.update(slices.DeleteFunc(p.open(), func(s *Session) bool { return s.Build() == "" }))
	changed, next := p.builds.advance()
	if p.builds.timer != nil {
		p.builds.timer.Stop()
		p.builds.timer = nil
	}
	if next > 0 {
		p.builds.timer = p.builds.clock.AfterFunc(next, func() { go p.updateBuilds() }) // tests' clocks call it inline
	}
	p.mu.Unlock()
	if changed && p.buildChanged != nil {
		p.buildChanged()
	}
}
