package actor

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// maxConditionSeries bounds the series of hookloop_object_condition in one process.
	maxConditionSeries = 20_000
	// maxObjectConditions bounds the conditions of one object that are exported.
	maxObjectConditions = 16
	// maxActionNames bounds the values of the label action for one actor; others are otherAction.
	maxActionNames = 100
	otherAction    = "other"
)

// metrics are the metrics of all actors of a process.
type metrics struct {
	actions    *actionMetrics
	conditions *conditionMetric
}

// metricsIn returns the metrics in a registry, and registers them if they are not yet. A nil
// registry is allowed.
func metricsIn(registry prometheus.Registerer) metrics {
	m := metrics{actions: newActionMetrics(), conditions: newConditionMetric(maxConditionSeries)}
	if registry == nil {
		return m
	}
	return metrics{actions: registered(registry, m.actions), conditions: registered(registry, m.conditions)}
}

// registered registers a collector, and returns the one that is registered. A fault is logged: the
// actor runs without the metric.
func registered[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	err := registry.Register(c)
	var present prometheus.AlreadyRegisteredError
	if errors.As(err, &present) {
		if same, ok := present.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		klog.Background().Error(err, "a metric of actors is not exported")
	}
	return c
}

// objectID identifies an object in the metric of conditions.
type objectID struct {
	kind string
	types.NamespacedName
}

// conditionMetric exports the conditions of objects as 1 for True and 0 for any other status. It is
// a prometheus.Collector; the series of an object exist as long as the object. It is safe for
// concurrent use.
type conditionMetric struct {
	desc, skippedDesc *prometheus.Desc
	limit             int

	mu      sync.Mutex // guards the fields below
	objects map[objectID]map[string]bool
	series  int
	// skipped are the objects without series, because there are too many.
	skipped map[objectID]struct{}
}

var _ prometheus.Collector = (*conditionMetric)(nil)

func newConditionMetric(limit int) *conditionMetric {
	return &conditionMetric{
		desc: prometheus.NewDesc("hookloop_object_condition",
			"Conditions of objects: 1 for True, 0 for any other status.",
			[]string{"kind", "namespace", "name", "condition"}, nil),
		skippedDesc: prometheus.NewDesc("hookloop_object_condition_skipped_objects",
			"Objects without series in hookloop_object_condition, because the metric has reached its limit.", nil, nil),
		limit: limit, objects: map[objectID]map[string]bool{}, skipped: map[objectID]struct{}{},
	}
}

// set replaces the conditions of an object.
func (m *conditionMetric) set(id objectID, conditions []metav1.Condition) {
	values := map[string]bool{}
	for _, c := range conditions {
		if len(values) < maxObjectConditions {
			values[c.Type] = c.Status == metav1.ConditionTrue
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(id)
	if m.series+len(values) > m.limit {
		if len(m.skipped) < m.limit {
			m.skipped[id] = struct{}{}
		}
		return
	}
	m.objects[id] = values
	m.series += len(values)
}

// forget removes the series of an object that no longer exists.
func (m *conditionMetric) forget(id objectID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(id)
}

// forgetKind removes the series of all objects of a kind. Its actor has stopped.
func (m *conditionMetric) forgetKind(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.objects {
		if id.kind == kind {
			m.drop(id)
		}
	}
	maps.DeleteFunc(m.skipped, func(id objectID, _ struct{}) bool { return id.kind == kind })
}

// drop is forget with the lock held.
func (m *conditionMetric) drop(id objectID) {
	m.series -= len(m.objects[id])
	delete(m.objects, id)
	delete(m.skipped, id)
}

// Describe implements prometheus.Collector.
func (m *conditionMetric) Describe(out chan<- *prometheus.Desc) {
	out <- m.desc
	out <- m.skippedDesc
}

// Collect implements prometheus.Collector.
func (m *conditionMetric) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, conditions := range m.objects {
		for name, isTrue := range conditions {
			value := 0.0
			if isTrue {
				value = 1
			}
			out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value,
				id.kind, id.Namespace, id.Name, name)
		}
	}
	out <- prometheus.MustNewConstMetric(m.skippedDesc, prometheus.GaugeValue, float64(len(m.skipped)))
}

// actionMetrics count the actions of actors. They are safe for concurrent use.
type actionMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec

	mu    sync.Mutex // guards names
	names map[string][]string
}

func newActionMetrics() *actionMetrics {
	return &actionMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookloop_action_total", Help: "Actions, by actor, action and result.",
		}, []string{"actor", "action", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hookloop_action_duration_seconds", Help: "How long actions took, by actor and action.",
			Buckets: []float64{.01, .1, 1, 10},
		}, []string{"actor", "action"}),
		names: map[string][]string{},
	}
}

// ran counts one action.
func (m *actionMetrics) ran(actor, action, result string, took time.Duration) {
	action = m.name(actor, action)
	m.total.WithLabelValues(actor, action, result).Inc()
	m.duration.WithLabelValues(actor, action).Observe(took.Seconds())
}

// name returns the label of an action: its name, or otherAction if the actor has too many.
func (m *actionMetrics) name(actor, action string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := m.names[actor]
	i, found := slices.BinarySearch(names, action)
	switch {
	case found:
	case len(names) >= maxActionNames:
		return otherAction
	default:
		m.names[actor] = slices.Insert(names, i, action)
	}
	return cmp.Or(action, otherAction)
}

// Describe implements prometheus.Collector.
func (m *actionMetrics) Describe(out chan<- *prometheus.Desc) {
	m.total.Describe(out)
	m.duration.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *actionMetrics) Collect(out chan<- prometheus.Metric) {
	m.total.Collect(out)
	m.duration.Collect(out)
}
