// Package heaptest measures the heap in tests and benchmarks.
package heaptest

import "runtime"

// Used returns the bytes that are in use after a garbage collection. The second one frees what the
// first one has only finalized.
func Used() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // less than the memory of a machine
}
