package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestCircuitMetrics names fields, of a bounded number, and counts the parents with an open
// circuit.
func TestCircuitMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewCircuits(registry)
	page := object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}}
	trip := func(path string, open int) {
		m.synced("composite/web", pipeline.Outcome{Tripped: &circuit.Field{Ref: page, Path: path}, OpenCircuits: open})
	}
	trip("spec.list[3].image", 1)
	trip("spec.list[7].image", 2)
	trip(strings.Repeat("x", 1000), 3)
	if got := testutil.ToFloat64(m.opened.WithLabelValues("composite/web", "Page.v1", "spec.list[].image")); got != 2 {
		t.Errorf("the field was counted %v times, want 2", got)
	}
	if got := testutil.ToFloat64(m.open.WithLabelValues("composite/web")); got != 3 {
		t.Errorf("%v circuits are open, want 3", got)
	}
	for i := range 1000 {
		trip(fmt.Sprint("spec.", i), 4)
	}
	if n := testutil.CollectAndCount(m.opened); n > maxCircuitFields+1 {
		t.Errorf("%d series, want at most %d", n, maxCircuitFields+1)
	}
	m.synced("composite/web", pipeline.Outcome{})
	if n := testutil.CollectAndCount(m.open); n != 0 {
		t.Errorf("%d series of open circuits after the last has closed", n)
	}
}
