package metrics

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

// Circuits counts the circuits that open, and shows how many are open now. Use [NewCircuits] to
// make one. It is safe for concurrent use.
type Circuits struct {
	opened *prometheus.CounterVec
	open   *prometheus.GaugeVec

	mu     sync.Mutex // guards the fields below
	fields map[string]bool
	// shown are the controllers with an open circuit.
	shown map[string]bool
}

var _ host.CircuitRecorder = (*Circuits)(nil)

// NewCircuits registers the metrics of circuits.
func NewCircuits(registry prometheus.Registerer) *Circuits {
	auto := promauto.With(registry)
	return &Circuits{
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
func (m *Circuits) synced(controller string, o pipeline.Outcome) {
	m.Open(controller, o.OpenCircuits)
	if o.Tripped != nil {
		m.Opened(controller, o.Tripped.Ref.GVK, o.Tripped.Path)
	}
}

// Opened implements host.CircuitRecorder.
func (m *Circuits) Opened(controller string, kind schema.GroupVersionKind, field string) {
	m.opened.WithLabelValues(controller, object.KindString(kind), m.field(field)).Inc()
}

// Open implements host.CircuitRecorder. It is called for each sync, and as a rule with none.
func (m *Circuits) Open(controller string, keys int) {
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

// index matches the index of a list item in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// field returns the label for a path, without the indexes of list items. Hooks can rewrite fields
// of any name, so the number of labels is limited; further paths get otherField.
func (m *Circuits) field(path string) string {
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
