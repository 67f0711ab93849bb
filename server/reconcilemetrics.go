package server

import (
	"time"

	"github.com/hookloop/hookloop/internal/engine/host"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// reconcileMetrics count the reconciles of controllers in Go. It is their host's Recorder.
type reconcileMetrics struct {
	duration, wait *prometheus.HistogramVec
	references     *prometheus.GaugeVec
}

var _ host.Recorder = (*reconcileMetrics)(nil)

func newReconcileMetrics(registry prometheus.Registerer) *reconcileMetrics {
	auto := promauto.With(registry)
	return &reconcileMetrics{
		duration: auto.NewHistogramVec(histogram(
			"hookloop_reconcile_duration_seconds",
			"How long reconciles of controllers in Go took, by controller and result.", syncBuckets,
		), []string{"controller", "result"}),
		wait: auto.NewHistogramVec(histogram(
			"hookloop_reconcile_wait_seconds",
			"How long keys of controllers in Go waited for a reconcile, by controller.", syncBuckets,
		), []string{"controller"}),
		references: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookloop_bound_references",
			Help: "Number of reads that bring keys of controllers in Go back, by controller.",
		}, []string{"controller"}),
	}
}

// Reconciled counts one reconcile.
func (m *reconcileMetrics) Reconciled(controller, result string, duration, waited time.Duration) {
	m.duration.WithLabelValues(controller, result).Observe(duration.Seconds())
	m.wait.WithLabelValues(controller).Observe(max(waited, time.Duration(0)).Seconds())
}

// Bound sets the number of bound references.
func (m *reconcileMetrics) Bound(controller string, references int) {
	m.references.WithLabelValues(controller).Set(float64(references))
}
