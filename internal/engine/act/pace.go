package act

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

const (
	// most is the number of requests of a Writer that may be under way while the API server accepts
	// all. Syncs are limited by Parallel and by the workers; this bound is for processes with very
	// many workers.
	most = 256
	// cut is the part of the requests under way that may be under way after a refusal.
	cut = 0.5
)

// pace bounds the requests under way by the API server's answers: additive increase, multiplicative
// decrease, as TCP's congestion window (RFC 5681). A 429 (priority and fairness has no room for the
// request) halves the number, and each round of accepted requests adds one.
//
// Requests that wait are sent in the order of their arrival; one sync has at most Parallel of them.
// A refused request waits for its Retry-After in client-go, outside of the limit.
type pace struct {
	next http.RoundTripper

	mu sync.Mutex // guards the fields below
	// limit is the number of requests that may be under way. Invariant: 1 <= limit <= most.
	limit float64
	busy  int
	// waiting are requests that wait, the next one first. Each is closed when it may be sent; busy
	// counts it then.
	waiting []chan struct{}
	// round counts the cuts. A request that began before the last one does not cut again: its refusal
	// is about the same crowd.
	round, refused int64
}

// Pace is the state of the limit of requests under way, for metrics.
type Pace struct {
	// Limit is the number of requests that may be under way, and Busy that of those that are.
	Limit, Busy int
	// Refused is the number of requests that the API server has refused as too many.
	Refused int64
}

// Pace returns the present state.
func (w *Writer) Pace() Pace {
	p := w.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	return Pace{Limit: int(p.limit), Busy: p.busy, Refused: p.refused}
}

func newPace() *pace { return &pace{limit: most} }

// wrap returns the transport with the limit.
func (p *pace) wrap(next http.RoundTripper) http.RoundTripper {
	p.next = next
	return p
}

// WrappedRoundTripper returns the wrapped one, for client-go's dialer of idle connections.
func (p *pace) WrappedRoundTripper() http.RoundTripper { return p.next }

// RoundTrip sends the request when there is room for it.
func (p *pace) RoundTrip(r *http.Request) (*http.Response, error) {
	round, err := p.begin(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read
		}
		return nil, err
	}
	response, err := p.next.RoundTrip(r)
	p.end(round, response)
	return response, err
}

// begin waits until a request may be sent, and returns its round.
func (p *pace) begin(ctx context.Context) (round int64, err error) {
	p.mu.Lock()
	if len(p.waiting) == 0 && p.busy < int(p.limit) {
		p.busy++
		defer p.mu.Unlock()
		return p.round, nil
	}
	ready := make(chan struct{})
	p.waiting = append(p.waiting, ready)
	p.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.leave(ready)
	}
	return p.round, err
}

// leave takes a request out that no longer waits. The caller holds mu.
func (p *pace) leave(ready chan struct{}) {
	if i := slices.Index(p.waiting, ready); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.busy-- // it was sent off at the same moment
	p.admit()
}

// end notes the answer to a request of a round. Without an answer the limit stays.
func (p *pace) end(round int64, response *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case response == nil:
	case response.StatusCode != http.StatusTooManyRequests:
		p.limit = min(most, p.limit+1/p.limit)
	default:
		p.refused++
		if round == p.round {
			p.limit = max(1, cut*float64(p.busy))
			p.round++
		}
	}
	p.busy--
	p.admit()
}

// admit lets requests go that wait. The caller holds mu.
func (p *pace) admit() {
	for len(p.waiting) > 0 && p.busy < int(p.limit) {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
		p.busy++
	}
}
