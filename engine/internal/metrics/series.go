package metrics

import (
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
)

// Series registers metrics and remembers those with labels, so that [Series.Forget] can delete
// what they show of a controller that has stopped. Without this, a scrape would show each
// controller that has ever run. It is safe for concurrent use.
type Series struct {
	prometheus.Registerer

	mu      sync.Mutex // guards vectors
	vectors []vector
}

// SeriesOf returns r itself if it is a *Series already, and otherwise a new one that registers
// with r.
func SeriesOf(r prometheus.Registerer) *Series {
	if s, ok := r.(*Series); ok {
		return s
	}
	return &Series{Registerer: r}
}

// vector is a metric with labels.
type vector interface {
	// DeletePartialMatch deletes the series that have all of these labels.
	DeletePartialMatch(prometheus.Labels) int
}

// Register registers a metric.
func (s *Series) Register(c prometheus.Collector) error {
	if v, ok := c.(vector); ok {
		s.mu.Lock()
		s.vectors = append(s.vectors, v)
		s.mu.Unlock()
	}
	return s.Registerer.Register(c)
}

// MustRegister registers metrics, and panics if one cannot be.
func (s *Series) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := s.Register(c); err != nil {
			panic(err)
		}
	}
}

// Forget deletes the series of one controller. It is called with both of its names, for example
// "composite/hello" and the CompositeController "hello" that declares it, because the metrics of
// hooks and queues use the second.
func (s *Series) Forget(controller string, declared object.Ref) {
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
