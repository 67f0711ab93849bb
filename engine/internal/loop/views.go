package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// views are the views that a controller holds while it runs.
type views[K comparable] struct {
	held atomic.Pointer[cache.Held]
	// changed is called when Unreadable may have changed; may be nil.
	changed func()

	mu sync.Mutex // guards waiting
	// waiting are the keys that could not be reconciled because a view could not be read.
	waiting map[K]struct{}
}

// reader reads the views that a controller holds.
type reader[K comparable] struct{ *Loop[K] }

// View implements view.Reader. It fails before the controller runs, after it has ended, and for
// resources that it has not declared.
func (r reader[K]) View(resource object.Resource) (view.View, error) {
	held := r.views.held.Load()
	if held == nil {
		return view.View{}, &view.Error{Resource: resource, State: view.Unwatched}
	}
	return held.View(resource)
}

// Reader reads the declared resources, while the controller runs.
func (c *Loop[K]) Reader() view.Reader { return reader[K]{c} }

// Await returns nil as soon as shows reports true for the view of a declared resource, which it
// calls again after each change (cache.Handle).
func (c *Loop[K]) Await(ctx context.Context, r object.Resource, shows func(view.View) bool) error {
	held := c.views.held.Load()
	if held == nil {
		return &view.Error{Resource: r, State: view.Unwatched}
	}
	return held.Await(ctx, r, shows)
}

// Unreadable returns the errors of declared resources that cannot be read although the controller
// runs: their views are stale.
func (c *Loop[K]) Unreadable() []*view.Error {
	held := c.views.held.Load()
	if held == nil {
		return nil
	}
	var all []*view.Error
	for r := range *held {
		var unknown *view.Error
		if _, err := held.View(r); errors.As(err, &unknown) {
			all = append(all, unknown)
		}
	}
	slices.SortFunc(all, func(a, b *view.Error) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Resource.String(), b.Resource.String()))
	})
	return all
}

// ViewsChanged declares a function that is called when Unreadable may have changed. It must not
// block.
func (c *Loop[K]) ViewsChanged(f func()) { c.views.changed = f }

// hold lets Reader read handles, and follows the health of their views until letGo is called.
func (c *Loop[K]) hold(handles cache.Held) (letGo func()) {
	c.views.held.Store(&handles)
	var cancels []func()
	for r, h := range handles {
		cancels = append(cancels, h.Follow(func(err error) { c.viewChanged(r, err) }))
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
		c.views.held.Store(nil)
	}
}

// viewChanged handles that a view has become stale (err) or good again (nil).
func (c *Loop[K]) viewChanged(r object.Resource, err error) {
	if err == nil {
		c.retryWaiting(r)
	}
	if c.views.changed != nil {
		c.views.changed()
	}
}

// unreadable enqueues a key again as soon as the view is good that its reconcile could not read.
func (c *Loop[K]) unreadable(key K, err error) {
	var unknown *view.Error
	if !errors.As(err, &unknown) || unknown.State != view.Stale {
		return
	}
	c.views.mu.Lock()
	if c.views.waiting == nil {
		c.views.waiting = map[K]struct{}{}
	}
	c.views.waiting[key] = struct{}{}
	c.views.mu.Unlock()
	if _, err := c.Reader().View(unknown.Resource); err == nil { // good again meanwhile
		c.retryWaiting(unknown.Resource)
	}
}

// retryWaiting enqueues the keys that wait for a view, whatever their backoff.
func (c *Loop[K]) retryWaiting(r object.Resource) {
	c.views.mu.Lock()
	waiting := c.views.waiting
	c.views.waiting = nil
	c.views.mu.Unlock()
	for key := range waiting {
		c.Enqueue(key, queue.Child,
			queue.Cause{Kind: queue.CauseTrigger, Reason: fmt.Sprintf("the view of %s is good again", r)})
	}
}
