package actor

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
)

// Object is an API object as a Go value.
type Object = controller.Object

// Actor drives objects of type T to their desired state.
type Actor[T Object] interface {
	// Observe compares the actual state with the desired one and returns the next Action; nil if the
	// desired state is reached. It may change the status of ctx.Target, which is then written.
	//
	// After an Action, Observe is called again; after nil, when the object or anything that was read
	// through ctx has changed. It is not called while a dependency is not met.
	Observe(ctx Context[T]) (*Action[T], error)
	// Finalize cleans up after an object that is being deleted, and reports whether it is done. The
	// object disappears afterwards. If it is not done, Finalize is called again when anything that it
	// has read through ctx has changed, or after a time that it names (Context.RequeueAfter).
	//
	// It is called when no other object depends on the object (Dependent). It may be called again
	// after it was done, so it must accept that nothing is left to clean up.
	Finalize(ctx Context[T]) (done bool, err error)
}

// Action is one step towards the desired state. Use [Do] to make one.
type Action[T Object] struct {
	// Name is the name of the span, the reason of the Event and the label of the metric, such as
	// "CreateService": a letter, then letters, digits and "_", at most 100 in all.
	Name string
	// Run carries the action out. If it fails, the object is reconciled again with backoff.
	//
	// Its context is not cancelled when the object is deleted meanwhile: an action runs to its end,
	// and Finalize follows. Creating children fails then (ErrDeleted).
	Run func(ctx Context[T]) error
}

// Do returns an [Action] that calls run.
func Do[T Object](name string, run func(ctx Context[T]) error) *Action[T] {
	return &Action[T]{Name: name, Run: run}
}

// Context is passed to each call of an [Actor]. Use it as the Reader of package controller
// (controller.Get, controller.List), and write with the functions of this package ([Create],
// [CreateOrUpdate], …) or with the methods of [controller.Runtime]. It must not be used after the
// call has returned.
type Context[T Object] struct {
	context.Context
	*controller.Runtime
	// Target is the object: a private copy. Changes of its status are written after the call, other
	// changes are not.
	Target T

	run *run[T]
}

// RequeueAfter reconciles the object again after a time, even if nothing has changed. If it is called
// several times in one reconcile, the shortest time counts. Use it for state outside of Kubernetes,
// which no watch can see.
func (c Context[T]) RequeueAfter(after time.Duration) {
	after = max(after, time.Millisecond)
	if c.run.requeueAfter == 0 || after < c.run.requeueAfter {
		c.run.requeueAfter = after
	}
}

// Dependencies returns a copy of Target in which the objects that Target passes to [Require] have
// their metadata, spec and status. A dependency that does not exist is left as it is.
//
// Use it for types that have a field for each dependency, where the API server stores only a name.
func (c Context[T]) Dependencies() (T, error) { return c.run.populated() }
