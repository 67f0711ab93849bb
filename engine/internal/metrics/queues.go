package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/client-go/util/workqueue"
)

// Queues measures the work queues under the names and labels that client-go's queues use in every
// Kubernetes component. Use [NewQueues] to make one.
type Queues struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	wait, work                 *prometheus.HistogramVec
}

var _ workqueue.MetricsProvider = (*Queues)(nil)

// NewQueues registers the metrics of queues.
func NewQueues(registry prometheus.Registerer) *Queues {
	auto := promauto.With(registry)
	labels := []string{"name"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	duration := func(name, help string) *prometheus.HistogramVec {
		return auto.NewHistogramVec(histogram(name, help, []float64{.001, .1, 1, 10}), labels)
	}
	return &Queues{
		depth:      gauge("workqueue_depth", "Items that wait."),
		unfinished: gauge("workqueue_unfinished_work_seconds", "Sum of the ages of items that are worked on."),
		longest:    gauge("workqueue_longest_running_processor_seconds", "Age of the oldest item that is worked on."),
		adds:       counter("workqueue_adds_total", "Items that were added."),
		retries:    counter("workqueue_retries_total", "Items that were added again after a failure."),
		wait:       duration("workqueue_queue_duration_seconds", "How long items waited."),
		work:       duration("workqueue_work_duration_seconds", "How long items were worked on."),
	}
}

// NewDepthMetric is workqueue_depth of one queue.
func (q *Queues) NewDepthMetric(name string) workqueue.GaugeMetric {
	return q.depth.WithLabelValues(name)
}

// NewAddsMetric is workqueue_adds_total of one queue.
func (q *Queues) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name)
}

// NewLatencyMetric is workqueue_queue_duration_seconds of one queue.
func (q *Queues) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.wait.WithLabelValues(name)
}

// NewWorkDurationMetric is workqueue_work_duration_seconds of one queue.
func (q *Queues) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.work.WithLabelValues(name)
}

// NewUnfinishedWorkSecondsMetric is workqueue_unfinished_work_seconds of one queue.
func (q *Queues) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name)
}

// NewLongestRunningProcessorSecondsMetric is workqueue_longest_running_processor_seconds of one
// queue.
func (q *Queues) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name)
}

// NewRetriesMetric is workqueue_retries_total of one queue.
func (q *Queues) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name)
}
