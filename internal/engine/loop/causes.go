package loop

import (
	"context"

	"github.com/hookloop/hookloop/engine/queue"
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
	carrier := propagation.MapCarrier{"traceparent": text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
