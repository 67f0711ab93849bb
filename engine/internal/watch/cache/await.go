package cache

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Await returns nil as soon as shows reports true for the resource's view. It calls shows
// immediately, and again when the view or its health has changed and subscribers have handled the
// change. It fails with a *view.Error if the view cannot be read, and with ctx's error. It must not
// be called by a subscriber, which would wait for itself.
func (h *Handle) Await(ctx context.Context, shows func(view.View) bool) error {
	for {
		changed := h.informer.store.progress.next() // before the look, so that no change is missed
		v, err := h.View()
		if err != nil {
			return err
		}
		if shows(v) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-h.cache.root.Done():
			return h.cache.root.Err()
		}
	}
}

// Await is Await of the resource's handle.
func (h Held) Await(ctx context.Context, r object.Resource, shows func(view.View) bool) error {
	handle, ok := h[r]
	if !ok {
		return &view.Error{Resource: r, State: view.Unwatched}
	}
	return handle.Await(ctx, shows)
}

// progress wakes those who wait for a view to change. Without them a change costs one atomic read.
type progress struct {
	waited atomic.Bool

	mu      sync.Mutex // guards changed
	changed chan struct{}
}

// next returns a channel that is closed at the next change.
func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
		p.waited.Store(true)
	}
	return p.changed
}

// wake notes a change.
func (p *progress) wake() {
	if !p.waited.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
		p.waited.Store(false)
	}
}
