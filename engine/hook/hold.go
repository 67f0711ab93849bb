package hook

import (
	"context"
	"sync"
)

// holding collects the releases for the end of a sync.
type holding struct {
	mu       sync.Mutex // guards the fields below
	releases []func()
	ended    bool
}

type holdingKey struct{}

// Holding returns a context for one sync. Transports keep memory reserved for the answers that they
// give under it (Hold) until release is called, when the sync has no use for the answers any more.
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

// Holds reports whether the sync that ctx belongs to holds memory of an earlier answer.
func Holds(ctx context.Context) bool {
	h, ok := ctx.Value(holdingKey{}).(*holding)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.releases) > 0
}

// Hold calls release when the sync of ctx ends; immediately if ctx belongs to no sync or the sync
// has ended.
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
