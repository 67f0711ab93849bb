package queue

import (
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/object"
)

// CauseKind is the kind of a cause.
type CauseKind string

// The kinds of cause.
const (
	CauseObject  CauseKind = "object"  // an event of the parent itself
	CauseChild   CauseKind = "child"   // an event of another object, by a mapper
	CauseInitial CauseKind = "initial" // the first list
	CauseRelated CauseKind = "related" // an event of a related object
	CauseResync  CauseKind = "resync"  // the resync period
	CauseRequeue CauseKind = "requeue" // asked for by the last sync
	CauseRetry   CauseKind = "retry"   // the last sync failed
	CauseTrigger CauseKind = "trigger" // a source that is no Kubernetes object
	CauseParent  CauseKind = "parent"  // all parts of a parent are synced
)

// Cause is one reason for which a key is in the queue.
type Cause struct {
	Kind CauseKind
	// Ref and ResourceVersion identify the object of the event; empty if the cause is no event.
	Ref             object.Ref
	ResourceVersion string
	// Deleted reports that the object no longer exists; the version is its last one.
	Deleted bool
	At      time.Time
	// Reason is the text of a trigger; empty for other kinds.
	Reason string
	// TraceParent is the W3C trace context that the object carries, if any.
	TraceParent string
}

// keepEach is how many of the first and of the last causes are kept.
const keepEach = 2

// causes keeps the first and the last few. The zero value is empty.
type causes struct {
	first, last []Cause
	count       int
	// kinds has each kind of all causes once.
	kinds []CauseKind
}

func (c *causes) add(cause Cause) {
	c.count++
	c.addKind(cause.Kind)
	if len(c.first) < keepEach {
		c.first = append(c.first, cause)
		return
	}
	c.last = append(c.last, cause)
	if len(c.last) > keepEach {
		c.last = c.last[1:]
	}
}

func (c *causes) addKind(kind CauseKind) {
	if !slices.Contains(c.kinds, kind) {
		c.kinds = append(c.kinds, kind)
	}
}

func (c *causes) list() []Cause { return append(append([]Cause(nil), c.first...), c.last...) }
