// Package cache keeps views of resources (package view) in step with the API server: one watch for
// the whole process for each resource with a handle.
//
// Reading needs a Handle, which Acquire gives when the first list is in. If the list or the watch
// of a resource fails for longer than a threshold, its view is stale: reads fail with a *view.Error
// until a list or a watch succeeds.
//
// The package decides nothing and writes nothing. Its data comes from lists and watches, as raw
// JSON (package object). A Cache is safe for concurrent use; the events of one resource are
// delivered one after the other, in order, after the view shows them. It is tested against an HTTP
// server with list and watch, and through everything in test/integration.
package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// DefaultStaleAfter is the default of Config.StaleAfter.
const DefaultStaleAfter = 10 * time.Second

// Config configures a Cache.
type Config struct {
	Config *rest.Config
	// Clock may be nil; then it is the real one.
	Clock clock.WithDelayedExecution
	// StaleAfter is the time for which a list or a watch may fail before reads of the view fail;
	// default is DefaultStaleAfter.
	StaleAfter time.Duration
	// Decode decodes the object of a watch event; nil is object.Decode. It must give the same
	// object.
	Decode func(text []byte) (*object.Object, error)
}

// Cache keeps the objects of the resources that someone in the process needs. Call Acquire to have
// a resource watched, and release the handle when it is not needed any more: the last one ends the
// watch. Use one Cache for the whole process, so that each object is kept once. It is safe for
// concurrent use.
type Cache struct {
	config Config
	root   context.Context //nolint:containedctx // bounds the watches, which outlive the calls that start them
	cancel context.CancelFunc
	// proofs are the checks of Revalidate that run.
	proofs sync.WaitGroup

	mu        sync.RWMutex // guards the fields below
	informers map[object.Resource]*informer
	// consistent makes first lists consistent.
	consistent bool
}

// New makes an empty Cache. Close ends its watches.
func New(s Config) (*Cache, error) {
	if s.Config == nil {
		return nil, errors.New("cache: Config is missing")
	}
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	if s.StaleAfter <= 0 {
		s.StaleAfter = DefaultStaleAfter
	}
	if s.Decode == nil {
		s.Decode = object.Decode
	}
	root, cancel := context.WithCancel(context.Background())
	return &Cache{config: s, root: root, cancel: cancel, informers: map[object.Resource]*informer{}}, nil
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
	c.proofs.Wait()
}

// UnwatchableError reports that a resource cannot be listed or watched, for a reason that waiting
// does not heal.
type UnwatchableError struct {
	Resource object.Resource
	Err      error
}

func (e *UnwatchableError) Error() string {
	return fmt.Sprintf("cannot watch %s: %v", e.Resource, e.Err)
}

// Unwrap returns the API server's answer.
func (e *UnwatchableError) Unwrap() error { return e.Err }

// Forbidden reports whether permission is missing.
func (e *UnwatchableError) Forbidden() bool {
	return apierrors.IsForbidden(e.Err) || apierrors.IsUnauthorized(e.Err)
}

// NotFound reports whether the API server does not serve the resource.
func (e *UnwatchableError) NotFound() bool {
	return apierrors.IsNotFound(e.Err) || meta.IsNoMatchError(e.Err)
}

// Acquire has a resource watched and returns when its objects are known. Handles of one resource
// share one watch, which ends with the last of them. It fails with an *UnwatchableError if the
// resource cannot be watched, and with ctx's error; other faults are retried until then.
func (c *Cache) Acquire(ctx context.Context, r object.Resource) (*Handle, error) {
	for {
		i, proof, err := c.informer(r)
		if err != nil {
			return nil, err
		}
		h := &Handle{cache: c, informer: i}
		select {
		case <-i.store.primed:
			h.view, err = i.store.objects.View()
		case <-i.failed:
			err = i.err
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.root.Done():
			err = c.root.Err()
		}
		if err == nil {
			err = proof.wait(ctx, c.root)
		}
		if err == nil && !proof.failed() {
			return h, nil
		}
		h.Release()
		if err != nil {
			return nil, err
		}
	}
}

// informer returns the resource's informer with one more user and the check of its view, which may
// be nil. It starts an informer if there is none, or if that cannot be watched or is outdated.
func (c *Cache) informer(r object.Resource) (*informer, *proof, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.informers[r]
	if !ok || i.broken() || i.proof.failed() {
		var err error
		i, err = start(c.root, &c.config, r, c.consistent)
		if err != nil {
			return nil, nil, err
		}
		c.informers[r] = i
	}
	i.users++
	return i, i.proof, nil
}

// LastError is the last failure of a resource's list or watch; nil if the last request succeeded,
// and for a resource that is not watched.
func (c *Cache) LastError(r object.Resource) error {
	c.mu.RLock()
	i, ok := c.informers[r]
	c.mu.RUnlock()
	if !ok {
		return nil
	}
	_, err := i.health.last()
	return err
}

// ResourceStats describes one resource in the cache.
type ResourceStats struct {
	Resource object.Resource
	Objects  int
	// Bytes is the size of the objects' bodies.
	Bytes int
	// Age is how long the list or the watch has been failing; 0 if it works.
	Age time.Duration
}

// Stats returns the size of each resource, for metrics.
func (c *Cache) Stats() []ResourceStats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	stats := make([]ResourceStats, 0, len(c.informers))
	for r, i := range c.informers {
		s := ResourceStats{Resource: r}
		s.Objects, s.Bytes = i.store.objects.Size()
		if since, err := i.health.last(); err != nil {
			s.Age = c.config.Clock.Since(since)
		}
		stats = append(stats, s)
	}
	return stats
}
