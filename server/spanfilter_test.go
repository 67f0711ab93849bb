package server

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// filtered returns a provider with a spanFilter; export returns the names of the exported spans.
func filtered(
	t *testing.T,
	noopSyncs bool,
) (provider *sdktrace.TracerProvider, filter sdktrace.SpanProcessor, export func() []string) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	filter = Tracing{NoOpSyncs: noopSyncs}.processor(exporter, prometheus.NewRegistry())
	provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(filter))
	t.Cleanup(func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return provider, filter, func() []string {
		if err := provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range exporter.GetSpans() {
			names = append(names, s.Name)
		}
		return names
	}
}

// syncSpans ends the spans of one sync.
func syncSpans(provider *sdktrace.TracerProvider, ctx context.Context, noop bool) {
	tracer := provider.Tracer("test")
	ctx, root := tracer.Start(ctx, "sync")
	ctx, ask := tracer.Start(ctx, "ask")
	_, call := tracer.Start(ctx, "POST")
	call.End()
	ask.End()
	if noop {
		root.SetAttributes(change.NoOp)
	}
	root.End()
}

func TestNoOpSyncsAreNotExported(t *testing.T) {
	all := []string{"POST", "ask", "sync"}
	for _, test := range []struct {
		name      string
		ctx       context.Context
		noop      bool
		noopSyncs bool
		want      []string
	}{
		{"a sync outside of a change that did nothing", change.Provisional(t.Context()), true, false, nil},
		{"one that wrote", change.Provisional(t.Context()), false, false, all},
		{"a no-op within a change", change.Of("c", "u", 1).Context(t.Context(), true), true, false, all},
		{"a no-op that is asked for", change.Provisional(t.Context()), true, true, all},
	} {
		t.Run(test.name, func(t *testing.T) {
			provider, filter, export := filtered(t, test.noopSyncs)
			syncSpans(provider, test.ctx, test.noop)
			if diff := cmp.Diff(test.want, export()); diff != "" {
				t.Errorf("exported (-want +got):\n%s", diff)
			}
			f, ok := filter.(*spanFilter)
			if !ok {
				return
			}
			if len(f.held) != 0 || f.count != 0 {
				t.Errorf("%d traces and %d spans are still held, want none", len(f.held), f.count)
			}
			if got := testutil.ToFloat64(f.noop); test.want == nil && got != 3 {
				t.Errorf("%v spans are counted as noop, want 3", got)
			}
		})
	}
}

// TestHeldSpansAreBounded ends more spans in one provisional trace than may be held.
func TestHeldSpansAreBounded(t *testing.T) {
	provider, filter, _ := filtered(t, false)
	f := filter.(*spanFilter)
	tracer := provider.Tracer("test")
	ctx, root := tracer.Start(change.Provisional(t.Context()), "sync")
	for range maxHeldSpans + 5 {
		_, s := tracer.Start(ctx, "update")
		s.End()
	}
	if f.waiting() != maxHeldSpans || testutil.ToFloat64(f.dropped) != 5 {
		t.Errorf("%d spans are held and %v dropped, want %d and 5", f.waiting(), testutil.ToFloat64(f.dropped), maxHeldSpans)
	}
	root.SetAttributes(change.NoOp)
	root.End()
	if f.waiting() != 0 {
		t.Errorf("%d spans are held after the root has ended, want none", f.waiting())
	}
}
