package change_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/change"
	"go.opentelemetry.io/otel/trace"
)

func TestIDIsPinned(t *testing.T) {
	id := change.Of("cluster", "parent", 7)
	got := id.Trace.String() + " " + id.Root.String()
	// Replicas of different versions must agree; this value must never change.
	const want = "8ece8b74f48de5fc958559dcb32a2d2f c78462a62b92e155"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the derivation has changed (-want +got):\n%s", diff)
	}
}

func TestIDsDiffer(t *testing.T) {
	base := change.Of("cluster", "parent", 1)
	for name, other := range map[string]change.ID{
		"another generation": change.Of("cluster", "parent", 2),
		"another parent":     change.Of("cluster", "parent2", 1),
		"another cluster":    change.Of("cluster2", "parent", 1),
		"a shifted boundary": change.Of("clusterp", "arent", 1),
	} {
		if other.Trace == base.Trace {
			t.Errorf("%s: same trace id %s", name, base.Trace)
		}
	}
}

func TestGeneratorForcesRootOnly(t *testing.T) {
	id := change.Of("cluster", "parent", 1)
	var g change.IDGenerator
	traceID, spanID := g.NewIDs(id.AsRoot(context.Background()))
	if traceID != id.Trace || spanID != id.Root {
		t.Errorf("root ids = %s/%s, want %s/%s", traceID, spanID, id.Trace, id.Root)
	}
	if child := g.NewSpanID(id.AsRoot(context.Background()), traceID); child == id.Root || child == (trace.SpanID{}) {
		t.Errorf("child span id = %s, want a random one", child)
	}
	if random, _ := g.NewIDs(context.Background()); random == id.Trace || random == (trace.TraceID{}) {
		t.Errorf("trace id without AsRoot = %s, want a random one", random)
	}
}
