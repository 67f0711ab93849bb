// Package change gives each change of an object a trace of its own. The trace ID is computed from the
// cluster, the UID of the object and its generation, so that all syncs of one change are in one
// trace, in whichever replica they run.
//
// Package server uses it. A program that runs package engine with a tracer of its own should set up
// its provider in the same way:
//
//	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(change.IDGenerator{}), ...)
//	otel.SetTextMapPropagator(change.Propagator{})
//	config.Tracer = provider.Tracer("my-program") // engine.Config
//
// Replicas of different versions must compute the same IDs, so the computation must never change.
// All functions are safe for concurrent use.
package change

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// ID identifies the trace of one change, by its trace ID and the span ID of its root span. Use [Of] to
// compute it.
type ID struct {
	Trace trace.TraceID
	Root  trace.SpanID
}

// Of computes the [ID] for one generation of an object. clusterUID should be the UID of the namespace
// kube-system, so that objects of different clusters have different traces.
func Of(clusterUID, parent types.UID, generation int64) ID {
	h := sha256.New()
	for _, part := range []string{string(clusterUID), string(parent)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(generation))) //nolint:gosec // only the bits count
	sum := h.Sum(nil)
	var id ID
	copy(id.Trace[:], sum[:16])
	copy(id.Root[:], sum[16:24])
	return id
}

// Context returns a context with ID as the remote parent of its spans. The caller decides sampled
// from the trace id, because a sampler does not evaluate the ratio below a remote parent.
func (id ID) Context(ctx context.Context, sampled bool) context.Context {
	return trace.ContextWithRemoteSpanContext(ctx, id.SpanContext(sampled))
}

// SpanContext returns the context of the root span.
func (id ID) SpanContext(sampled bool) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id.Trace, SpanID: id.Root, TraceFlags: trace.TraceFlags(0).WithSampled(sampled), Remote: true,
	})
}

type forcedKey struct{}

// AsRoot returns a context for the root span of the change: the next root span gets the ID's trace
// id and span id. This works with a provider that uses IDGenerator.
func (id ID) AsRoot(ctx context.Context) context.Context {
	return context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), forcedKey{}, id)
}

// IDGenerator makes random ids, except for root spans under AsRoot.
// It implements the OpenTelemetry SDK's IDGenerator.
type IDGenerator struct{}

// NewIDs returns the ids of a root span.
func (IDGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(forcedKey{}).(ID); ok {
		return id.Trace, id.Root
	}
	var t trace.TraceID
	var s trace.SpanID
	fill(t[:])
	fill(s[:])
	return t, s
}

// NewSpanID returns the id of a child span.
func (IDGenerator) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var s trace.SpanID
	fill(s[:])
	return s
}

// fill writes random bytes; crypto/rand never fails (it ends the program instead).
func fill(b []byte) { _, _ = rand.Read(b) }
