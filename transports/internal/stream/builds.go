package stream

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// takeoverDelay is how long a session with another build must be open before this build gets
	// all questions. Each change syncs all parents, so the delay doubles, up to maxTakeoverDelay,
	// if the last change was less than calmPeriod ago.
	takeoverDelay    = 5 * time.Second
	maxTakeoverDelay = 5 * time.Minute
	calmPeriod       = 10 * time.Minute
	// maxArrivals limits how many arrivals are remembered.
	maxArrivals = 1024
)

// builds decides which build of a hook answers: after a delay, the build whose session is newest. A
// session that reconnects is not new, but a rollback to an older build brings new sessions. The
// pool's lock guards this.
type builds struct {
	clock       clock.WithDelayedExecution
	active      string    // the selected build, also while it has no open session
	absentSince time.Time // when its last session closed; zero while one is open
	strayed     bool      // another build has answered in between
	wait        time.Duration
	changed     time.Time // time of the last takeover
	last        uint64
	arrivals    *lru.Cache             // arrival → uint64
	open        map[*Session]openBuild // sessions that were open at the last update
	timer       clock.Timer
}

// arrival is a session and the build it reported.
type arrival struct{ session, build string }

// openBuild describes an open session: its build, since when it has been open with this build, and
// its arrival number.
type openBuild struct {
	build   string
	since   time.Time
	arrived uint64
}

func newBuilds(c clock.WithDelayedExecution) *builds {
	return &builds{clock: c, wait: takeoverDelay, arrivals: lru.New(maxArrivals), open: map[*Session]openBuild{}}
}

// update notes which sessions are open.
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

// arrival returns the number of this session and build. New pairs get larger numbers.
func (b *builds) arrival(a arrival) uint64 {
	if known, found := b.arrivals.Get(a); found {
		return known.(uint64) // the only type that is added
	}
	b.last++
	b.arrivals.Add(a, b.last)
	return b.last
}

// Arrivals returns how many arrivals are remembered, at most maxArrivals.
func (p *Pool) Arrivals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.builds.arrivals.Len()
}

// latest returns the build of the open session that arrived last, or an empty string if no session
// is open.
func (b *builds) latest() string {
	var found openBuild
	for _, o := range b.open {
		if o.arrived > found.arrived {
			found = o
		}
	}
	return found.build
}

// rank orders builds for questions: the selected build first, then the latest.
func (b *builds) rank(s *Session) uint64 {
	if s.Build() == b.active {
		return b.last + 1
	}
	return b.open[s].arrived
}

// advance selects another build when its delay has passed. It reports whether parents must be
// synced. next is when to check again; 0 means at the next update.
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

// age returns how long a session with this build has been open. If the selected build is absent, it
// is at most as long as that.
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

// Changed must be called when a session opens or closes. When one is open, earlier failures are
// forgotten.
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

// updateBuilds selects another build when it is time, and then calls buildChanged.
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
