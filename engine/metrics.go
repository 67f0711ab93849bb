package engine

import (
	"cmp"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// syncBuckets are the classic limits of durations in seconds: a sync without writes takes a
// millisecond, a slow hook its timeout. There are few, because each controller has a series for
// each.
var syncBuckets = []float64{.01, .1, 1, 10}

// nativeReset is how old a native histogram must be to begin anew when it has too many buckets.
const nativeReset = time.Hour

// syncMetrics count syncs. It is the pipeline's Recorder.
type syncMetrics struct {
	duration, wait *prometheus.HistogramVec
	circuits       *circuitMetrics
}

var _ pipeline.Recorder = (*syncMetrics)(nil)

func newSyncMetrics(registry prometheus.Registerer, circuits *circuitMetrics) *syncMetrics {
	auto := promauto.With(registry)
	return &syncMetrics{
		duration: auto.NewHistogramVec(histogram(
			"hookloop_sync_duration_seconds", "How long syncs took, by controller and result.", syncBuckets,
		), []string{"controller", "result"}),
		wait: auto.NewHistogramVec(histogram(
			"hookloop_queue_wait_seconds", "How long parents waited for a sync, by controller.", syncBuckets,
		), []string{"controller"}),
		circuits: circuits,
	}
}

// Synced counts one sync. A hook may give reasons of its own; they stay out of the labels, which
// must be few.
func (m *syncMetrics) Synced(controller string, o pipeline.Outcome) {
	result := cmp.Or(string(hook.ErrorKindOf(o.Err)), o.Result)
	m.duration.WithLabelValues(controller, result).Observe(o.Duration.Seconds())
	m.wait.WithLabelValues(controller).Observe(max(o.Waited, time.Duration(0)).Seconds())
	m.circuits.synced(controller, o)
}

// writeMetrics count writes. It is the Meter of packages act and report.
type writeMetrics struct{ *prometheus.CounterVec }

var _ act.Meter = writeMetrics{}

func newWriteMetrics(registry prometheus.Registerer) writeMetrics {
	return writeMetrics{promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "hookloop_writes_total", Help: "Writes to the API server, by verb and result.",
	}, []string{"verb", "result"})}
}

// Wrote counts one write.
func (m writeMetrics) Wrote(verb, result string) { m.WithLabelValues(verb, result).Inc() }

// newPaceMetrics shows the limits of write requests under way, which the API server's answers set.
func newPaceMetrics(registry prometheus.Registerer, pace func() act.Pace) {
	auto := promauto.With(registry)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hookloop_write_requests_limit",
		Help: "Requests for writes of one resource that may be under way, the lowest limit of all resources; " +
			"a resource has one after the API server has refused a request as too many (429), +Inf is none.",
	}, func() float64 { return pace().Limit })
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hookloop_write_requests_in_flight", Help: "Requests for writes that are under way.",
	}, func() float64 { return float64(pace().Busy) })
	auto.NewCounterFunc(prometheus.CounterOpts{
		Name: "hookloop_write_requests_refused_total",
		Help: "Requests for writes that the API server has refused as too many (429).",
	}, func() float64 { return float64(pace().Refused) })
}

// newInterceptMetrics counts the intercepts of controllers.
func newInterceptMetrics(registry prometheus.Registerer) func(controller string, n int) {
	vector := promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "hookloop_intercepts", Help: "Who answers for parents in place of the controller's hooks, by controller.",
	}, []string{"controller"})
	return func(controller string, n int) { vector.WithLabelValues(controller).Set(float64(n)) }
}
