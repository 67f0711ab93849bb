package controller

import (
	"context"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/internal/panics"
)

// TraceParentAnnotation is the annotation in which an object may carry a W3C trace context
// (KEP-5915).
const TraceParentAnnotation = "tracing.k8s.io/traceparent"

// panicInMapper is logged for a panic of a predicate, a mapper or a source.
const panicInMapper = "panic in an event's mapper"

// subscribe connects the caches' events to the queue. Secondary types come first, because their
// mappers may keep indexes of the primary types.
func (c *Controller[K]) subscribe(ctx context.Context, handles cache.Held) []func() {
	var cancels []func()
	for _, s := range c.secondary {
		handle := func(e cache.Event) { c.handleSecondary(ctx, s, e) }
		cancels = append(cancels, handles[s.resource].Subscribe(handle))
	}
	for _, p := range c.primary {
		handle := func(e cache.Event) { c.handlePrimary(ctx, p, e) }
		cancels = append(cancels, handles[p.resource].Subscribe(handle))
	}
	return cancels
}

// handlePrimary enqueues the object of an event.
func (c *Controller[K]) handlePrimary(ctx context.Context, p primary[K], e cache.Event) {
	defer panics.Recover(ctx, nil, panicInMapper)
	if !p.accepts(e) {
		return
	}
	kind, priority := queue.CauseObject, queue.User
	if e.Initial {
		kind, priority = queue.CauseInitial, queue.Resync
	}
	o := subject(e)
	c.queue.Add(p.key(o.Ref()), priority, c.cause(kind, o))
}

func (p primary[K]) accepts(e cache.Event) bool {
	for _, accept := range p.predicates {
		if !accept(e) {
			return false
		}
	}
	return true
}

// handleSecondary enqueues the keys to which the mappers map an event. The initial events of
// objects only fill the mappers' indexes: the first list of the primary types enqueues all keys.
func (c *Controller[K]) handleSecondary(ctx context.Context, s secondary[K], e cache.Event) {
	defer panics.Recover(ctx, nil, panicInMapper)
	o := subject(e)
	for _, m := range s.mappers {
		for _, key := range m(e.Old, e.New) {
			if !e.Initial {
				c.queue.Add(key, queue.Child, c.cause(queue.CauseChild, o))
			}
		}
	}
}

// subject returns the object of an event in its newest state.
func subject(e cache.Event) *object.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

func (c *Controller[K]) cause(kind queue.CauseKind, o *object.Object) queue.Cause {
	return queue.Cause{
		Kind: kind, Ref: o.Ref(), ResourceVersion: o.ResourceVersion(), At: c.settings.Clock.Now(),
		TraceParent: o.Annotations()[TraceParentAnnotation],
	}
}
