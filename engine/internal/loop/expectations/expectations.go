// Package expectations lets a reconciler read its own writes (KEP-5647): a Recorder takes the
// writes of one reconcile from its context, and reports whether the views show them.
//
// Package act records all writes that go through it. Package loop puts a Recorder
// into the context of each reconcile, and runs a key only when the views show what its last
// reconcile has written. The package reads views and knows neither. A Recorder is safe for
// concurrent use, because a reconcile writes in parallel.
package expectations

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Recorder holds the writes that the views have not shown yet. The zero value is empty.
type Recorder struct {
	mu      sync.Mutex // guards the fields below
	pending []expectation
	// total is the number of all recorded writes.
	total int
}

// expectation is one write.
type expectation struct {
	resource object.Resource
	// resourceVersion is the written one, or the one that a refused write has read; empty after a
	// delete, which is met when the object uid is gone or being deleted.
	resourceVersion string
	ref             object.Ref
	uid             types.UID
	// refused reports that the API server has refused the write, because the object has changed: it
	// is met when the view shows another state of it.
	refused bool
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

// Refused records that the API server has refused a write, because the object is no longer at the
// resource version that the writer has read. It does not count as a write.
func Refused(ctx context.Context, r object.Resource, ref object.Ref, uid types.UID, resourceVersion string) {
	record(ctx, expectation{resource: r, resourceVersion: resourceVersion, ref: ref, uid: uid, refused: true})
}

func record(ctx context.Context, e expectation) {
	r, ok := ctx.Value(key{}).(*Recorder)
	if !ok { // no reconcile waits for the write
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, e)
	if !e.refused {
		r.total++
	}
}

// Total returns the number of writes that the Recorder of a context has recorded.
func Total(ctx context.Context) int {
	r, ok := ctx.Value(key{}).(*Recorder)
	if !ok {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Len is the number of writes that were not met when Met was last called.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

// OnlyRefused reports whether all writes that were not met when Met was last called are refused
// ones.
func (r *Recorder) OnlyRefused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.pending, func(e expectation) bool { return !e.refused })
}

// Met reports whether the views show all writes, and a newer state of all refused ones.
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
	present := v.Get(e.ref.Namespace, e.ref.Name)
	switch another := present == nil || present.UID() != e.uid; {
	case e.refused:
		return v.AtLeast(e.resourceVersion) && (another || present.ResourceVersion() != e.resourceVersion)
	case e.resourceVersion != "":
		return v.AtLeast(e.resourceVersion)
	default:
		return another || present.Deleting()
	}
}

// isUnwatched reports whether the resource has no watch, so that there is no view to wait for. A
// view that is unknown for another reason has not shown the write.
func isUnwatched(err error) bool {
	var unknown *view.Error
	return errors.As(err, &unknown) && unknown.State == view.Unwatched
}
