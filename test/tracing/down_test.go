package tracing

import (
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
)

// TestCollectorIsDown runs an engine and a hook without a reachable collector: their work does not
// wait for it.
func TestCollectorIsDown(t *testing.T) {
	ports, err := cluster.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", quickly,
		fmt.Sprintf("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:%d", ports[0]),
	}
	k := kit.New(t)
	installCRDs(k)
	engine, err := startEngine(t.Context(), k.Cluster, "no-collector", env...)
	t.Cleanup(func() {
		if engine == nil {
			return
		}
		if err := engine.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("hookloop's output:\n%s", engine.Output())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	greetings(k, "no-collector", helloGRPC(k, env...))
	greet(k, "World")
	greet(k, "Kubernetes")
	k.Settled(silence)
}
