package server

import (
	"github.com/hookloop/hookloop/engine/cache"
	"github.com/prometheus/client_golang/prometheus"
)

// cacheMetrics ask the cache at each scrape.
type cacheMetrics struct {
	stats               func() []cache.ResourceStats
	objects, bytes, age *prometheus.Desc
}

// newCacheMetrics registers the metrics of the cache.
func newCacheMetrics(registry prometheus.Registerer, stats func() []cache.ResourceStats) {
	labels := []string{"resource"}
	registry.MustRegister(&cacheMetrics{
		stats:   stats,
		objects: prometheus.NewDesc("hookloop_cache_objects", "Objects in the cache, by resource.", labels, nil),
		bytes: prometheus.NewDesc(
			"hookloop_cache_bytes",
			"JSON of the objects in the cache in bytes, by resource, with what dynamic and server-side apply have "+
				"recorded on them.",
			labels,
			nil,
		),
		age: prometheus.NewDesc("hookloop_cache_view_age_seconds",
			"How long the list or the watch of a resource has been failing, by resource; 0 if it works.", labels, nil),
	})
}

// Describe lists the metrics.
func (m *cacheMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.objects
	out <- m.bytes
	out <- m.age
}

// Collect reads the cache.
func (m *cacheMetrics) Collect(out chan<- prometheus.Metric) {
	for _, s := range m.stats() {
		resource := s.Resource.String()
		out <- prometheus.MustNewConstMetric(m.objects, prometheus.GaugeValue, float64(s.Objects), resource)
		out <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(s.Bytes), resource)
		out <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, s.Age.Seconds(), resource)
	}
}
