package metrics

import (
	"github.com/hookloop/hookloop/engine/internal/act/echoes"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
)

// objectCache reads the cache of objects at each scrape.
type objectCache struct {
	stats               func() []cache.ResourceStats
	echoes              func() echoes.Stats
	objects, bytes, age *prometheus.Desc
	// shared, held and saved are about all resources together.
	shared, held, saved *prometheus.Desc
}

// NewCache registers the metrics of the cache.
func NewCache(registry prometheus.Registerer, stats func() []cache.ResourceStats, writes func() echoes.Stats) {
	labels := []string{"resource"}
	registry.MustRegister(&objectCache{
		stats:  stats,
		echoes: writes,
		shared: prometheus.NewDesc("hookloop_cache_shared_bytes",
			"JSON of the labels, owner references, texts and kinds that objects in the cache share, in bytes.", nil, nil),
		held: prometheus.NewDesc("hookloop_write_echo_bytes",
			"Objects that are held from the answer to a write until its watch event, or the other way round, in bytes.",
			nil, nil),
		saved: prometheus.NewDesc("hookloop_write_echoes_total",
			"Watch events of own writes, and answers to them, that were not decoded because the other was.", nil, nil),
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
func (m *objectCache) Describe(out chan<- *prometheus.Desc) {
	out <- m.objects
	out <- m.bytes
	out <- m.age
	out <- m.shared
	out <- m.held
	out <- m.saved
}

// Collect reads the cache.
func (m *objectCache) Collect(out chan<- prometheus.Metric) {
	for _, s := range m.stats() {
		resource := s.Resource.String()
		out <- prometheus.MustNewConstMetric(m.objects, prometheus.GaugeValue, float64(s.Objects), resource)
		out <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(s.Bytes), resource)
		out <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, s.Age.Seconds(), resource)
	}
	e := m.echoes()
	out <- prometheus.MustNewConstMetric(m.shared, prometheus.GaugeValue, float64(object.SharedBytes()))
	out <- prometheus.MustNewConstMetric(m.held, prometheus.GaugeValue, float64(e.Bytes))
	out <- prometheus.MustNewConstMetric(m.saved, prometheus.CounterValue, float64(e.Saved))
}
