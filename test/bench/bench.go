// Package bench measures what one sync costs: the whole pipeline of a composite controller on a
// cache that holds the converged state.
//
// It measures no API server and no cache; nothing is written, and the parts have benchmarks beside
// their code. Run it with go test -run '^$' -bench . ./test/bench; -cpuprofile says where the time
// goes.
package bench
