// Package standby keeps resources in the cache for controllers that do not run yet: those of a
// replica that waits to lead.
//
// A Set holds a handle of each resource that its user wants. It decides nothing, reads nothing and
// writes nothing; package supervisor and package host know which resources they want. A Set is safe
// for concurrent use. It is tested with package cachetest.
package standby

import (
	"context"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// retryInterval is the time between two attempts to watch a resource that cannot be watched, such
// as one without rights.
const retryInterval = 15 * time.Second

// Config configures a Set.
type Config struct {
	Cache *cache.Cache
	Clock clock.Clock
	// Changed is called when a resource has been listed or cannot be, and at each of its events. It
	// must not block; it may be nil.
	Changed func()
}

// Set holds handles of resources. New makes one; the zero value is not usable.
type Set struct {
	config Config
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards entries and the fields of each
	entries map[object.Resource]*entry
}

// entry is one resource.
type entry struct {
	cancel context.CancelFunc
	// handle is nil before the first list.
	handle *cache.Handle
	// failed reports that the resource could not be watched.
	failed bool
}

// New returns an empty Set.
func New(s Config) *Set { return &Set{config: s, entries: map[object.Resource]*entry{}} }

// Want replaces the resources of the set. It does not wait. Handles are given back when a resource
// is no longer wanted or ctx is done.
func (s *Set) Want(ctx context.Context, resources []object.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[object.Resource]bool{}
	for _, r := range resources {
		wanted[r] = true
		if s.entries[r] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		e := &entry{cancel: cancel}
		s.entries[r] = e
		s.tasks.Go(func() { s.keep(ctx, r, e) })
	}
	for r, e := range s.entries {
		if !wanted[r] {
			e.cancel()
			delete(s.entries, r)
		}
	}
}

// Wait returns when all handles are given back, after the end of Want's contexts.
func (s *Set) Wait() { s.tasks.Wait() }

// Filled reports whether every resource has been listed, or cannot be at present.
func (s *Set) Filled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, e := range s.entries {
		if e.handle == nil && !e.failed && s.config.Cache.LastError(r) == nil {
			return false
		}
	}
	return true
}

// View reads a resource of the set. The error is a *view.Error if its objects are not known.
func (s *Set) View(r object.Resource) (view.View, error) {
	s.mu.Lock()
	e := s.entries[r]
	var handle *cache.Handle
	if e != nil {
		handle = e.handle
	}
	s.mu.Unlock()
	if handle == nil {
		return view.View{}, &view.Error{Resource: r, State: view.Filling}
	}
	return handle.View()
}

// keep holds a handle of one resource until ctx is done.
func (s *Set) keep(ctx context.Context, r object.Resource, e *entry) {
	for {
		handle, err := s.config.Cache.Acquire(ctx, r)
		if ctx.Err() != nil {
			if handle != nil {
				handle.Release()
			}
			return
		}
		s.note(e, handle, err != nil)
		if err == nil {
			s.hold(ctx, handle)
			return
		}
		s.changed()
		klog.FromContext(ctx).Error(err, "a resource is not watched while this replica waits to lead",
			"resource", r.String(), "retryAfter", retryInterval.String())
		if !sleep.For(ctx.Done(), s.config.Clock, retryInterval) {
			return
		}
	}
}

// hold gives a handle back when ctx is done.
func (s *Set) hold(ctx context.Context, handle *cache.Handle) {
	defer handle.Release()
	if s.config.Changed != nil {
		defer handle.Subscribe(func(cache.Event) { s.changed() })()
	}
	s.changed()
	<-ctx.Done()
}

// changed calls Config.Changed.
func (s *Set) changed() {
	if s.config.Changed != nil {
		s.config.Changed()
	}
}

func (s *Set) note(e *entry, handle *cache.Handle, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.handle = handle
	e.failed = failed
}
