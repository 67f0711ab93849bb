package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// gone removes a controller's finalizer from all its parents after its declaring object was
// deleted: otherwise they could never be deleted. The controller has been stopped.
func (s *Supervisor) gone(ctx context.Context, key object.Ref) error {
	last, err := s.lastKnown(ctx, key)
	if err != nil {
		return err
	}
	if last != nil {
		if err := s.letGo(ctx, last.Finalizer, last.Resources); err != nil {
			return err
		}
		if last.recorded {
			if err := s.Finalizers.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
	return nil
}

// moved does the same for resources that are no longer parent resources, and records the new ones.
// It must succeed before the controller adds its finalizer to a parent.
func (s *Supervisor) moved(ctx context.Context, key object.Ref, c *config) error {
	before, err := s.lastKnown(ctx, key)
	if err != nil {
		return err
	}
	now := &parents{FinalizerRecord: FinalizerRecord{Finalizer: c.finalizer}}
	for _, r := range c.found.parents {
		now.Resources = append(now.Resources, ParentResource{APIVersion: r.GVK.GroupVersion().String(), Resource: r.Plural})
	}
	if before != nil {
		now.recorded = before.recorded
		left := slices.DeleteFunc(slices.Clone(before.Resources), func(r ParentResource) bool {
			return slices.ContainsFunc(now.Resources, r.sameObjects)
		})
		if err := s.letGo(ctx, before.Finalizer, left); err != nil {
			return err
		}
	}
	if err := s.record(ctx, key, c, before, now); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = now
	return nil
}

// record stores the parent resources of a controller that has, or had, a finalize hook, before it
// adds its finalizer to a parent.
func (s *Supervisor) record(ctx context.Context, key object.Ref, c *config, before, now *parents) error {
	wanted := c.hooks[hook.Finalize] != nil || now.recorded
	if s.Finalizers == nil || !wanted || now.recorded && slices.Equal(before.Resources, now.Resources) {
		return nil
	}
	err := s.Finalizers.Store(ctx, key, now.FinalizerRecord)
	if apierrors.IsForbidden(err) {
		s.Events.Warning(
			ctx,
			c.object,
			"FinalizerNotRecorded",
			fmt.Sprintf("If this controller is deleted or gets other parents while Hookloop "+
				"does not run, its finalizer stays on the parents, because Hookloop may not write its record: %v", err),
		)
		return nil
	}
	if err != nil {
		return fmt.Errorf("record of finalizers: %w", err)
	}
	now.recorded = true
	return nil
}

// parents describes the objects that may have a controller's finalizer.
type parents struct {
	FinalizerRecord
	// recorded reports whether it outlives the process.
	recorded bool
}

// lastKnown returns the parents of a controller, from this process or else from the record; nil if
// neither has them.
func (s *Supervisor) lastKnown(ctx context.Context, key object.Ref) (*parents, error) {
	s.mu.Lock()
	known := s.known[key]
	s.mu.Unlock()
	if known != nil || s.Finalizers == nil {
		return known, nil
	}
	all, err := s.Finalizers.Load(ctx)
	if apierrors.IsForbidden(err) { // then nothing can have been recorded
		klog.FromContext(ctx).Info("the record of finalizers may not be read", "error", err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record of finalizers: %w", err)
	}
	if r, ok := all[key]; ok {
		return &parents{FinalizerRecord: r, recorded: true}, nil
	}
	return nil, nil
}

// recorded is a source: it enqueues the controllers of the record once. Those without a declaring
// object have no other event.
func (s *Supervisor) recorded(ctx context.Context, enqueue loop.Enqueue[object.Ref]) error {
	if s.Finalizers != nil {
		all, err := s.Finalizers.Load(ctx)
		if err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("record of finalizers: %w", err)
		}
		for key := range all {
			enqueue(key, queue.Resync, queue.Cause{Kind: queue.CauseInitial})
		}
	}
	<-ctx.Done()
	return nil
}

// letGo removes a controller's finalizer from the objects of parent resources. A resource that is
// not served in any version has no objects; if that is not known, it is an error.
func (s *Supervisor) letGo(ctx context.Context, finalizer string, resources []ParentResource) error {
	var errs []error
	for _, named := range resources {
		r, err := s.Discovery.Resource(named.APIVersion, named.Resource)
		var missing *discovery.NotFoundError
		if errors.As(err, &missing) {
			similar, ok := s.Discovery.Similar(named.APIVersion, named.Resource)
			if !ok {
				continue
			}
			r = similar
			err = nil
		}
		if err != nil {
			errs = append(errs,
				fmt.Errorf("finalizer %s stays on %s of %s: %w", finalizer, named.Resource, named.APIVersion, err))
			continue
		}
		errs = append(errs, s.removeFinalizers(ctx, r, finalizer))
	}
	return errors.Join(errs...)
}

// listTimeout bounds the listing of one resource's objects, which is retried with backoff.
const listTimeout = 10 * time.Second

func (s *Supervisor) removeFinalizers(ctx context.Context, r object.Resource, finalizer string) error {
	wait, cancel := context.WithTimeout(ctx, listTimeout)
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
				Verb:      plan.RemoveFinalizer,
				Resource:  r,
				Ref:       o.Ref(),
				UID:       o.UID(),
				Finalizer: finalizer,
				Why:       "its controller was deleted",
			})
		}
	}
	if len(actions) == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("the controller is gone: its finalizer is removed", "finalizer", finalizer,
		"resource", r.String(), "objects", len(actions))
	var errs []error
	for _, outcome := range s.Writer.All(ctx, actions) {
		errs = append(errs, outcome.Err) // a stale one, too: the next try lists anew
	}
	return errors.Join(errs...)
}
