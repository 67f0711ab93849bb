package server

import (
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
)

// series registers the metrics that are labelled by controller, so that the series of a controller
// can go with it. It is safe for concurrent use.
type series struct {
	prometheus.Registerer

	mu      sync.Mutex // guards vectors
	vectors []vector
}

// vector is a metric with labels.
type vector interface {
	// DeletePartialMatch deletes the series with all of these labels; a vector that lacks one of
	// them has none.
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

// histogram is a native histogram beside a few classic buckets, for scrapers that do not ask for
// native ones.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 60, NativeHistogramMinResetDuration: nativeReset,
	}
}
