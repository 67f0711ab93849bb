// Package circuit decides when the engine must stop rewriting a field of an object. Otherwise a
// hook with random answers, or a second writer, would cause endless writes.
//
// It is pure: the time is an argument, and it neither reads nor writes objects. The pipeline
// reports each successful rewrite, and asks before the next one. A Breaker belongs to one parent
// and is used by one sync at a time; its memory is bounded. Table tests have typical cases, and a
// property test has random writers.
package circuit

import (
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/object"
)

// Window is the time in which Config.Limit rewrites of one field are allowed.
const Window = time.Minute

const (
	// maxFields bounds the number of fields that a Breaker counts.
	maxFields = 32
	// minLimit is the smallest limit of a field with a circuit that was open shortly before.
	minLimit = 3
	// maxStrikes bounds the number of times that the limit is halved.
	maxStrikes = 8
)

// Config configures all Breakers of a process.
type Config struct {
	// Limit is the number of rewrites of one field that are allowed in a minute, also in one burst;
	// 0 turns the circuit off.
	Limit int
	// Pause is how long an open circuit stays open before one sync may try again.
	Pause time.Duration
}

// Field is a field that is rewritten. A Ref without a name means all objects of its kind: other
// objects replace them.
type Field struct {
	Ref  object.Ref
	Path string
}

// Trip is an opened circuit.
type Trip struct {
	Field Field
	// Until is the time at which one sync may try again.
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
	// syncs counts the syncs of a trial, including the first.
	syncs int
	// strikes counts trips without a quiet Window between them; each halves the limit.
	strikes  int
	closedAt time.Time
	fields   []counters
}

// counters count the rewrites of one field.
type counters struct {
	field Field
	// all counts every rewrite, driven only those without a change of another object as their
	// cause.
	all, driven bucket
}

// Begin starts a sync. Identity is a hash of the fields of the parent that a user may change: a new
// one closes the circuit. Causes are the objects with changes that caused the sync. It returns the
// time for which the circuit stays open; 0 lets the sync continue.
func (b *Breaker) Begin(now time.Time, identity uint64, causes []object.Ref) time.Duration {
	if b.identity != identity {
		*b = Breaker{identity: identity}
	}
	b.causes = causes
	switch {
	case b.phase == open && now.Before(b.trip.Until):
		return b.trip.Until.Sub(now)
	case b.phase == open:
		b.phase = trial
		b.syncs = 1
	case b.phase == trial:
		b.syncs++
	}
	return 0
}

// Check reports whether one of the fields must not be rewritten: the circuit opens, and the Trip
// holds the field.
func (b *Breaker) Check(s Config, now time.Time, fields []Field) (Trip, bool) {
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

// tries reports whether a trial has failed: the field is rewritten again.
func (b *Breaker) tries(f Field) bool { return b.phase == trial && b.syncs > 1 && f == b.trip.Field }

// full reports whether a field has reached its limit of rewrites.
func (b *Breaker) full(s Config, now time.Time, f Field) bool {
	c := b.find(f)
	return c != nil && c.driven.at(s, now) > float64(b.limit(s, now))-1
}

// limit returns the limit, which is smaller for a circuit that was open shortly before.
func (b *Breaker) limit(s Config, now time.Time) int {
	if b.strikes > 0 && b.phase == closed && now.Sub(b.closedAt) > Window {
		b.strikes = 0
	}
	return max(min(minLimit, s.Limit), s.Limit>>b.strikes)
}

// Wrote counts successful rewrites.
func (b *Breaker) Wrote(s Config, now time.Time, fields []Field) {
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

// provoked reports whether a change of another object explains a rewrite. For instance, a status
// follows the progress of children. An object that is itself rewritten often explains nothing.
func (b *Breaker) provoked(s Config, now time.Time, f Field) bool {
	return slices.ContainsFunc(b.causes, func(cause object.Ref) bool {
		return !covers(f.Ref, cause) && !b.hot(s, now, cause)
	})
}

// covers reports whether ref identifies an object, or its whole kind.
func covers(ref, o object.Ref) bool {
	return ref == o || ref.Name == "" && ref.GVK == o.GVK
}

// Busy reports whether an object is rewritten often, whichever of its fields. A caller may count a
// Field without a Path for each rewrite, and compare the fields of busy objects only.
func (b *Breaker) Busy(s Config, now time.Time, o object.Ref) bool { return b.hot(s, now, o) }

// hot reports whether an object is rewritten so often that its events are probably effects of the
// rewrites.
func (b *Breaker) hot(s Config, now time.Time, o object.Ref) bool {
	enough := float64(max(2, s.Limit/10))
	for _, c := range b.fields {
		if covers(c.field.Ref, o) && c.all.at(s, now) >= enough {
			return true
		}
	}
	return false
}

// counters returns the counters of a field. With too many fields, it drops the one with the fewest
// rewrites.
func (b *Breaker) counters(s Config, now time.Time, f Field) *counters {
	if c := b.find(f); c != nil {
		return c
	}
	if len(b.fields) >= maxFields {
		at := b.coldest(s, now)
		b.fields = slices.Delete(b.fields, at, at+1)
	}
	b.fields = append(b.fields, counters{field: f})
	return &b.fields[len(b.fields)-1]
}

// find returns the counters of a field; nil if it has none.
func (b *Breaker) find(f Field) *counters {
	for i := range b.fields {
		if b.fields[i].field == f {
			return &b.fields[i]
		}
	}
	return nil
}

func (b *Breaker) coldest(s Config, now time.Time) (coldest int) {
	least := -1.
	for i := range b.fields {
		if level := b.fields[i].all.at(s, now); least < 0 || level < least {
			coldest = i
			least = level
		}
	}
	return coldest
}

// Compact drops the causes of the sync, which has ended.
func (b *Breaker) Compact() { b.causes = nil }

// Quiet ends a successful sync without a rewrite: it closes a circuit in trial. It reports whether
// the Breaker has no state left, so that it may be dropped.
func (b *Breaker) Quiet(s Config, now time.Time) bool {
	if b.phase == trial {
		b.phase = closed
		b.closedAt = now
	}
	b.limit(s, now)
	b.fields = slices.DeleteFunc(b.fields, func(c counters) bool { return c.all.at(s, now) == 0 })
	return b.phase == closed && b.strikes == 0 && len(b.fields) == 0
}

// Open reports whether the circuit is open or in trial.
func (b *Breaker) Open() bool { return b.phase != closed }

// fieldBytes is the approximate memory of the counters of one field beside its path.
const fieldBytes = 200

// Bytes returns the approximate memory of a Breaker; 0 for nil.
func (b *Breaker) Bytes() int {
	if b == nil {
		return 0
	}
	n := fieldBytes * (cap(b.fields) + 1)
	for i := range b.fields {
		n += len(b.fields[i].field.Path)
	}
	return n + len(b.trip.Field.Path)
}

// Fields returns the number of counted fields, for tests and metrics.
func (b *Breaker) Fields() int { return len(b.fields) }

// bucket is a leaky bucket: it drains by Config.Limit in a Window.
type bucket struct {
	level float64
	since time.Time
}

func (k *bucket) at(s Config, now time.Time) float64 {
	drained := now.Sub(k.since).Seconds() / Window.Seconds() * float64(s.Limit)
	return max(0, k.level-max(0, drained))
}

func (k *bucket) add(s Config, now time.Time) {
	k.level = k.at(s, now) + 1
	k.since = now
}
