package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// metrics are the queue's own, under the names that every Kubernetes controller has. Nil metrics count nothing.
type metrics struct {
	depth          workqueue.GaugeMetric
	adds           workqueue.CounterMetric
	latency, works workqueue.HistogramMetric
	retries        workqueue.CounterMetric
}

func newMetrics(provider MetricsProvider, name string) *metrics {
	if provider == nil {
		return nil
	}
	return &metrics{
		depth: provider.NewDepthMetric(name), adds: provider.NewAddsMetric(name), latency: provider.NewLatencyMetric(name),
		works: provider.NewWorkDurationMetric(name), retries: provider.NewRetriesMetric(name),
	}
}

func (m *metrics) added() {
	if m != nil {
		m.adds.Inc()
		m.depth.Inc()
	}
}

func (m *metrics) taken(waited time.Duration) {
	if m != nil {
		m.depth.Dec()
		m.latency.Observe(waited.Seconds())
	}
}

func (m *metrics) worked(took time.Duration) {
	if m != nil {
		m.works.Observe(took.Seconds())
	}
}

func (m *metrics) retried() {
	if m != nil {
		m.retries.Inc()
	}
}
