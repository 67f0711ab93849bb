package engine

import (
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
)

// series registers the metrics with a label for the controller, so that the series of a controller
// can be deleted with it. It is safe for concurrent use.
type series struct {
	prometheus.Registerer

	mu      sync.Mutex // guards vectors
	vectors []vector
}

// vector is a metric with labels.
type vector interface {
	// DeletePartialMatch deletes the series that have all of these labels.
	DeletePartialMatch(prometheus.Labels) int
}

// Register registers a metric.
func (s *series) Register(c prometheus.Collector) error {
	if v, ok := c.(vector); ok {
		s.mu.Lock()
		s.vectors = append(s.vectors, v)
		s.mu.Unlock()
	}
	return s.Registerer.Register(c)
}

// MustRegister registers metrics, and panics if one cannot be.
func (s *series) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := s.Register(c); err != nil {
			panic(err)
		}
	}
}

// forget deletes the series of a controller: composite/hello, which CompositeController "hello"
// declares.
func (s *series) forget(controller string, declared object.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.vectors {
		for _, labels := range []prometheus.Labels{
			{"controller": controller},
			{"controller_type": declared.GVK.Kind, "controller_name": declared.Name},
			{"name": declared.GVK.Kind + "-" + declared.Name},
		} {
			v.DeletePartialMatch(labels)
		}
	}
}

// histogram returns the options of a native histogram that has a few classic buckets, too, for
// scrapers that do not request native ones.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 60, NativeHistogramMinResetDuration: nativeReset,
	}
}
