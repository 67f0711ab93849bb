package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// metrics are the queue's own, under the names that every Kubernetes controller has. Nil metrics
// count nothing.
type metrics struct {
	depth          workqueue.GaugeMetric
	adds           workqueue.CounterMetric
	latency, works workqueue.HistogramMetric
	retries        workqueue.CounterMetric
	// unfinished and longest follow keys in work; Measure sets them.
	unfinished, longest workqueue.SettableGaugeMetric
}

func newMetrics(provider MetricsProvider, name string) *metrics {
	if provider == nil {
		return nil
	}
	return &metrics{
		depth:      provider.NewDepthMetric(name),
		adds:       provider.NewAddsMetric(name),
		latency:    provider.NewLatencyMetric(name),
		works:      provider.NewWorkDurationMetric(name),
		retries:    provider.NewRetriesMetric(name),
		unfinished: provider.NewUnfinishedWorkSecondsMetric(name),
		longest:    provider.NewLongestRunningProcessorSecondsMetric(name),
	}
}

// Measure brings the metrics of keys in work up to date: the sum of their times, and the longest. A
// worker that hangs is seen in them. It is for the caller to repeat.
func (q *Queue[K]) Measure() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.metrics == nil {
		return
	}
	var sum, longest time.Duration
	for e := range q.working {
		took := q.clock.Since(e.started)
		sum += took
		longest = max(longest, took)
	}
	q.metrics.unfinished.Set(sum.Seconds())
	q.metrics.longest.Set(longest.Seconds())
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
