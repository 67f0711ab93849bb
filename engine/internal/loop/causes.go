package loop

import (
	"context"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// CauseLinks returns links to the traces of the objects that caused a reconcile.
func CauseLinks(causes []queue.Cause) []trace.Link {
	var links []trace.Link
	for _, c := range causes {
		if sc := ParseTraceParent(c.TraceParent); sc.IsValid() {
			links = append(links, trace.Link{SpanContext: sc})
		}
	}
	return links
}

// WithoutParent removes the links to the parent of the next span, which is in ctx. Jaeger keeps one
// reference to a span, so a span that is linked to its parent has no parent there.
func WithoutParent(ctx context.Context, links []trace.Link) []trace.Link {
	parent := trace.SpanContextFromContext(ctx)
	return slices.DeleteFunc(links, func(l trace.Link) bool {
		return l.SpanContext.TraceID() == parent.TraceID() && l.SpanContext.SpanID() == parent.SpanID()
	})
}

// CauseTexts formats each cause as kind, object and version.
func CauseTexts(causes []queue.Cause) []string {
	texts := make([]string, 0, len(causes))
	for _, c := range causes {
		text := string(c.Kind)
		if c.Ref.Name != "" {
			text += " " + c.Ref.String() + " @" + c.ResourceVersion
		}
		if c.Reason != "" {
			text += ": " + c.Reason
		}
		texts = append(texts, text)
	}
	return texts
}

// ParseTraceParent returns the span context of a W3C traceparent; an invalid one for other text.
func ParseTraceParent(text string) trace.SpanContext {
	if text == "" { // of most objects
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
