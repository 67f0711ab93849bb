package server

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanBuffer is the SDK's batch processor with a count of every span: exported, failed or dropped.
// The SDK drops silently; so the running spans are counted here, and those past the SDK's queue
// are dropped before it sees them. Invariant: pending <= size, so the SDK's own queue of that size
// never overflows.
type spanBuffer struct {
	sdktrace.SpanProcessor
	size    int64
	pending atomic.Int64
	spans   *prometheus.CounterVec
}

func newSpanBuffer(exporter sdktrace.SpanExporter, registry prometheus.Registerer) *spanBuffer {
	b := &spanBuffer{size: queueSize(), spans: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "hookloop_tracing_spans_total",
		Help: "Spans that ended, by result: exported, failed (the collector did not take them), dropped (too many " +
			"waited for it) " +
			"or noop (of a sync that changed nothing).",
	}, []string{"result"})}
	b.SpanProcessor = sdktrace.NewBatchSpanProcessor(countingExporter{exporter, b}, sdktrace.WithMaxQueueSize(int(b.size)))
	return b
}

// queueSize follows the SDK's own variable.
func queueSize() int64 {
	if size, err := strconv.ParseInt(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"), 10, 32); err == nil && size > 0 {
		return size
	}
	return sdktrace.DefaultMaxQueueSize
}

// waiting returns the number of spans that wait for the collector.
func (b *spanBuffer) waiting() int { return int(b.pending.Load()) }

// OnEnd takes a span or drops it; it never waits.
func (b *spanBuffer) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if b.pending.Add(1) > b.size {
		b.pending.Add(-1)
		b.spans.WithLabelValues("dropped").Inc()
		return
	}
	b.SpanProcessor.OnEnd(s)
}

// countingExporter counts the results of spans.
type countingExporter struct {
	sdktrace.SpanExporter
	buffer *spanBuffer
}

// ExportSpans exports a batch.
func (e countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	result := "exported"
	if err != nil {
		result = "failed"
	}
	e.buffer.pending.Add(-int64(len(spans)))
	e.buffer.spans.WithLabelValues(result).Add(float64(len(spans)))
	return err
}
