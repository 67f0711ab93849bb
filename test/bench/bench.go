// Package bench measures the cost of one sync: the complete pipeline of a composite controller on a
// cache with the converged state.
//
// It measures no API server and no cache. Nothing is written, and the parts have benchmarks beside
// their code. Run it with go test -run '^$' -bench . ./test/bench; -cpuprofile writes a profile.
package bench
