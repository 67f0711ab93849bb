package server

import (
	"regexp"
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/pipeline"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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

	mu     sync.Mutex // guards fields
	fields map[string]bool
}

func newCircuitMetrics(registry prometheus.Registerer) *circuitMetrics {
	auto := promauto.With(registry)
	return &circuitMetrics{
		opened: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hookloop_circuit_opened_total",
			Help: "Circuits of parents that opened, by controller and the field that was rewritten.",
		}, []string{"controller", "kind", "field"}),
		open: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookloop_circuit_open", Help: "Parents whose circuit is open, by controller.",
		}, []string{"controller"}),
		fields: map[string]bool{},
	}
}

// synced takes one sync into account.
func (m *circuitMetrics) synced(controller string, o pipeline.Outcome) {
	if o.Tripped == nil && o.OpenCircuits == 0 {
		m.open.DeleteLabelValues(controller)
		return
	}
	m.open.WithLabelValues(controller).Set(float64(o.OpenCircuits))
	if o.Tripped != nil {
		m.opened.WithLabelValues(controller, object.KindString(o.Tripped.Ref.GVK), m.field(o.Tripped.Path)).Inc()
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
