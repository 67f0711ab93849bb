package share

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Observer receives the time that a request waited for its turn. It must not block.
type Observer func(flow string, waited time.Duration)

// Limiter is a token bucket that gives its tokens in turn to the waiting flows, so that a flow with
// many requests delays another one by one request at most. It implements client-go's
// flowcontrol.RateLimiter.
type Limiter struct {
	qps     float64
	burst   float64
	clock   clock.WithDelayedExecution
	observe Observer

	mu     sync.Mutex // guards the fields below
	tokens float64
	at     time.Time // when tokens was right
	// turns are the flows with requests that wait, the next one first; queues has the requests of
	// each.
	turns  []string
	queues map[string][]*waiter
	timer  clock.Timer
}

// waiter is one request that waits. Ready is closed when it has its token.
type waiter struct{ ready chan struct{} }

// NewLimiter returns a Limiter of qps requests a second with bursts of burst. The observer may be
// nil.
func NewLimiter(qps float64, burst int, c clock.WithDelayedExecution, observe Observer) *Limiter {
	if observe == nil {
		observe = func(string, time.Duration) {}
	}
	return &Limiter{
		qps: qps, burst: float64(burst), clock: c, observe: observe,
		tokens: float64(burst), at: c.Now(), queues: map[string][]*waiter{},
	}
}

// Wait returns when the request may be sent, or with the context's error.
func (l *Limiter) Wait(ctx context.Context) error {
	flow := Flow(ctx)
	if l.TryAccept() {
		l.observe(flow, 0)
		return nil
	}
	began := l.clock.Now()
	w := l.enqueue(flow)
	select {
	case <-w.ready:
		l.observe(flow, l.clock.Since(began))
		return nil
	case <-ctx.Done():
		l.leave(flow, w)
		return ctx.Err()
	}
}

// TryAccept takes a token if one is left and no request waits for it.
func (l *Limiter) TryAccept() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fill()
	if len(l.turns) > 0 || l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// Accept returns when the request may be sent.
func (l *Limiter) Accept() { _ = l.Wait(context.Background()) } // without an end there is no error

// Stop does nothing: the Limiter lives as long as the process.
func (l *Limiter) Stop() {}

// QPS is the limit.
func (l *Limiter) QPS() float32 { return float32(l.qps) }

// fill adds the tokens that have come up since the last time.
func (l *Limiter) fill() {
	now := l.clock.Now()
	l.tokens = min(l.burst, l.tokens+max(0, now.Sub(l.at).Seconds())*l.qps)
	l.at = now
}

func (l *Limiter) enqueue(flow string) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{ready: make(chan struct{})}
	if len(l.queues[flow]) == 0 {
		l.turns = append(l.turns, flow)
	}
	l.queues[flow] = append(l.queues[flow], w)
	l.grant()
	return w
}

// leave takes a request out that no longer waits. A token that it got meanwhile goes to the next.
func (l *Limiter) leave(flow string, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.ready:
		l.tokens++
		l.grant()
		return
	default:
	}
	l.set(flow, slices.DeleteFunc(l.queues[flow], func(other *waiter) bool { return other == w }))
	if len(l.queues[flow]) == 0 {
		l.turns = slices.DeleteFunc(l.turns, func(other string) bool { return other == flow })
	}
}

func (l *Limiter) set(flow string, queue []*waiter) {
	if len(queue) == 0 {
		delete(l.queues, flow)
		return
	}
	l.queues[flow] = queue
}

// grant gives out the tokens that there are, a flow after the other, and comes back when the next
// one is due.
func (l *Limiter) grant() {
	l.fill()
	for l.tokens >= 1 && len(l.turns) > 0 {
		flow := l.turns[0]
		l.turns = l.turns[1:]
		queue := l.queues[flow]
		close(queue[0].ready)
		l.tokens--
		l.set(flow, queue[1:])
		if len(queue) > 1 {
			l.turns = append(l.turns, flow)
		}
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if len(l.turns) > 0 {
		wait := time.Duration((1 - l.tokens) / l.qps * float64(time.Second))
		l.timer = l.clock.AfterFunc(max(wait, time.Microsecond), l.tick)
	}
}

func (l *Limiter) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	l.grant()
}
