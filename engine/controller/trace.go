package controller

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// TraceParentAnnotation is the annotation with the W3C trace context in which an object was
	// written (KEP-5915).
	TraceParentAnnotation = loop.TraceParentAnnotation
	// TraceGenerationAnnotation is the annotation with the generation to which TraceParentAnnotation
	// belongs. If it is missing, that is generation 1.
	TraceGenerationAnnotation = "hookloop.dev/trace-generation"
)

// changes are the changes of objects that are being traced: each from a new generation until the
// object has reached its desired state. The zero value is empty. It is safe for concurrent use.
type changes struct {
	mu    sync.Mutex // guards byKey; the values belong to the one worker that has the key
	byKey map[Key]*tracedChange
}

// tracedChange is the last change of one object.
type tracedChange struct {
	uid types.UID
	// generation is the object's, and closed the last one at which it reached its desired state. The
	// change is open while they differ.
	generation, closed int64
	// since is when the change began.
	since time.Time
}

func (c *changes) of(key Key, uid types.UID) *tracedChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[Key]*tracedChange{}
	}
	if t := c.byKey[key]; t == nil || t.uid != uid {
		c.byKey[key] = &tracedChange{uid: uid}
	}
	return c.byKey[key]
}

func (c *changes) forget(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, key)
}

// open reports whether a change is open at a generation, and notes when it began. Nothing is
// remembered after a restart: an object of the first list counts as unchanged if its status has its
// generation.
func (t *tracedChange) open(o *object.Object, item queue.Item[Key], now time.Time) bool {
	switch {
	case o.Generation() == 0: // the resource counts none
		return false
	case t.generation == o.Generation():
		return t.closed != t.generation
	}
	t.generation, t.since = o.Generation(), now.Add(-item.Waited)
	observed, _ := o.Field("status", "observedGeneration")
	if item.Caused(queue.CauseInitial) && string(observed) == strconv.FormatInt(o.Generation(), 10) {
		t.closed = t.generation
		return false
	}
	return true
}

// tracing is the span of one reconcile.
type tracing struct {
	trace.Span
	// end of the change, if the reconcile belongs to one; may be nil.
	close func()
	// provisional reports a trace that is exported only if the reconcile has an effect.
	provisional bool
}

// exported returns the id of the trace, if it is exported. It must be called before the span ends.
func (t tracing) exported(effect bool) trace.TraceID {
	if !t.IsRecording() || t.provisional && !effect {
		return trace.TraceID{}
	}
	return t.SpanContext().TraceID()
}

// begin starts the span of a reconcile. While the object has not reached its desired state, the
// span belongs to the trace of the object's generation: the trace in which another controller has
// written that generation, or else one of its own. Otherwise it begins a trace of its own with a
// link, which is exported only if the reconcile writes something or fails. Causes are links,
// because the queue merges many events into one reconcile. The returned context has a logger with
// the key and the trace id.
func (b *built[T]) begin(ctx context.Context, item queue.Item[Key], o *object.Object) (context.Context, tracing) {
	var t tracing
	all := loop.CauseLinks(item.Causes)
	ctx, t.close, all = b.place(ctx, item, o, all)
	t.provisional = t.close == nil && item.Attempt == 0
	ctx, t.Span = b.host.Tracer.Start(ctx, "reconcile "+b.name,
		trace.WithLinks(loop.WithoutParent(ctx, all)...), trace.WithAttributes(b.attributes(item, o)...))
	log := klog.FromContext(ctx).WithValues("key", item.Key.String())
	if sc := t.SpanContext(); sc.IsValid() {
		log = log.WithValues("trace_id", sc.TraceID().String(), "span_id", sc.SpanID().String())
	}
	return klog.NewContext(ctx, log), t
}

