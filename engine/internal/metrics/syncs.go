package metrics

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

// Syncs counts syncs and measures how long they took and waited. Use [NewSyncs] to make one.
type Syncs struct {
	duration, wait *prometheus.HistogramVec
	circuits       *Circuits
}

var _ pipeline.Recorder = (*Syncs)(nil)

// NewSyncs registers the metrics of syncs. Each sync is also passed on to circuits.
func NewSyncs(registry prometheus.Registerer, circuits *Circuits) *Syncs {
	auto := promauto.With(registry)
	return &Syncs{
		duration: auto.NewHistogramVec(histogram(
			"hookloop_sync_duration_seconds", "How long syncs took, by controller and result.", syncBuckets,
		), []string{"controller", "result"}),
		wait: auto.NewHistogramVec(histogram(
			"hookloop_queue_wait_seconds", "How long parents waited for a sync, by controller.", syncBuckets,
		), []string{"controller"}),
		circuits: circuits,
	}
}

// Synced counts one sync. A hook can fail with a reason of its own; this reason is not used as a
// label, because the number of labels must be limited.
func (m *Syncs) Synced(controller string, o pipeline.Outcome) {
	result := cmp.Or(string(hook.ErrorKindOf(o.Err)), o.Result)
	m.duration.WithLabelValues(controller, result).Observe(o.Duration.Seconds())
	m.wait.WithLabelValues(controller).Observe(max(o.Waited, time.Duration(0)).Seconds())
	m.circuits.synced(controller, o)
}

// Writes counts writes to the API server. It implements act.Meter; use [NewWrites] to make one.
type Writes struct{ *prometheus.CounterVec }

var _ act.Meter = Writes{}

// NewWrites registers hookloop_writes_total.
func NewWrites(registry prometheus.Registerer) Writes {
	return Writes{promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "hookloop_writes_total", Help: "Writes to the API server, by verb and result.",
	}, []string{"verb", "result"})}
}

// Wrote counts one write.
func (m Writes) Wrote(verb, result string) { m.WithLabelValues(verb, result).Inc() }

// NewPace registers the metrics of write requests under way. Their limit follows from the answers of
// the API server.
func NewPace(registry prometheus.Registerer, pace func() act.Pace) {
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

// NewIntercepts registers hookloop_intercepts and returns the function that sets it for a
// controller.
func NewIntercepts(registry prometheus.Registerer) func(controller string, n int) {
	vector := promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "hookloop_intercepts", Help: "Who answers for parents in place of the controller's hooks, by controller.",
	}, []string{"controller"})
	return func(controller string, n int) { vector.WithLabelValues(controller).Set(float64(n)) }
}
