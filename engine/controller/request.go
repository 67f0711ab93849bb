package controller

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
)

// Reconciler brings one object to its desired state.
type Reconciler[T Object] interface {
	// Reconcile is called for a key after an event of its object, of an object that it has read, or
	// by a mapper or a source. After an error it is called again with backoff.
	Reconcile(ctx context.Context, req *Request[T]) (Result, error)
}

// ReconcileFunc is a Reconciler that is a function.
type ReconcileFunc[T Object] func(ctx context.Context, req *Request[T]) (Result, error)

// Reconcile implements Reconciler.
func (f ReconcileFunc[T]) Reconcile(ctx context.Context, req *Request[T]) (Result, error) {
	return f(ctx, req)
}

// Request is one reconcile of one key.
type Request[T Object] struct {
	Key Key
	// Object is a private copy of the key's object; nil if it does not exist.
	Object T
	// Causes are the first and the last few events and other reasons for the reconcile.
	Causes []queue.Cause
	*Runtime
}

// Result controls when a key is reconciled again without an event. The zero value waits for an
// event.
type Result struct {
	// RequeueAfter is the time until the next reconcile; 0 for none.
	RequeueAfter time.Duration
	// Pending reports that the object has not reached its desired state: the reconciler waits for an
	// event. The trace of the object's change stays open meanwhile.
	Pending bool
}
