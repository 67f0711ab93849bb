// Package benchmarks measures what one sync costs: it runs the whole pipeline of a composite
// controller on a cache that already holds the converged state.
//
//	go test -run '^$' -bench . -benchmem ./engine/internal/benchmarks
//
// Add -cpuprofile to write a profile. There is no API server, no cache and no write, because these
// parts have benchmarks beside their code. The tests named Allocates limit the number of
// allocations, which is the same on every machine; "make unit" runs them without the race detector.
package benchmarks
