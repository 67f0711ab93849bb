package engine

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// cacheEntries count the entries of the caches beside that of objects at each scrape. A cache with
// bytes in the memory budget has no entry here. It is safe for concurrent use.
type cacheEntries struct {
	desc *prometheus.Desc

	mu     sync.Mutex // guards counts
	counts map[string]func() int
}

// newCacheEntries registers the metric.
func newCacheEntries(registry prometheus.Registerer) *cacheEntries {
	e := &cacheEntries{
		desc: prometheus.NewDesc("hookloop_cache_entries",
			"Entries of the caches beside that of objects and those of the memory budget, by cache.", []string{"cache"}, nil),
		counts: map[string]func() int{},
	}
	registry.MustRegister(e)
	return e
}

// add adds a cache. It replaces an earlier cache of the same name.
func (e *cacheEntries) add(cache string, count func() int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[cache] = count
}

// Describe lists the metric.
func (e *cacheEntries) Describe(out chan<- *prometheus.Desc) { out <- e.desc }

// Collect counts.
func (e *cacheEntries) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for cache, count := range e.counts {
		out <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(count()), cache)
	}
}
