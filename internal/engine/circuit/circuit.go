// Package circuit decides when the engine must stop rewriting a field of an object: a hook that
// answers differently each time, or a second writer, would otherwise have it written for as long as
// both live.
//
// It is pure: the time is an argument, and it neither reads nor writes objects. What it counts
// comes from the pipeline, which reports each successful rewrite and asks before the next one. A
// Breaker belongs to one parent and is used by one sync at a time; its memory is bounded. Table
// tests tell the stories, and a property test drives it with random writers.
package circuit

import (
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/object"
)

// Window is the time in which Settings.Limit rewrites of one field are allowed.
const Window = time.Minute

const (
	// maxFields bounds the fields that a Breaker counts.
	maxFields = 32
	// minLimit is the smallest limit of a field whose circuit was open shortly before.
	minLimit = 3
	// maxStrikes bounds how often the limit is halved.
	maxStrikes = 8
)

// Settings configure all Breakers of a process.
type Settings struct {
	// Limit is how many rewrites of one field a minute are allowed, also in one burst; 0 turns the
	// circuit off.
	Limit int
	// Pause is how long an open circuit stays open before one sync may try again.
	Pause time.Duration
}

// Field is a field that is rewritten. A Ref without a name means all objects of its kind: they
// are replaced by others.
type Field struct {
	Ref  object.Ref
	Path string
}

// Trip is an opened circuit.
type Trip struct {
	Field Field
	// Until is when one sync may try again.
	Until time.Time
}

type phase int

const (
	closed phase = iota
	open
	// trial lets one sync write; the rewrites of later syncs decide.
	trial
)

// Breaker is the circuit of one parent. The zero value is closed.
type Breaker struct {
	identity uint64
	causes   []object.Ref

	phase phase
	trip  Trip
	// syncs counts the syncs of a trial, the trying one included.
	syncs int
	// strikes counts trips without a quiet Window between them; each halves the limit.
	strikes  int
	closedAt time.Time
	fields   map[Field]*counters
}

// counters count the rewrites of one field.
type counters struct {
	// all counts every rewrite, driven the ones that no other object's change explains.
	all, driven bucket
}

// Begin starts a sync. Identity is a hash of what a user may change of the parent: a new one closes
// the circuit. Causes are the objects whose changes brought the sync. It returns how long the
// circuit stays open; 0 lets the sync go on.
func (b *Breaker) Begin(now time.Time, identity uint64, causes []object.Ref) time.Duration {
	if b.identity != identity {
		*b = Breaker{identity: identity}
	}
	b.causes = causes
	switch {
	case b.phase == open && now.Before(b.trip.Until):
		return b.trip.Until.Sub(now)
	case b.phase == open:
		b.phase, b.syncs = trial, 1
	case b.phase == trial:
		b.syncs++
	}
	return 0
}

// Check reports whether one of the fields may not be rewritten: the circuit opens, and the Trip
// names the field.
func (b *Breaker) Check(s Settings, now time.Time, fields []Field) (Trip, bool) {
	if s.Limit <= 0 {
		return Trip{}, false
	}
	for _, f := range fields {
		if b.tries(f) || b.full(s, now, f) {
			b.phase, b.strikes, b.fields = open, min(b.strikes+1, maxStrikes), nil
			b.trip = Trip{Field: f, Until: now.Add(s.Pause)}
			return b.trip, true
		}
	}
	return Trip{}, false
}

// tries reports whether a trial has failed: the field is rewritten once more.
func (b *Breaker) tries(f Field) bool { return b.phase == trial && b.syncs > 1 && f == b.trip.Field }

// full reports whether a field has been rewritten as often as it may.
func (b *Breaker) full(s Settings, now time.Time, f Field) bool {
	c := b.fields[f]
	return c != nil && c.driven.at(s, now) > float64(b.limit(s, now))-1
}

// limit is smaller for a circuit that was open shortly before.
func (b *Breaker) limit(s Settings, now time.Time) int {
	if b.strikes > 0 && b.phase == closed && now.Sub(b.closedAt) > Window {
		b.strikes = 0
	}
	return max(min(minLimit, s.Limit), s.Limit>>b.strikes)
}

// Wrote counts successful rewrites.
func (b *Breaker) Wrote(s Settings, now time.Time, fields []Field) {
	if s.Limit <= 0 {
		return
	}
	for _, f := range fields {
		driven := !b.provoked(s, now, f)
		c := b.counters(s, now, f)
		c.all.add(s, now)
		if driven {
			c.driven.add(s, now)
		}
	}
}

// provoked reports whether a change of another object explains a rewrite: progress of children that
// a status follows, for instance. An object that is itself rewritten over and over explains
// nothing.
func (b *Breaker) provoked(s Settings, now time.Time, f Field) bool {
	return slices.ContainsFunc(b.causes, func(cause object.Ref) bool {
		return !covers(f.Ref, cause) && !b.hot(s, now, cause)
	})
}

// covers reports whether ref names an object, or its whole kind.
func covers(ref, o object.Ref) bool {
	return ref == o || ref.Name == "" && ref.GVK == o.GVK
}

// hot reports whether an object is rewritten so often that its events are likely to be echoes.
func (b *Breaker) hot(s Settings, now time.Time, o object.Ref) bool {
	enough := float64(max(2, s.Limit/10))
	for f, c := range b.fields {
		if covers(f.Ref, o) && c.all.at(s, now) >= enough {
			return true
		}
	}
	return false
}

// counters returns those of a field. Where there are too many fields, the one that was rewritten
// least makes room.
func (b *Breaker) counters(s Settings, now time.Time, f Field) *counters {
	if c := b.fields[f]; c != nil {
		return c
	}
	if b.fields == nil {
		b.fields = map[Field]*counters{}
	}
	if len(b.fields) >= maxFields {
		delete(b.fields, b.coldest(s, now))
	}
	c := &counters{}
	b.fields[f] = c
	return c
}

func (b *Breaker) coldest(s Settings, now time.Time) (coldest Field) {
	least := -1.
	for f, c := range b.fields {
		if level := c.all.at(s, now); least < 0 || level < least {
			coldest, least = f, level
		}
	}
	return coldest
}

// Quiet ends a good sync that rewrote nothing: it closes a circuit that was tried. It reports
// whether nothing is left to know, so that the Breaker may be dropped.
func (b *Breaker) Quiet(s Settings, now time.Time) bool {
	if b.phase == trial {
		b.phase, b.closedAt = closed, now
	}
	b.limit(s, now)
	for f, c := range b.fields {
		if c.all.at(s, now) == 0 {
			delete(b.fields, f)
		}
	}
	return b.phase == closed && b.strikes == 0 && len(b.fields) == 0
}

// Open reports whether the circuit is open, or tried.
func (b *Breaker) Open() bool { return b.phase != closed }

// Fields is how many fields are counted, for tests and metrics.
func (b *Breaker) Fields() int { return len(b.fields) }

// bucket is a leaky bucket: it drains by Settings.Limit in a Window.
type bucket struct {
	level float64
	since time.Time
}

func (k *bucket) at(s Settings, now time.Time) float64 {
	drained := now.Sub(k.since).Seconds() / Window.Seconds() * float64(s.Limit)
	return max(0, k.level-max(0, drained))
}

func (k *bucket) add(s Settings, now time.Time) {
	k.level, k.since = k.at(s, now)+1, now
}
