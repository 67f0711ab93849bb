package engine

import (
	"cmp"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/share"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	// ownFlow is the label of requests that are no controller's: Events, discovery, reviews of
	// tokens.
	ownFlow = "engine"
	// waitShare is the part of the memory budget that the questions to slow hooks may have, as one
	// n-th of it.
	waitShare = 8
	// defaultWaitBytes is that without a budget.
	defaultWaitBytes = 256 << 20
)

func waitBytes(b *budget.Budget) int64 { return cmp.Or(b.Limit()/waitShare, defaultWaitBytes) }

// shareMetrics count what controllers wait for because others need it, too.
type shareMetrics struct {
	requests, seconds *prometheus.CounterVec
}

func newShareMetrics(registry prometheus.Registerer, waits *share.Waits) *shareMetrics {
	auto := promauto.With(registry)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hookloop_slow_hook_waits", Help: "Syncs that wait for slow hooks beside the workers.",
	}, func() float64 { syncs, _, _ := waits.Stats(); return float64(syncs) })
	auto.NewCounterFunc(prometheus.CounterOpts{
		Name: "hookloop_slow_hook_waits_refused_total",
		Help: "Syncs that kept their worker while they waited for a slow hook, because there was no room.",
	}, func() float64 { _, _, refused := waits.Stats(); return float64(refused) })
	return &shareMetrics{
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

// waited counts one request of a flow.
func (m *shareMetrics) waited(flow string, waited time.Duration) {
	if waited <= 0 {
		return
	}
	flow = cmp.Or(flow, ownFlow)
	m.requests.WithLabelValues(flow).Inc()
	m.seconds.WithLabelValues(flow).Add(waited.Seconds())
}
