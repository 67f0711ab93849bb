package grpc

import (
	"context"
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"github.com/hookloop/hookloop/transports/transporttest"
	"github.com/prometheus/client_golang/prometheus"
)

// TestParentsThatAreGoneAreForgotten asks three times about a parent: with a snapshot, with changes
// and, after Forget, with a snapshot again.
func TestParentsThatAreGoneAreForgotten(t *testing.T) {
	target := serveStream(t, newStreamServer(func(context.Context, transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{}}
	}))
	registry := prometheus.NewRegistry()
	transport := &Transport{Metrics: stream.NewMetrics(registry)}
	s := settings(fmt.Sprintf(`{"target":%q,"insecure":true,"mode":"Stream"}`, target))
	s.ControllerUID = "c"
	opened, err := transport.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	controller := objectOf(t, "c")
	parent := objectOf(t, "p")
	question := &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: controller, Parent: parent}
	for _, want := range []string{"1 0", "1 1", "2 1"} {
		if want == "2 1" {
			opened.Forget("p", "")
		}
		if _, err := opened.Ask(t.Context(), question); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(calls(t, registry, "snapshot"), " ", calls(t, registry, "change"))
		if got != want {
			t.Errorf("got %s snapshots and changes, want %s", got, want)
		}
	}
}

// calls returns the value of the metric of calls.
func calls(t *testing.T, registry *prometheus.Registry, set string) float64 {
	t.Helper()
	return counted(t, registry, "hookloop_stream_calls_total", set)
}

// counted returns the value of a metric with one label.
func counted(t *testing.T, registry *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// objectOf returns an object with a UID.
func objectOf(t *testing.T, uid string) *object.Object {
	t.Helper()
	o, err := object.Decode(
		fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"uid":%q}}`, uid, uid))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
