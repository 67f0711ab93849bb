package cache

import (
	"sync"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Handle keeps a resource watched until it is released.
type Handle struct {
	cache    *Cache
	informer *informer
	view     view.View
	once     sync.Once
	released atomic.Bool

	mu sync.Mutex // guards indexes
	// indexes release the indexes that Index has added.
	indexes []func()
}

// Resource is the resource that is watched.
func (h *Handle) Resource() object.Resource { return h.informer.resource }

// View reads the resource. It fails with a *view.Error if the handle has been released, or if the
// list or the watch of the resource has failed for too long.
func (h *Handle) View() (view.View, error) {
	if h.released.Load() {
		return view.View{}, &view.Error{Resource: h.informer.resource, State: view.Unwatched}
	}
	if err := h.informer.health.readable(); err != nil {
		return view.View{}, err
	}
	return h.view, nil
}

// Subscribe calls f for every event, first for all present objects (Added, Initial). f must not
// block and must not subscribe. After cancel has returned, f is not called any more.
func (h *Handle) Subscribe(f func(Event)) (cancel func()) {
	return h.informer.store.subscribe(h.view, f)
}

// AwaitDelivery returns when the subscribers have got the events of all changes that the view
// shows. A subscriber must not call it.
func (h *Handle) AwaitDelivery() {
	h.informer.store.order.Lock()   // held while subscribers are called
	h.informer.store.order.Unlock() //nolint:gocritic,staticcheck // nothing to do but to wait
}

// Follow calls f with a *view.Error when the view has become stale or is so for another reason, and
// with nil when it is good again. f must not block and must not follow. After cancel has returned,
// f is not called any more.
func (h *Handle) Follow(f func(error)) (cancel func()) { return h.informer.health.follow(f) }

// Index makes the cache hold an index of the resource until the handle is released, so that View.By
// finds objects without a scan. Handles that add the same index share it.
func (h *Handle) Index(i *view.Index) {
	release := h.informer.store.objects.AddIndex(i)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released.Load() {
		release()
		return
	}
	h.indexes = append(h.indexes, release)
}

// releaseIndexes gives the handle's indexes back.
func (h *Handle) releaseIndexes() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, release := range h.indexes {
		release()
	}
	h.indexes = nil
}

// Release gives the handle back. It may be called more than once.
func (h *Handle) Release() {
	h.once.Do(func() {
		h.released.Store(true)
		h.informer.store.progress.wake()
		h.releaseIndexes()
		h.cache.mu.Lock()
		h.informer.users--
		last := h.informer.users == 0
		if last && h.cache.informers[h.informer.resource] == h.informer {
			delete(h.cache.informers, h.informer.resource)
		}
		h.cache.mu.Unlock()
		if last {
			h.informer.stop()
		}
	})
}

// Held are handles by their resources: a Reader of what they hold.
type Held map[object.Resource]*Handle

var _ view.Reader = Held(nil)

// View implements view.Reader.
func (h Held) View(r object.Resource) (view.View, error) {
	handle, ok := h[r]
	if !ok {
		return view.View{}, &view.Error{Resource: r, State: view.Unwatched}
	}
	return handle.View()
}

// Release gives all handles back.
func (h Held) Release() {
	for _, handle := range h {
		handle.Release()
	}
}
