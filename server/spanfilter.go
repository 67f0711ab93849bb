package server

import (
	"context"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/change"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// maxHeldSpans bounds the spans that all provisional traces hold together.
const maxHeldSpans = 8192

// spanFilter holds the spans of provisional traces until their root spans end. Traces with a
// no-op as root are dropped and counted; all others reach the next processor.
type spanFilter struct {
	*spanBuffer
	dropped, noop prometheus.Counter

	mu   sync.Mutex // guards the fields below
	held map[trace.TraceID]*heldTrace
	// count is the number of spans in held.
	count int
}

// heldTrace is a provisional trace with an open root span.
type heldTrace struct {
	root  trace.SpanID
	spans []sdktrace.ReadOnlySpan
}

func newSpanFilter(next *spanBuffer) *spanFilter {
	return &spanFilter{
		spanBuffer: next, held: map[trace.TraceID]*heldTrace{},
		dropped: next.spans.WithLabelValues("dropped"), noop: next.spans.WithLabelValues("noop"),
	}
}

// OnStart notes the root spans of provisional traces.
func (f *spanFilter) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	if change.IsProvisional(ctx) && !s.Parent().IsValid() {
		f.mu.Lock()
		f.held[s.SpanContext().TraceID()] = &heldTrace{root: s.SpanContext().SpanID()}
		f.mu.Unlock()
	}
	f.spanBuffer.OnStart(ctx, s)
}

// waiting returns the number of spans that wait for the end of their trace or for the collector.
func (f *spanFilter) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count + f.spanBuffer.waiting()
}

// OnEnd holds a span, passes it on, or decides about its trace.
func (f *spanFilter) OnEnd(s sdktrace.ReadOnlySpan) {
	for _, released := range f.release(s) {
		f.spanBuffer.OnEnd(released)
	}
}

// release returns the spans to pass on now that s has ended.
func (f *spanFilter) release(s sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := s.SpanContext().TraceID()
	t := f.held[id]
	switch {
	case t == nil:
		return []sdktrace.ReadOnlySpan{s}
	case s.SpanContext().SpanID() == t.root:
		delete(f.held, id)
		f.count -= len(t.spans)
		if slices.Contains(s.Attributes(), change.NoOp) {
			f.noop.Add(float64(len(t.spans) + 1))
			return nil
		}
		return append(t.spans, s)
	case f.count >= maxHeldSpans:
		f.dropped.Inc()
		return nil
	}
	t.spans = append(t.spans, s)
	f.count++
	return nil
}
