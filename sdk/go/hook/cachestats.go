package hook

import "sync/atomic"

// CacheStats describes a cache in this process. Numbers cover all servers and attachments. Programs
// can export them as metrics. The Python and TypeScript SDKs use the same names for caches and
// fields.
type CacheStats struct {
	// Cache is the cache's name. The cache "sessions" holds what stream sessions remember about
	// parents: objects, and the last responses in decoded and encoded form. The cache "unary" holds
	// encoded children of the last large responses to unary calls.
	Cache string
	// Bytes is an estimate of the memory in use, and Entries is the number of parents.
	Bytes, Entries int64
	// Hits counts calls that found an entry for their parent, and Misses counts calls that did not.
	// Both start at 0 when the process starts.
	Hits, Misses int64
}

// AllCacheStats returns statistics about each cache as of now. It is safe for concurrent use.
func AllCacheStats() []CacheStats {
	return []CacheStats{sessionCaches.stats("sessions"), unaryCacheMeter.stats("unary")}
}

// Each meter covers the whole process.
var sessionCaches, unaryCacheMeter cacheMeter

// cacheMeter counts the size and the lookups of a cache.
type cacheMeter struct{ bytes, entries, hits, misses atomic.Int64 }

func (m *cacheMeter) stats(name string) CacheStats {
	return CacheStats{
		Cache: name, Bytes: m.bytes.Load(), Entries: m.entries.Load(), Hits: m.hits.Load(), Misses: m.misses.Load(),
	}
}

// add changes the size by these amounts.
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
