package hook

import "sync/atomic"

// CacheStats describes one cache of the SDK, over all servers and attachments of the process. The
// SDKs of all languages have the same caches and fields, as far as they have the cache. A program
// can export them as metrics.
type CacheStats struct {
	// Cache is the cache's name. "sessions" has what sessions keep of the parents: objects, the last
	// responses, and their decoded and encoded forms. "unary" has the encoded children of the last
	// large responses to unary calls.
	Cache string
	// Bytes is the approximate memory now, and Entries the number of parents.
	Bytes, Entries int64
	// Hits counts the calls about a parent that found an entry, since the start of the process, and
	// Misses those that did not.
	Hits, Misses int64
}

// AllCacheStats returns the present state of each cache. It is safe for concurrent use.
func AllCacheStats() []CacheStats {
	return []CacheStats{sessionCaches.stats("sessions"), unaryCacheMeter.stats("unary")}
}

// The meters of the process.
var sessionCaches, unaryCacheMeter cacheMeter

// cacheMeter meters one kind of cache.
type cacheMeter struct{ bytes, entries, hits, misses atomic.Int64 }

func (m *cacheMeter) stats(name string) CacheStats {
	return CacheStats{
		Cache: name, Bytes: m.bytes.Load(), Entries: m.entries.Load(), Hits: m.hits.Load(), Misses: m.misses.Load(),
	}
}

// add changes the size.
func (m *cacheMeter) add(bytes, entries int) {
	m.bytes.Add(int64(bytes))
	m.entries.Add(int64(entries))
}

// looked counts a lookup.
func (m *cacheMeter) looked(found bool) {
	if found {
		m.hits.Add(1)
	} else {
		m.misses.Add(1)
	}
}
