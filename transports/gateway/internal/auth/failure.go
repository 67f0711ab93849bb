package auth

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"k8s.io/utils/clock"
)

const (
	// An address may present failureRate invalid tokens a second, with a burst of failureBurst.
	failureRate  = 5
	failureBurst = 20
	// maxPending bounds the reviews of unknown tokens in progress. Beyond it, an address may have
	// one only, up to maxPendingTotal in all, so that other addresses are still served.
	maxPending      = 64
	maxPendingTotal = 256
)

// failures limits the reviews of unknown tokens: by the rejected tokens of an address, and by the
// reviews in progress. It is safe for concurrent use.
type failures struct {
	limits *limits

	mu      sync.Mutex // guards the fields below
	pending map[string]int
	total   int
}

func newFailures(c clock.PassiveClock) *failures {
	return &failures{limits: newLimits(byAddress, c, failureRate, failureBurst), pending: map[string]int{}}
}

// begin counts a review, or rejects it. A review in progress counts as a failure. The caller must
// call done with the outcome.
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
	f.pending[address]--
	if f.pending[address] == 0 {
		delete(f.pending, address)
	}
}
