package loop_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestCauseTexts checks that a trigger's reason is in the text.
func TestCauseTexts(t *testing.T) {
	pod := object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "shop", Name: "a"}
	got := loop.CauseTexts([]queue.Cause{
		{
			Kind:            queue.CauseChild,
			Ref:             pod,
			ResourceVersion: "7",
		},
		{Kind: queue.CauseTrigger, Reason: "the bucket has changed"},
		{Kind: queue.CauseResync},
	})
	want := []string{"child " + pod.String() + " @7", "trigger: the bucket has changed", "resync"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCauseLinks checks that causes with a valid trace context alone become links.
func TestCauseLinks(t *testing.T) {
	links := loop.CauseLinks([]queue.Cause{
		{Kind: queue.CauseChild, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{Kind: queue.CauseChild, TraceParent: "00-0-0-01"},
		{Kind: queue.CauseResync},
	})
	if len(links) != 1 || links[0].SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("CauseLinks = %v, want one link to the trace 0af7651916cd43dd8448eb211c80319c", links)
	}
}

// TestWithoutParent checks that a span has no link to its parent.
func TestWithoutParent(t *testing.T) {
	links := loop.CauseLinks([]queue.Cause{
		{Kind: queue.CauseParent, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{Kind: queue.CauseChild, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"},
	})
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), links[0].SpanContext)
	got := loop.WithoutParent(ctx, links)
	if len(got) != 1 || got[0].SpanContext.SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("WithoutParent = %v, want the link to 00f067aa0ba902b7", got)
	}
}
