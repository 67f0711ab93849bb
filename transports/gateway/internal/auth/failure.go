package auth

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"k8s.io/utils/clock"
)

const (
	// failureRate is how many invalid tokens an address may present in a second, with a burst of
	// failureBurst.
	failureRate  = 5
	failureBurst = 20
	// maxPending limits the reviews of unknown tokens that are in progress. Above it, an address
	// may have only one, up to maxPendingTotal together, so that other addresses are still served.
	maxPending      = 64
	maxPendingTotal = 256
)

// failures limits reviews of unknown tokens: by how many tokens from an address were rejected, and
// by how many reviews are in progress. It is safe for concurrent use.
type failures struct {
	limits *limits

	mu      sync.Mutex // guards the fields below
	pending map[string]int
	total   int
}

func newFailures(c clock.PassiveClock) *failures {
	return &failures{limits: newLimits(byAddress, c, failureRate, failureBurst), pending: map[string]int{}}
}

// begin counts a review, or rejects it. While it is in progress, a review counts as a failure. The
// caller must call done with the outcome.
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
