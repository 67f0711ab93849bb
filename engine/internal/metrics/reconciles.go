package metrics

import (
	"time"

	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reconciles counts the reconciles of controllers in Go, and keeps the last one of each object for
// "hookloop explain". It implements host.Recorder; use [NewReconciles] to make one.
type Reconciles struct {
	last *lastsync.Store
	now  func() time.Time

	duration, wait *prometheus.HistogramVec
	references     *prometheus.GaugeVec
	hung           *prometheus.GaugeVec
}

var _ host.Recorder = (*Reconciles)(nil)

// NewReconciles registers the metrics of reconciles. Last reconciles go to last, with the time
// from now.
func NewReconciles(
	registry prometheus.Registerer, last *lastsync.Store, now func() time.Time,
) *Reconciles {
	auto := promauto.With(registry)
	return &Reconciles{
		last: last, now: now,
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
		hung: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookloop_mappers_hung",
			Help: "Mappers of controllers in Go that have not returned within 10 seconds, by controller.",
		}, []string{"controller"}),
	}
}

// Reconciled counts one reconcile, and keeps it as the last one of its object.
func (m *Reconciles) Reconciled(r host.Reconcile) {
	m.duration.WithLabelValues(r.Controller, r.Result).Observe(r.Duration.Seconds())
	m.wait.WithLabelValues(r.Controller).Observe(max(r.Waited, time.Duration(0)).Seconds())
	if r.Object == "" {
		return
	}
	record := lastsync.Sync{
		Controller: r.Controller, Hookless: true, Generation: r.Generation, Result: r.Result, Failed: r.Failed,
		Time: m.now().UTC(), Duration: r.Duration, Waited: r.Waited, Attempt: r.Attempt, Writes: r.Writes,
	}
	if r.Trace.IsValid() {
		record.TraceID = r.Trace.String()
	}
	m.last.Add(r.Object, record)
}

// Bound sets the number of bound references.
func (m *Reconciles) Bound(controller string, references int) {
	m.references.WithLabelValues(controller).Set(float64(references))
}

// MappersHung sets the number of mappers that do not return.
func (m *Reconciles) MappersHung(controller string, calls int) {
	m.hung.WithLabelValues(controller).Set(float64(calls))
}
