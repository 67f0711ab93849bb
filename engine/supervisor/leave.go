package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/plan"
	"k8s.io/klog/v2"
)

// gone takes a controller's finalizer off all its parents after its declaring object was deleted: nobody else would, and they could
// never be deleted. The controller has been stopped.
func (s *Supervisor) gone(ctx context.Context, key object.Key) error {
	if last := s.lastKnown(key); last != nil {
		if err := s.letGo(ctx, last, last.resources); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
	return nil
}

// moved does the same for resources that are no longer the parents', and notes what the declaring object says now.
func (s *Supervisor) moved(ctx context.Context, key object.Key, now *config) error {
	if before := s.lastKnown(key); before != nil {
		left := slices.DeleteFunc(slices.Clone(before.resources), func(r object.Resource) bool { return slices.Contains(now.resources, r) })
		if err := s.letGo(ctx, before, left); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = now
	return nil
}

func (s *Supervisor) lastKnown(key object.Key) *config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[key]
}

// letGo takes a controller's finalizer off the objects of some of its parents' resources. A resource that is no longer served has none.
func (s *Supervisor) letGo(ctx context.Context, c *config, resources []object.Resource) error {
	var errs []error
	for _, r := range resources {
		if _, err := s.Discovery.Resource(r.GVK.GroupVersion().String(), r.Plural); err != nil {
			continue
		}
		errs = append(errs, s.removeFinalizers(ctx, r, c.finalizer))
	}
	return errors.Join(errs...)
}

// leavePatience is how long the objects of one resource may take to be listed; then it is tried again, with backoff.
const leavePatience = 10 * time.Second

func (s *Supervisor) removeFinalizers(ctx context.Context, r object.Resource, finalizer string) error {
	wait, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	handle, err := s.Cache.Acquire(wait, r)
	if err != nil {
		return fmt.Errorf("finalizer %s stays on %s: %w", finalizer, r, err)
	}
	defer handle.Release()
	v, err := handle.View()
	if err != nil {
		return fmt.Errorf("finalizer %s stays on %s: %w", finalizer, r, err)
	}
	var actions []plan.Action
	for o := range v.List("").All() {
		if o.HasFinalizer(finalizer) {
			actions = append(actions, plan.Action{
				Verb: plan.RemoveFinalizer, Resource: r, Ref: o.Ref(), UID: o.UID(), Finalizer: finalizer, Why: "its controller was deleted",
			})
		}
	}
	if len(actions) == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("the controller is gone: its finalizer is removed", "finalizer", finalizer, "resource", r.String(), "objects", len(actions))
	var errs []error
	for _, outcome := range s.Writer.All(ctx, actions) {
		errs = append(errs, outcome.Err) // a stale one, too: the next try lists anew
	}
	return errors.Join(errs...)
}
