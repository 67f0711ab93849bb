package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"go.opentelemetry.io/otel/trace"
)

// TestActorsInOneTrace changes the object on top twice: each change is one trace through all
// actors. A change of a child by someone else is another trace.
func TestActorsInOneTrace(t *testing.T) {
	k, running := startDatabase(t)
	k.Object("MatrixOneCluster", "mo").Set("spec.size", 3).Apply()
	// Both wait now: their next reconciles, because a dependency is ready, belong to other traces.
	awaitActor(k, "DNGroup", "mo", "DependenciesMet", "False", "")
	awaitActor(k, "CNGroup", "mo", "DependenciesMet", "False", "")
	for _, tier := range []string{"log-mo", "dn-mo", "cn-mo"} {
		makeReady(k, tier, "true")
	}
	awaitActor(k, "MatrixOneCluster", "mo", "Ready", "True", "it runs")
	wantTrace(k, running, "reconcile cluster", "action Sync", "create LogService."+k.Group+"/v1", "reconcile log",
		"reconcile dn", "reconcile cn", "action CreateConfig", "create ConfigMap.v1")

	running.spans.Reset()
	k.Patch("MatrixOneCluster", "mo", `{"spec":{"size":5}}`)
	k.Eventually("the CNGroup has the size 5", func() error {
		if status := fmt.Sprint(k.Get("CNGroup", "mo").Object["status"]); !strings.Contains(status, "size:5") {
			return fmt.Errorf("its status is %s", status)
		}
		return nil
	})
	second := wantTrace(k, running, "reconcile cluster", "action Sync", "update CNGroup."+k.Group+"/v1", "reconcile log",
		"reconcile dn", "reconcile cn", "action Resize", "update ConfigMap.v1")

	running.spans.Reset()
	k.Patch("LogService", "mo", `{"spec":{"size":7}}`)
	k.Eventually("the LogService is resized", func() error {
		for _, s := range running.spans.GetSpans() {
			if s.Name != "action Resize" {
				continue
			}
			if s.SpanContext.TraceID() == second {
				k.Error("the user's change of the LogService is in the trace of the cluster's change")
			}
			return nil
		}
		return errors.New("there is no span of the action Resize")
	})
}

// wantTrace waits until one trace has spans with all of the names, and returns it. A span ends
// after the write that shows its effect.
func wantTrace(k *kit.Kit, a *actors, names ...string) (found trace.TraceID) {
	k.Helper()
	k.Eventually("one trace has all spans", func() (err error) {
		found, err = traceOf(a, names)
		return err
	})
	return found
}

// traceOf returns the trace that has spans with all of the names.
func traceOf(a *actors, names []string) (trace.TraceID, error) {
	traces := map[trace.TraceID]bool{}
	for _, s := range a.spans.GetSpans() {
		traces[s.SpanContext.TraceID()] = true
	}
	var best []string
	for id := range traces {
		present := namesIn(a, id)
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(present, name) })
		if len(missing) == 0 {
			return id, nil
		}
		if best == nil || len(missing) < len(best) {
			best = missing
		}
	}
	return trace.TraceID{}, fmt.Errorf("none of %d traces has all spans; the best lacks %q", len(traces), best)
}

// namesIn returns the names of the spans of a trace.
func namesIn(a *actors, id trace.TraceID) []string {
	var names []string
	for _, s := range a.spans.GetSpans() {
		if s.SpanContext.TraceID() == id {
			names = append(names, s.Name)
		}
	}
	return names
}
