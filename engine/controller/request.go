package controller

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
)

// Reconciler brings one object to its desired state. Pass it to [Controller.Reconciler].
type Reconciler[T Object] interface {
	// Reconcile is called for a key when its object changes, when an object changes that an earlier
	// call has read, and when a mapper or a source names the key. It should compare the desired state
	// with the actual one and not rely on what has changed. After an error it is called again, with
	// backoff.
	Reconcile(ctx context.Context, req *Request[T]) (Result, error)
}

// ReconcileFunc is a function that is a [Reconciler].
type ReconcileFunc[T Object] func(ctx context.Context, req *Request[T]) (Result, error)

// Reconcile implements Reconciler.
func (f ReconcileFunc[T]) Reconcile(ctx context.Context, req *Request[T]) (Result, error) {
	return f(ctx, req)
}

// Request is passed to one call of a [Reconciler]. Use its [Runtime] to read and write.
type Request[T Object] struct {
	Key Key
	// Object is a private copy of the object, which may be changed. It is nil if the object does not
	// exist.
	Object T
	// Causes tells why the key is reconciled. If there are many reasons, it has the first and the last
	// few. It is for logs.
	Causes []queue.Cause
	*Runtime
}

// Result tells when to reconcile the key again if nothing changes. The zero value waits for a
// change.
type Result struct {
	// RequeueAfter is the time until the next reconcile. 0 means none.
	RequeueAfter time.Duration
	// Pending reports that the object has not reached its desired state, and that the reconciler waits
	// for something to change. The trace of the object's change stays open until then.
	Pending bool
}
