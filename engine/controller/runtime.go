package controller

import (
	"context"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"
)

// Runtime lets one reconcile write objects, send Events and log. It is also the [Reader] to pass to
// [Get] and [List]. A [Request] embeds it. It must not be used after the reconcile has returned. It
// is safe for concurrent use.
type Runtime struct {
	reader access
	host   *host.Host
	span   trace.Span
	ctx    context.Context //nolint:containedctx // bounds a Runtime, which lives as long as one reconcile
	over   atomic.Bool
	// circuit counts the reconcile's writes; nil if they are not.
	circuit *circuitRun
	writes  atomic.Int64
}

// newRuntime returns the Runtime of one reconcile. Its reads wait with shown. end ends it.
func newRuntime(
	ctx context.Context, h *host.Host, a access, shown func(context.Context, object.Resource) error,
) *Runtime {
	rt := &Runtime{reader: a, host: h, ctx: ctx, span: trace.SpanFromContext(ctx)}
	rt.reader.ended = rt.over.Load
	rt.reader.await = func(r object.Resource) error { return shown(ctx, r) }
	return rt
}

func (rt *Runtime) end() { rt.over.Store(true) }

func (rt *Runtime) reading() *access { return &rt.reader }

// Logger returns a logger whose lines name the controller, the key and the trace ID.
func (rt *Runtime) Logger() logr.Logger { return klog.FromContext(rt.ctx) }

// Span returns the span of this reconcile, for example to add attributes.
func (rt *Runtime) Span() trace.Span { return rt.span }

// Reads returns how many bound references this reconcile has so far.
func (rt *Runtime) Reads() int { return rt.reader.reads.len() }
