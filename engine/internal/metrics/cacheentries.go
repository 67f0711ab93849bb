package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// CacheEntries shows the number of entries of each cache that has no bytes in the memory budget,
// so that a cache that grows without a bound is noticed. Use [CacheEntries.Add] to add a cache; it
// is asked for its size at each scrape. It is safe for concurrent use.
type CacheEntries struct {
	desc *prometheus.Desc

	mu     sync.Mutex // guards counts
	counts map[string]func() int
}

// NewCacheEntries registers hookloop_cache_entries.
func NewCacheEntries(registry prometheus.Registerer) *CacheEntries {
	e := &CacheEntries{
		desc: prometheus.NewDesc("hookloop_cache_entries",
			"Entries of the caches beside that of objects and those of the memory budget, by cache.", []string{"cache"}, nil),
		counts: map[string]func() int{},
	}
	registry.MustRegister(e)
	return e
}

// Add adds a cache. It replaces an earlier cache of the same name. count is called at each scrape
// and must be safe for concurrent use.
func (e *CacheEntries) Add(cache string, count func() int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[cache] = count
}

// Describe lists the metric.
func (e *CacheEntries) Describe(out chan<- *prometheus.Desc) { out <- e.desc }

// Collect counts.
func (e *CacheEntries) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for cache, count := range e.counts {
		out <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(count()), cache)
	}
}
