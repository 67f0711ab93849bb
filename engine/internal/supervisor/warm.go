package supervisor

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/internal/watch/standby"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// warm are the caches of a replica that waits to lead.
type warm struct {
	// declaring has the declaring resources, resources those of the controllers.
	declaring, resources *standby.Set
	// known reports that resources has the resources of all declared controllers.
	known atomic.Bool
}

// Warm keeps the resources in the cache that the declared controllers watch, until ctx is done. It
// follows the declarations and the served resources. It writes nothing and asks no hook, so that it
// does not know the related objects that customize hooks select. Run may be called meanwhile.
func (s *Supervisor) Warm(ctx context.Context) {
	changed := make(chan struct{}, 1)
	w := &warm{
		declaring: standby.New(standby.Config{Cache: s.Cache, Clock: s.Clock, Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}}),
		resources: standby.New(standby.Config{Cache: s.Cache, Clock: s.Clock}),
	}
	s.warm.Store(w)
	defer w.resources.Wait()
	defer w.declaring.Wait()
	for {
		discovered := s.Discovery.Changed()
		served, certain := s.servedKinds()
		w.declaring.Want(ctx, served)
		filled := w.declaring.Filled() // before they are read
		w.resources.Want(ctx, s.wanted(w, served))
		w.known.Store(certain && filled)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-discovered:
		}
	}
}

// Warmed reports whether Warm has filled the caches of all declared controllers, except for
// resources that cannot be listed at present.
func (s *Supervisor) Warmed() bool {
	w := s.warm.Load()
	return w != nil && w.declaring.Filled() && w.known.Load() && w.resources.Filled()
}

// servedKinds returns the declaring resources that the API server serves, and whether the others
// are known not to be served.
func (s *Supervisor) servedKinds() (served []object.Resource, certain bool) {
	certain = true
	for _, r := range kinds {
		err := s.served(r)
		var missing *discovery.NotFoundError
		switch {
		case err == nil:
			served = append(served, r)
		case !errors.As(err, &missing):
			certain = false
		}
	}
	return served, certain
}

// wanted returns the resources of the controllers that are declared as far as it is known.
func (s *Supervisor) wanted(w *warm, served []object.Resource) []object.Resource {
	var all []object.Resource
	for _, r := range served {
		v, err := w.declaring.View(r)
		if err != nil { // the set calls Changed when the objects are known
			continue
		}
		for o := range v.List("").All() {
			if !o.Deleting() && s.TargetSelector.Matches(labels.Set(o.Labels())) {
				all = append(all, s.resourcesOf(o)...)
			}
		}
	}
	return all
}

// resourcesOf returns the resources that the controller of a declaring object watches; none if it
// could not be started.
func (s *Supervisor) resourcesOf(o *object.Object) []object.Resource {
	c, err := s.resolve(o)
	if err != nil {
		return nil
	}
	shape, err := c.shape(c.object, &c.found)
	if err != nil {
		return nil
	}
	run := loop.New[hook.Key](c.name(), loop.Config{Clock: s.Clock}) // it is never run
	shape.Watch(run)
	return run.Resources()
}
