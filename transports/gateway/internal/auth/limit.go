package auth

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// callRate is how many new calls a caller may make in a second, with a burst of callBurst in
	// case all processes of a worker reconnect together.
	callRate  = 20
	callBurst = 100
	// addressRate is how many new calls an address may make in a second, before authentication.
	addressRate  = 50
	addressBurst = 200
	// maxLimited limits how many limiters of a kind are kept. The least recently used one is
	// removed.
	maxLimited = 4096
)

// limits limits the rate of new calls by a key. It is safe for concurrent use.
type limits struct {
	key   func(context.Context) string
	clock clock.PassiveClock
	limit rate.Limit
	burst int

	mu  sync.Mutex // makes lookup and insertion of a key one step
	all *lru.Cache
}

func newLimits(key func(context.Context) string, c clock.PassiveClock, limit rate.Limit, burst int) *limits {
	return &limits{key: key, clock: c, limit: limit, burst: burst, all: lru.New(maxLimited)}
}

// CachedLimits returns how many limiters exist for addresses and for callers.
func (g *Guard) CachedLimits() int {
	n := 0
	for _, l := range []*limits{g.addresses, g.callers, g.records, g.denials, g.failures.limits} {
		n += l.all.Len()
	}
	return n
}

// Limit returns an error if a call exceeds the rate.
func (l *limits) Limit(ctx context.Context) error {
	if l.take(ctx) {
		return nil
	}
	return fmt.Errorf("expected at most %g new calls a second of %s", float64(l.limit), l.key(ctx))
}

// take counts a call and reports whether the rate allows it.
func (l *limits) take(ctx context.Context) bool { return l.takeOf(l.key(ctx)) }

// takeOf does what take does, for a given key.
func (l *limits) takeOf(key string) bool { return l.of(key).AllowN(l.clock.Now(), 1) }

// left returns how many more calls the rate allows now.
func (l *limits) left(key string) float64 { return l.of(key).TokensAt(l.clock.Now()) }

func (l *limits) of(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.all.Get(key); ok {
		return known.(*rate.Limiter) // the only type that is added
	}
	fresh := rate.NewLimiter(l.limit, l.burst)
	l.all.Add(key, fresh)
	return fresh
}

// byCaller returns a key for each user.
func byCaller(ctx context.Context) string {
	if caller, ok := FromContext(ctx); ok {
		return caller.String()
	}
	return "callers without a name"
}

// byAddress returns a key for each IPv4 address and each IPv6 /64, which one host may own.
func byAddress(ctx context.Context) string {
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return "hosts without an address"
	}
	return network(from.Addr)
}

// network returns a peer's IPv4 address, or the /64 of its IPv6 address.
func network(of net.Addr) string {
	at, err := netip.ParseAddrPort(of.String())
	if err != nil {
		return of.String()
	}
	address := at.Addr().Unmap()
	if address.Is4() {
		return address.String()
	}
	network, err := address.WithZone("").Prefix(64)
	if err != nil {
		return address.String()
	}
	return network.String()
}
