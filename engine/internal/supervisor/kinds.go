package supervisor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/klog/v2"
)

// kinds are the declaring resources.
var kinds = declaringResources()

func declaringResources() []object.Resource {
	var all []object.Resource
	for _, k := range hook.Descriptors() {
		all = append(all, object.Resource{
			GVK: v1alpha1.GroupVersion.WithKind(k.Declared), Plural: k.Plural, HasStatus: true,
		})
	}
	return all
}

func resourceOf(key object.Ref) object.Resource {
	for _, r := range kinds {
		if r.GVK == key.GVK {
			return r
		}
	}
	return object.Resource{GVK: key.GVK}
}

// optional reports whether the engine runs without a declaring resource.
func optional(r object.Resource) bool {
	kind, _ := hook.DescriptorOf(r.GVK.Kind)
	return kind.Optional
}

// served returns nil if the API server serves a declaring resource, and otherwise the reason.
func (s *Supervisor) served(r object.Resource) error {
	_, err := s.Discovery.Resource(r.GVK.GroupVersion().String(), r.Plural)
	return err
}

// awaitCRDs waits until the API server serves the declaring resources that are not optional. It
// returns false if ctx ends before.
func (s *Supervisor) awaitCRDs(ctx context.Context) bool {
	for {
		changed := s.Discovery.Changed()
		missing := slices.IndexFunc(kinds, func(r object.Resource) bool { return !optional(r) && s.served(r) != nil })
		if missing < 0 {
			return true
		}
		klog.FromContext(ctx).Info("waiting for a CustomResourceDefinition to be installed", "resource",
			kinds[missing].String())
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// awaitedKinds holds the optional declaring resources that could not be watched at the start, each
// with its handle; nil as long as it still cannot be watched. The zero value is empty. It is safe
// for concurrent use.
type awaitedKinds struct {
	mu      sync.Mutex // guards handles
	handles map[object.Resource]*cache.Handle
}

func (a *awaitedKinds) set(r object.Resource, h *cache.Handle) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.handles == nil {
		a.handles = map[object.Resource]*cache.Handle{}
	}
	a.handles[r] = h
}

func (a *awaitedKinds) get(r object.Resource) *cache.Handle {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handles[r]
}

// waits reports whether a resource is one of them and still cannot be watched.
func (a *awaitedKinds) waits(r object.Resource) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok := a.handles[r]
	return ok && h == nil
}

// without returns the resources that are watched.
func (a *awaitedKinds) without(all []object.Resource) []object.Resource {
	return slices.DeleteFunc(slices.Clone(all), a.waits)
}

// chooseKinds begins to watch the optional declaring resources, and notes those that cannot be
// watched. The others stay watched until release is called.
func (s *Supervisor) chooseKinds(ctx context.Context) (release func()) {
	held := cache.Held{}
	for _, r := range kinds {
		if !optional(r) {
			continue
		}
		handle, err := s.acquireKind(ctx, r)
		if err != nil {
			klog.FromContext(ctx).Info("controllers of this kind start when their objects can be watched",
				"resource", r.String(), "problem", err.Error())
			s.awaited.set(r, nil)
			continue
		}
		held[r] = handle
	}
	return held.Release
}

func (s *Supervisor) acquireKind(ctx context.Context, r object.Resource) (*cache.Handle, error) {
	if err := s.served(r); err != nil {
		return nil, err
	}
	return s.Cache.Acquire(ctx, r)
}

// kindRetry is the time between two attempts to watch a declaring resource that the API server
// serves.
const kindRetry = 15 * time.Second

// awaitKind returns a source that watches an optional declaring resource as soon as it can.
func (s *Supervisor) awaitKind(r object.Resource) loop.Source[object.Ref] {
	return func(ctx context.Context, enqueue loop.Enqueue[object.Ref]) error {
		handle := s.untilAcquired(ctx, r)
		if handle == nil {
			return nil
		}
		defer handle.Release()
		s.awaited.set(r, handle)
		klog.FromContext(ctx).Info("controllers of this kind can start", "resource", r.String())
		defer handle.Subscribe(func(e cache.Event) { enqueueDeclaring(enqueue, e) })()
		<-ctx.Done()
		return nil
	}
}

// untilAcquired returns the handle of a declaring resource once it can be watched; nil if ctx ends
// before.
func (s *Supervisor) untilAcquired(ctx context.Context, r object.Resource) *cache.Handle {
	last := ""
	for {
		changed := s.Discovery.Changed()
		handle, err := s.acquireKind(ctx, r)
		if err == nil || ctx.Err() != nil {
			return handle
		}
		if s.served(r) == nil && err.Error() != last {
			last = err.Error()
			klog.FromContext(ctx).Error(err, "controllers of this kind cannot start", "resource", r.String())
		}
		timer := s.Clock.NewTimer(kindRetry)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

func enqueueDeclaring(enqueue loop.Enqueue[object.Ref], e cache.Event) {
	o := e.New
	if o == nil {
		o = e.Old
	}
	cause := queue.Cause{Kind: queue.CauseObject, Ref: o.Ref(), ResourceVersion: o.ResourceVersion()}
	enqueue(o.Ref(), queue.User, cause)
}

// view reads the declaring objects of one kind.
func (s *Supervisor) view(r object.Resource) (view.View, error) {
	if handle := s.awaited.get(r); handle != nil {
		return handle.View()
	}
	return s.reader.View(r)
}

// declaring returns a declaring object. It returns nil if the object does not exist, also because
// the API server does not serve its optional kind. The error is a *view.Error if that is not known.
func (s *Supervisor) declaring(key object.Ref) (*object.Object, error) {
	r := resourceOf(key)
	v, err := s.view(r)
	if err == nil {
		return v.Get("", key.Name), nil
	}
	var missing *discovery.NotFoundError
	if optional(r) && errors.As(s.served(r), &missing) {
		return nil, nil
	}
	return nil, err
}
