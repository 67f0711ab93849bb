package pipeline

import (
	"context"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"
)

// tracedChange is the change of a parent that is being traced: from a new generation until the
// parent has converged at it.
type tracedChange struct {
	// generation is the parent's, and closed the last one at which the parent converged. The change
	// is open while they differ.
	generation, closed int64
	// since is when the change began.
	since time.Time
}

// begin starts the sync's span. While the parent has not converged at its generation, the span
// belongs to the change's trace. Otherwise it begins a trace of its own with a link to the change,
// so that no trace grows without limit; that trace is exported only if the sync writes something or
// fails. A parent without generations has no changes. Causes are links, because the queue merges
// many events into one sync. The returned context has a logger with the trace ID.
func (r *run) begin(ctx context.Context) context.Context {
	parent := r.found
	links := loop.CauseLinks(r.item.Causes)
	tracing := parts.OwnTrace
	if parent != nil {
		r.change = change.Of(r.ClusterUID, parent.UID(), parent.Generation())
		sampled := r.Sampled(r.change.Trace)
		switch tracing = r.tracing(parent); {
		case tracing == parts.InChange:
			ctx = r.change.Context(ctx, sampled)
		case tracing == parts.Untraced:
			ctx = r.change.Context(ctx, false)
		case parent.Generation() != 0:
			links = append(links, trace.Link{SpanContext: r.change.SpanContext(sampled)})
		}
	}
	if tracing == parts.OwnTrace && r.item.Attempt == 0 {
		r.provisional = true
		ctx = change.Provisional(ctx) // a retry is exported from the start, with the hook's own spans in it
	}
	ctx, r.span = r.Tracer.Start(ctx, "sync "+r.Name, trace.WithLinks(loop.WithoutParent(ctx, links)...))
	if r.span.IsRecording() {
		r.span.SetAttributes(r.attributes(parent)...)
	}
	return klog.NewContext(ctx, logr.New(&syncSink{base: klog.FromContext(ctx), values: r.logValues}))
}

// tracing returns the way in which the sync is traced. The sync of a part belongs to a change of
// its parent if it is one of the first in the round that follows the change.
func (r *run) tracing(parent *object.Object) parts.Tracing {
	switch {
	case r.isPart() && r.Rounds != nil:
		return r.Rounds.Trace(r.item.Key)
	case r.isPart() || parent.Generation() == 0 || !r.isChanging(parent):
		return parts.OwnTrace
	case r.Rounds != nil:
		return r.Rounds.Trace(r.item.Key)
	}
	return parts.InChange
}

// isChanging reports whether the parent has not converged at its generation yet, and notes when the
// change began. Nothing is remembered after a restart: a parent of the first list counts as
// converged if its status has its generation.
func (r *run) isChanging(parent *object.Object) bool {
	c := &r.state.change
	if c.generation == parent.Generation() && c.generation != 0 {
		return c.closed != c.generation
	}
	c.generation, c.since = parent.Generation(), r.Clock.Now().Add(-r.item.Waited)
	initial := r.item.Caused(queue.CauseInitial)
	observed, _ := parent.Field("status", "observedGeneration")
	if initial && string(observed) == strconv.FormatInt(parent.Generation(), 10) {
		c.closed = c.generation
		return false
	}
	return true
}

func (r *run) attributes(parent *object.Object) []attribute.KeyValue {
	key := r.item.Key.Parent
	attributes := []attribute.KeyValue{
		attribute.String("hookloop.controller", r.Name),
		attribute.String("hookloop.parent.kind", object.KindString(key.GVK)),
		attribute.String("k8s.namespace.name", key.Namespace),
		attribute.String("hookloop.parent.name", key.Name),
		attribute.Int64("hookloop.queue.wait_ms", r.item.Waited.Milliseconds()),
		attribute.Int("hookloop.causes.count", r.item.Count),
		attribute.StringSlice("hookloop.causes", loop.CauseTexts(r.item.Causes)),
		attribute.Int("hookloop.attempt", r.item.Attempt),
	}
	if r.isPart() {
		attributes = append(attributes, attribute.String("hookloop.part", r.item.Key.Part))
	}
	if parent == nil {
		return attributes
	}
	return append(attributes,
		attribute.String("hookloop.parent.uid", string(parent.UID())),
		attribute.Int64("hookloop.parent.generation", parent.Generation()),
	)
}

// work returns what the sync did. It must be called before the span ends.
func (r *run) work(v verdict) Work {
	w := Work{
		Parent: r.state.uid, Attempt: r.item.Attempt, HookCalls: r.tally.calls, HookTime: r.tally.asking,
		Changed:  r.tally.changed,
		Children: r.tally.children, Unchanged: r.tally.unchanged, Pending: r.tally.pending, Held: r.tally.held,
		Waiting: r.tally.waiting, Writes: r.tally.writes,
	}
	if r.found != nil {
		w.Generation = r.found.Generation()
	}
	if r.span.IsRecording() && (!r.provisional || v.failed() || r.tally.writes > 0) {
		w.Trace = r.span.SpanContext().TraceID()
	}
	return w
}

// failed reports whether the sync ended with a fault.
func (v verdict) failed() bool {
	return v.retry != nil || v.result != "converged" && v.result != "changed" && v.result != Gone
}

// end ends the sync's span and, if the parent has converged at its generation, the change's.
func (r *run) end(v verdict) {
	if r.span.IsRecording() {
		r.describe(v)
	}
	r.span.End()
	if r.tally.converged && v.retry == nil && !r.isPart() {
		r.closeChange()
	}
}

// describe puts the result into the sync's span.
func (r *run) describe(v verdict) {
	r.span.SetAttributes(attribute.String("hookloop.result", v.result),
		attribute.Int("hookloop.writes", r.tally.writes),
		attribute.Int("hookloop.children.unchanged", r.tally.unchanged),
		attribute.Int("hookloop.children.pending", r.tally.pending),
		attribute.Int("hookloop.children.held", r.tally.held),
		attribute.Int("hookloop.children.waiting", r.tally.waiting))
	if v.failed() {
		r.span.SetAttributes(attribute.String("error.type", v.result))
		r.span.SetStatus(codes.Error, v.result)
	} else if r.tally.writes == 0 {
		r.span.SetAttributes(change.NoOp)
	}
}

// closeChange emits the root span of the change's trace, once. Its length is the change's duration.
func (r *run) closeChange() {
	c := &r.state.change
	if c.generation == 0 || c.closed == c.generation {
		return
	}
	c.closed = c.generation
	_, root := r.Tracer.Start(
		r.change.AsRoot(context.Background()),
		"change "+r.resource.GroupResource(),
		trace.WithTimestamp(c.since),
		trace.WithAttributes(attribute.String("hookloop.controller", r.Name),
			attribute.String("hookloop.parent.kind", object.KindString(r.item.Key.Parent.GVK)),
			attribute.String("k8s.namespace.name", r.item.Key.Parent.Namespace),
			attribute.String("hookloop.parent.name", r.item.Key.Parent.Name),
			attribute.Int64("hookloop.parent.generation", c.generation)),
	)
	if r.Rounds != nil {
		n := r.Rounds.Counts(r.item.Key.Parent)
		root.SetAttributes(attribute.Int("hookloop.parts.total", n.Total),
			attribute.Int("hookloop.parts.failed", n.Failed), attribute.Int("hookloop.parts.traced", n.Traced))
	}
	root.End(trace.WithTimestamp(r.Clock.Now()))
}
