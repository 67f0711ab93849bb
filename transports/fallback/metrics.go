package fallback

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics shows which transport answers for hooks that have a fallback.
type Metrics struct {
	answers *prometheus.CounterVec
	active  *prometheus.GaugeVec
}

// NewMetrics registers the metrics. Like MustRegister, it panics if they are already registered.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	auto := promauto.With(registry)
	return &Metrics{
		answers: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hookloop_fallback_answers_total",
			Help: "Answers of hooks that have a fallback, by transport.",
		}, []string{"controller", "hook", "transport"}),
		active: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookloop_fallback_active",
			Help: "Whether the fallback answers, by controller and hook.",
		}, []string{"controller", "hook"}),
	}
}

// answered counts an answer.
func (m *Metrics) answered(p *pair, transport string) {
	if m != nil {
		m.answers.WithLabelValues(p.controller, string(p.op), transport).Inc()
	}
}

// answering sets whether the fallback answers.
func (m *Metrics) answering(p *pair, fallback bool) {
	if m == nil {
		return
	}
	active := 0.0
	if fallback {
		active = 1
	}
	m.active.WithLabelValues(p.controller, string(p.op)).Set(active)
}

// forget deletes a hook's series. Otherwise they would show a fallback for a controller that is
// gone.
func (m *Metrics) forget(p *pair) {
	if m == nil {
		return
	}
	labels := prometheus.Labels{"controller": p.controller, "hook": string(p.op)}
	m.active.Delete(labels)
	m.answers.DeletePartialMatch(labels)
}
