package hook

import (
	"context"
	"sync"
)

// holding collects what to release when a sync ends.
type holding struct {
	mu       sync.Mutex // guards the fields below
	releases []func()
	ended    bool
}

type holdingKey struct{}

// Holding returns a context for one sync. The engine calls release when the sync no longer needs the
// answers that it got under this context. Transports use [Config.Reserve] and do not call Holding.
func Holding(ctx context.Context) (_ context.Context, release func()) {
	h := &holding{}
	return context.WithValue(ctx, holdingKey{}, h), h.release
}

func (h *holding) release() {
	h.mu.Lock()
	releases := h.releases
	h.releases = nil
	h.ended = true
	h.mu.Unlock()
	for _, f := range releases {
		f()
	}
}

// Holds reports whether the sync of ctx holds memory of an earlier answer. It should not wait for more
// then, because two such syncs could wait for each other.
func Holds(ctx context.Context) bool {
	h, ok := ctx.Value(holdingKey{}).(*holding)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.releases) > 0
}

// Hold calls release when the sync of ctx ends. It calls release immediately if ctx belongs to no sync,
// or to one that has ended.
func Hold(ctx context.Context, release func()) {
	if h, ok := ctx.Value(holdingKey{}).(*holding); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.ended {
			h.releases = append(h.releases, release)
			return
		}
	}
	release()
}
