package metrics

import (
	"cmp"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/share"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// ownFlow is the label for requests that belong to no controller: Events, discovery, token reviews.
const ownFlow = "engine"

// Shares counts how long controllers wait because they share the limit of requests and the waits
// for slow hooks with others. Use [NewShares] to make one.
type Shares struct {
	requests, seconds *prometheus.CounterVec
}

// NewShares registers the metrics of what controllers share.
func NewShares(registry prometheus.Registerer, waits *share.Waits) *Shares {
	auto := promauto.With(registry)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hookloop_slow_hook_waits", Help: "Syncs that wait for slow hooks beside the workers.",
	}, func() float64 { syncs, _, _ := waits.Stats(); return float64(syncs) })
	auto.NewCounterFunc(prometheus.CounterOpts{
		Name: "hookloop_slow_hook_waits_refused_total",
		Help: "Syncs that kept their worker while they waited for a slow hook, because there was no room.",
	}, func() float64 { _, _, refused := waits.Stats(); return float64(refused) })
	return &Shares{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hookloop_requests_delayed_total",
			Help: "Requests to the API server that waited for client-go-qps, by controller.",
		}, []string{"controller"}),
		seconds: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hookloop_requests_delay_seconds_total",
			Help: "How long requests to the API server waited for client-go-qps, by controller.",
		}, []string{"controller"}),
	}
}

// Waited counts one request that had to wait. flow is the name of the controller, or empty for a
// request of the engine itself.
func (m *Shares) Waited(flow string, waited time.Duration) {
	if waited <= 0 {
		return
	}
	flow = cmp.Or(flow, ownFlow)
	m.requests.WithLabelValues(flow).Inc()
	m.seconds.WithLabelValues(flow).Add(waited.Seconds())
}
