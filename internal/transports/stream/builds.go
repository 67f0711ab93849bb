package stream

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// takeover is how long a session of another build must have been open before all questions go
	// to that build. It doubles with each change of builds within calm of the one before, to
	// maxTakeover at most: each change has all parents synced.
	takeover    = 5 * time.Second
	maxTakeover = 5 * time.Minute
	calm        = 10 * time.Minute
	// maxArrivals bounds the sessions whose first appearance with a build is remembered.
	maxArrivals = 1024
)

// builds decides which build of a hook answers: the one whose session appeared last, once it has
// been open for a while. A session that reconnects has not appeared anew, whereas a rollback to an
// earlier build brings new sessions. The Pool's lock guards it.
type builds struct {
	clock    clock.WithDelayedExecution
	answers  string    // the build that answers; it keeps this role while none of its sessions is open
	absent   time.Time // since when; zero while one is open
	strayed  bool      // questions went to another build meanwhile
	wait     time.Duration
	changed  time.Time // the last takeover
	last     uint64
	arrivals *lru.Cache             // of uint64, by arrival
	open     map[*Session]openBuild // sessions that were open at the last update
	timer    clock.Timer
}

// arrival is a session with a build.
type arrival struct{ session, build string }

// openBuild is the build of a session, since when it has been open with it, and when it appeared
// first.
type openBuild struct {
	build   string
	since   time.Time
	arrived uint64
}

func newBuilds(c clock.WithDelayedExecution) *builds {
	return &builds{clock: c, wait: takeover, arrivals: lru.New(maxArrivals), open: map[*Session]openBuild{}}
}

// update notes which sessions are open.
func (b *builds) update(sessions []*Session) {
	now, before := b.clock.Now(), b.open
	b.open = make(map[*Session]openBuild, len(sessions))
	for _, s := range sessions {
		build := s.Build()
		o, found := before[s]
		if !found || o.build != build {
			o = openBuild{build: build, since: now, arrived: b.arrival(arrival{s.ID(), build})}
		}
		b.open[s] = o
	}
	if b.answers == "" {
		b.answers = b.latest()
	}
	switch {
	case slices.ContainsFunc(sessions, func(s *Session) bool { return s.Build() == b.answers }):
		b.absent = time.Time{}
	case b.absent.IsZero():
		b.absent = now
	}
}

// arrival is when a session first appeared with a build, as a number that grows.
func (b *builds) arrival(a arrival) uint64 {
	if known, found := b.arrivals.Get(a); found {
		return known.(uint64) // nothing else is added
	}
	b.last++
	b.arrivals.Add(a, b.last)
	return b.last
}

// latest is the build of the open session that appeared last; empty without one.
func (b *builds) latest() string {
	var found openBuild
	for _, o := range b.open {
		if o.arrived > found.arrived {
			found = o
		}
	}
	return found.build
}

// rank orders the open sessions' builds: the one that answers before all others, then by
// appearance.
func (b *builds) rank(s *Session) uint64 {
	if s.Build() == b.answers {
		return b.last + 1
	}
	return b.open[s].arrived
}

// settle has another build take over, if it is time, and reports whether parents are to be synced.
// next is when to look again; 0 means the next update.
func (b *builds) settle() (renewed bool, next time.Duration) {
	candidate := b.latest()
	if candidate == "" || candidate == b.answers && !b.strayed {
		return false, 0
	}
	if left := b.wait - b.age(candidate); left > 0 {
		return false, left
	}
	now := b.clock.Now()
	if !b.changed.IsZero() && now.Sub(b.changed) < calm {
		b.wait = min(2*b.wait, maxTakeover)
	} else {
		b.wait = takeover
	}
	b.changed, b.answers, b.strayed = now, candidate, false
	return true, 0
}

// age is for how long a session of a build has been open, and none of the build that answers if
// that is another.
func (b *builds) age(build string) time.Duration {
	var longest time.Duration
	for _, o := range b.open {
		if o.build == build {
			longest = max(longest, b.clock.Since(o.since))
		}
	}
	if !b.absent.IsZero() && build != b.answers {
		return min(longest, b.clock.Since(b.absent))
	}
	return longest
}

// Changed must be called when a session opens or closes; with an open one, earlier failures no
// longer count.
func (p *Pool) Changed() {
	p.update(func() {
		if len(p.open()) > 0 {
			p.fault = nil
		}
		maps.DeleteFunc(p.faults, func(s *Session, _ error) bool { return s.Open() })
	})
	p.settle()
	p.serves()
}

// settle changes the build that answers when it is time, and reports that to whoever made the pool.
func (p *Pool) settle() {
	p.mu.Lock()
	p.builds.update(slices.DeleteFunc(p.open(), func(s *Session) bool { return s.Build() == "" }))
	renewed, next := p.builds.settle()
	if p.builds.timer != nil {
		p.builds.timer.Stop()
		p.builds.timer = nil
	}
	if next > 0 {
		p.builds.timer = p.builds.clock.AfterFunc(next, func() { go p.settle() }) // a test's clock waits for it
	}
	p.mu.Unlock()
	if renewed && p.renewed != nil {
		p.renewed()
	}
}
