package engine

import (
	"regexp"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxCircuitFields bounds the values of the label field; others are counted as otherField.
const (
	maxCircuitFields = 200
	maxFieldLabel    = 128
	otherField       = "other"
)

// circuitMetrics count circuits that open, and the open ones.
type circuitMetrics struct {
	opened *prometheus.CounterVec
	open   *prometheus.GaugeVec

	mu     sync.Mutex // guards the fields below
	fields map[string]bool
	// shown are the controllers with an open circuit.
	shown map[string]bool
}

var _ host.CircuitRecorder = (*circuitMetrics)(nil)

func newCircuitMetrics(registry prometheus.Registerer) *circuitMetrics {
	auto := promauto.With(registry)
	return &circuitMetrics{
		opened: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hookloop_circuit_opened_total",
			Help: "Circuits of parents and of keys of controllers in Go that opened, by controller and rewritten field.",
		}, []string{"controller", "kind", "field"}),
		open: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookloop_circuit_open",
			Help: "Parents and keys of controllers in Go with an open circuit, by controller.",
		}, []string{"controller"}),
		fields: map[string]bool{}, shown: map[string]bool{},
	}
}

// synced takes one sync into account.
func (m *circuitMetrics) synced(controller string, o pipeline.Outcome) {
	m.Open(controller, o.OpenCircuits)
	if o.Tripped != nil {
		m.Opened(controller, o.Tripped.Ref.GVK, o.Tripped.Path)
	}
}

// Opened implements host.CircuitRecorder.
func (m *circuitMetrics) Opened(controller string, kind schema.GroupVersionKind, field string) {
	m.opened.WithLabelValues(controller, object.KindString(kind), m.field(field)).Inc()
}

// Open implements host.CircuitRecorder. It is called for each sync, and as a rule with none.
func (m *circuitMetrics) Open(controller string, keys int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case keys > 0:
		m.shown[controller] = true
		m.open.WithLabelValues(controller).Set(float64(keys))
	case m.shown[controller]:
		delete(m.shown, controller)
		m.open.DeleteLabelValues(controller)
	}
}

// index is the place of an item in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// field is the label of a path, without the places of items. There are few: a hook may rewrite
// fields of any name.
func (m *circuitMetrics) field(path string) string {
	path = index.ReplaceAllString(path, "[]")
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(path) > maxFieldLabel, !m.fields[path] && len(m.fields) >= maxCircuitFields:
		return otherField
	}
	m.fields[path] = true
	return path
}
