// Package cache holds what the API server says exists: for each resource that somebody needs, one watch for the whole process, and its objects
// with indexes by name, by owner and by the lack of one.
//
// It decides nothing and writes nothing. Its data comes from lists and watches, as raw JSON (package object). A Cache is safe for
// concurrent use; the events of one resource are delivered one after the other, in order, after the store shows them. It is tested against an HTTP
// server that speaks list and watch, and through everything in test/integration.
package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
)

// Settings configure a Cache.
type Settings struct {
	Config *rest.Config
}

// Cache is the one cache of a process.
type Cache struct {
	config *rest.Config
	root   context.Context //nolint:containedctx // bounds the watches, which outlive the calls that start them
	cancel context.CancelFunc

	mu        sync.RWMutex // guards informers
	informers map[object.Resource]*informer
}

// New makes an empty Cache. Close ends its watches.
func New(s Settings) (*Cache, error) {
	if s.Config == nil {
		return nil, errors.New("cache: Config is missing")
	}
	root, cancel := context.WithCancel(context.Background())
	return &Cache{config: s.Config, root: root, cancel: cancel, informers: map[object.Resource]*informer{}}, nil
}

// Close ends all watches and waits for them. A subscriber may use the cache meanwhile.
func (c *Cache) Close() {
	c.cancel()
	c.mu.RLock()
	informers := slices.Collect(maps.Values(c.informers))
	c.mu.RUnlock()
	for _, i := range informers {
		<-i.stopped
	}
}

// Handle keeps a resource watched until it is released.
type Handle struct {
	cache    *Cache
	informer *informer
	once     sync.Once
}

// UnwatchableError says that a resource cannot be listed or watched, for a reason that waiting does not heal.
type UnwatchableError struct {
	Resource object.Resource
	Err      error
}

func (e *UnwatchableError) Error() string {
	return fmt.Sprintf("cannot watch %s: %v", e.Resource, e.Err)
}

// Unwrap gives the API server's answer.
func (e *UnwatchableError) Unwrap() error { return e.Err }

// Forbidden says whether permission is missing.
func (e *UnwatchableError) Forbidden() bool {
	return apierrors.IsForbidden(e.Err) || apierrors.IsUnauthorized(e.Err)
}

// NotFound says whether the API server does not serve the resource.
func (e *UnwatchableError) NotFound() bool {
	return apierrors.IsNotFound(e.Err) || meta.IsNoMatchError(e.Err)
}

// Acquire has a resource watched and returns when its objects are known. Handles of one resource share one watch, which ends with the last of
// them. It fails with an *UnwatchableError where the resource cannot be watched, and with ctx's error; other faults are
// retried until then.
func (c *Cache) Acquire(ctx context.Context, r object.Resource) (*Handle, error) {
	i, err := c.informer(r)
	if err != nil {
		return nil, err
	}
	h := &Handle{cache: c, informer: i}
	select {
	case <-i.store.primed:
		return h, nil
	case <-i.failed:
		err = i.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.root.Done():
		err = c.root.Err()
	}
	h.Release()
	return nil, err
}

// informer returns the resource's watch, started where there is none, with one more user.
func (c *Cache) informer(r object.Resource) (*informer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.informers[r]
	if !ok || i.broken() {
		var err error
		if i, err = start(c.root, c.config, r); err != nil {
			return nil, err
		}
		c.informers[r] = i
	}
	i.users++
	return i, nil
}

// Release gives the handle back. It may be called more than once.
func (h *Handle) Release() {
	h.once.Do(func() {
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

// Trouble is what the API server last answered about a resource whose objects are not known yet; nil where they are, and where it has said
// nothing.
func (c *Cache) Trouble(r object.Resource) error {
	c.mu.RLock()
	i, ok := c.informers[r]
	c.mu.RUnlock()
	if !ok {
		return nil
	}
	select {
	case <-i.store.primed:
		return nil
	default:
	}
	if err := i.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Subscribe calls f for every event, first for all objects that there are now (Added, Initial). f must not block and must not subscribe.
// After cancel has returned, f is not called any more.
func (h *Handle) Subscribe(f func(Event)) (cancel func()) { return h.informer.store.subscribe(f) }

// ResourceStats is what one resource holds.
type ResourceStats struct {
	Resource object.Resource
	Objects  int
	// Bytes is the size of the objects' bodies.
	Bytes int
}

// Stats lists what is held, for metrics.
func (c *Cache) Stats() []ResourceStats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	stats := make([]ResourceStats, 0, len(c.informers))
	for r, i := range c.informers {
		objects, bytes := i.store.size()
		stats = append(stats, ResourceStats{Resource: r, Objects: objects, Bytes: bytes})
	}
	return stats
}
