package auth

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"k8s.io/utils/clock"
)

const (
	// An address may show failureRate tokens a second that are not accepted, and failureBurst at
	// once.
	failureRate  = 5
	failureBurst = 20
	// maxPending is how many strangers are looked up at the same time before an address may have
	// one only, and maxPendingTotal is how many there may be then. Between the two, an address that
	// is not at fault is still served.
	maxPending      = 64
	maxPendingTotal = 256
)

// failures bounds the questions about strangers that the API server is asked: by the tokens of an
// address that were not accepted, and by those that are being looked up. It is safe for concurrent
// use.
type failures struct {
	limits *limits

	mu      sync.Mutex // guards the fields below
	pending map[string]int
	total   int
}

func newFailures(c clock.PassiveClock) *failures {
	return &failures{limits: newLimits(byAddress, c, failureRate, failureBurst), pending: map[string]int{}}
}

// begin counts a question about a stranger, or refuses it. A question that is under way counts as
// one that fails. done must be called with its outcome.
func (f *failures) begin(ctx context.Context) (done func(failed bool), err error) {
	address := byAddress(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := f.pending[address]
	switch {
	case float64(mine+1) > f.limits.left(address):
		return nil, refusal(codes.ResourceExhausted, "TooManyFailures",
			fmt.Sprintf("expected at most %d tokens a second of %s that are not accepted", failureRate, address))
	case f.total >= maxPendingTotal, f.total >= maxPending && mine > 0:
		return nil, refusal(codes.ResourceExhausted, "TooManyStrangers",
			"too many callers are being looked up; try again later")
	}
	f.pending[address]++
	f.total++
	return func(failed bool) { f.end(ctx, address, failed) }, nil
}

func (f *failures) end(ctx context.Context, address string, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed {
		f.limits.take(ctx)
	}
	f.total--
	if f.pending[address]--; f.pending[address] == 0 {
		delete(f.pending, address)
	}
}
