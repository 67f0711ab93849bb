// Package expectations lets a reconciler read its own writes (KEP-5647): a Recorder takes the
// writes of one reconcile from its context, and reports whether the views show them.
//
// Package act records all writes that go through it. Package controller puts a Recorder
// into the context of each reconcile, and runs a key only when the views show what its last
// reconcile has written. The package reads views and knows neither. A Recorder is safe for
// concurrent use, because a reconcile writes in parallel.
package expectations

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"k8s.io/apimachinery/pkg/types"
)

// Recorder holds the writes that the views have not shown yet. The zero value is empty.
type Recorder struct {
	mu      sync.Mutex // guards pending
	pending []expectation
}

// expectation is one write.
type expectation struct {
	resource object.Resource
	// resourceVersion is the written one; empty after a delete, which is met when the object uid is
	// gone or being deleted.
	resourceVersion string
	ref             object.Ref
	uid             types.UID
}

// key is the context's key of the Recorder.
type key struct{}

// NewContext returns a context in which writes are recorded by r.
func NewContext(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, key{}, r)
}

// Written records that an object was written, with the API server's answer.
func Written(ctx context.Context, r object.Resource, o *object.Object) {
	record(ctx, expectation{resource: r, resourceVersion: o.ResourceVersion(), ref: o.Ref(), uid: o.UID()})
}

// Deleted records that the API server has accepted the deletion of an object.
func Deleted(ctx context.Context, r object.Resource, ref object.Ref, uid types.UID) {
	record(ctx, expectation{resource: r, ref: ref, uid: uid})
}

func record(ctx context.Context, e expectation) {
	r, ok := ctx.Value(key{}).(*Recorder)
	if !ok { // no reconcile waits for the write
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, e)
}

// Len is the number of writes that were not met when Met was last called.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

// Met reports whether the views show all writes.
func (r *Recorder) Met(reader view.Reader) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = slices.DeleteFunc(r.pending, func(e expectation) bool { return e.met(reader) })
	return len(r.pending) == 0
}

func (e expectation) met(reader view.Reader) bool {
	v, err := reader.View(e.resource)
	if err != nil {
		return isUnwatched(err)
	}
	if e.resourceVersion != "" {
		return v.AtLeast(e.resourceVersion)
	}
	present := v.Get(e.ref.Namespace, e.ref.Name)
	return present == nil || present.UID() != e.uid || present.Deleting()
}

// isUnwatched reports whether the resource has no watch, so that there is no view to wait for. A
// view that is unknown for another reason has not shown the write.
func isUnwatched(err error) bool {
	var unknown *view.Error
	return errors.As(err, &unknown) && unknown.State == view.Unwatched
}
