package loop

import (
	"context"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
)

// TraceParentAnnotation is the annotation in which an object may carry a W3C trace context
// (KEP-5915).
const TraceParentAnnotation = "tracing.k8s.io/traceparent"

// panicInMapper is logged for a panic of a predicate, a mapper or a source.
const panicInMapper = "panic in an event's mapper"

// subscribe connects the caches' events to the queue. Secondary types come first, because their
// mappers may keep indexes of the primary types.
func (c *Loop[K]) subscribe(ctx context.Context, handles cache.Held) []func() {
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
func (c *Loop[K]) handlePrimary(ctx context.Context, p primary[K], e cache.Event) {
	defer panics.Recover(ctx, nil, panicInMapper)
	if !p.accepts(e) {
		return
	}
	kind := queue.CauseObject
	priority := queue.User
	if e.Initial {
		kind = queue.CauseInitial
		priority = queue.Resync
	}
	c.queue.Add(p.key(subject(e).Ref()), priority, c.cause(kind, e))
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
// objects only fill the mappers' indexes, unless Config.MapInitial is set: the first list of the
// primary types enqueues all keys.
func (c *Loop[K]) handleSecondary(ctx context.Context, s secondary[K], e cache.Event) {
	defer panics.Recover(ctx, nil, panicInMapper)
	for _, m := range s.mappers {
		for _, key := range m(e.Old, e.New) {
			switch {
			case !e.Initial:
				c.queue.Add(key, queue.Child, c.cause(queue.CauseChild, e))
			case c.config.MapInitial:
				c.queue.Add(key, queue.Resync, c.cause(queue.CauseInitial, e))
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

func (c *Loop[K]) cause(kind queue.CauseKind, e cache.Event) queue.Cause {
	o := subject(e)
	return queue.Cause{
		Kind: kind, Ref: o.Ref(), ResourceVersion: o.ResourceVersion(), Deleted: e.New == nil,
		At: c.config.Clock.Now(), TraceParent: o.Annotations()[TraceParentAnnotation],
	}
}