// place puts a reconcile into its trace: it returns a context for its span, a function that closes
// the object's change, if it is open, and the links of the span.
func (b *built[T]) place(
	ctx context.Context, item queue.Item[Key], o *object.Object, all []trace.Link,
) (context.Context, func(), []trace.Link) {
	own := func(ctx context.Context) context.Context {
		if item.Attempt > 0 { // a retry is exported from the start
			return ctx
		}
		return change.Provisional(ctx)
	}
	if o == nil {
		b.changes.forget(item.Key)
		return own(ctx), nil, all
	}
	id := change.Of(b.host.ClusterUID, o.UID(), o.Generation())
	t := b.changes.of(item.Key, o.UID())
	end := func() { b.closeChange(t, id, item.Key) }
	if cause, ok := writtenIn(o); ok { // the trace has another root; the process decides what it samples
		id = change.ID{Trace: cause.TraceID(), Root: cause.SpanID()}
		end = func() { t.closed = t.generation }
	}
	switch open := t.open(o, item, b.host.Clock.Now()); {
	case open:
		return id.Context(ctx, b.host.Sampled(id.Trace)), end, all
	case o.Generation() != 0:
		all = append(all, trace.Link{SpanContext: id.SpanContext(b.host.Sampled(id.Trace))})
	}
	return own(ctx), nil, all
}

// closeChange emits the root span of the change's trace, once. Its length is the change's duration.
func (b *built[T]) closeChange(t *tracedChange, id change.ID, key Key) {
	t.closed = t.generation
	_, root := b.host.Tracer.Start(
		id.AsRoot(context.Background()), "change "+b.resource.GroupResource(), trace.WithTimestamp(t.since),
		trace.WithAttributes(attribute.String("hookloop.controller", b.name),
			attribute.String("hookloop.parent.kind", object.KindString(b.resource.GVK)),
			attribute.String("k8s.namespace.name", key.Namespace),
			attribute.String("hookloop.parent.name", key.Name),
			attribute.Int64("hookloop.parent.generation", t.generation)),
	)
	root.End(trace.WithTimestamp(b.host.Clock.Now()))
}

// attributes are those of a reconcile's span. Their names are those of the spans of declared
// controllers.
func (b *built[T]) attributes(item queue.Item[Key], o *object.Object) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("hookloop.controller", b.name),
		attribute.String("hookloop.parent.kind", object.KindString(b.resource.GVK)),
		attribute.String("k8s.namespace.name", item.Key.Namespace),
		attribute.String("hookloop.parent.name", item.Key.Name),
		attribute.Int64("hookloop.queue.wait_ms", item.Waited.Milliseconds()),
		attribute.Int("hookloop.causes.count", item.Count),
		attribute.StringSlice("hookloop.causes", loop.CauseTexts(item.Causes)),
		attribute.Int("hookloop.attempt", item.Attempt),
	}
	if o == nil {
		return all
	}
	return append(all, attribute.String("hookloop.parent.uid", string(o.UID())),
		attribute.Int64("hookloop.parent.generation", o.Generation()))
}

// end ends the span of a reconcile and, if the object has reached its desired state, its change:
// the reconcile has written nothing, and waits for nothing.
func (t tracing) end(ctx context.Context, outcome string, result Result, err error) {
	writes := expectations.Total(ctx)
	t.SetAttributes(attribute.String("hookloop.result", outcome), attribute.Int("hookloop.writes", writes))
	switch {
	case outcome == resultConflict: // the event of the newer object reconciles the key again
	case err != nil:
		t.SetAttributes(attribute.String("error.type", outcome))
		t.SetStatus(codes.Error, outcome)
	case writes == 0:
		t.SetAttributes(change.NoOp)
	}
	t.End()
	if t.close != nil && err == nil && writes == 0 && !result.Pending && result.RequeueAfter == 0 {
		t.close()
	}
}

// writtenIn returns the trace context in which the present generation of an object was written, if
// the object carries it.
func writtenIn(o *object.Object) (trace.SpanContext, bool) {
	generation := o.Annotations()[TraceGenerationAnnotation]
	if generation == "" {
		generation = "1"
	}
	if strconv.FormatInt(max(o.Generation(), 1), 10) != generation {
		return trace.SpanContext{}, false
	}
	sc := loop.ParseTraceParent(o.Annotations()[TraceParentAnnotation])
	return sc, sc.IsValid()
}
