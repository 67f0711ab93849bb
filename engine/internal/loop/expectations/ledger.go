package expectations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// DefaultTimeout is the default time for which a read waits for a view to show own writes.
const DefaultTimeout = 30 * time.Second

// Ledger holds the writes of the whole process to tracked resources, so that each read can wait
// until the view shows all earlier ones. A write to another resource costs one atomic read, and so
// does a read while nothing is pending. A nil Ledger tracks nothing. A Ledger is safe for
// concurrent use.
type Ledger struct {
	timeout time.Duration
	// tracking is the number of tracked resources, pending that of resources with writes that no
	// read has found in the view.
	tracking, pending atomic.Int64

	mu      sync.RWMutex // guards tracked
	tracked map[object.Resource]*journal
}

// NewLedger returns an empty Ledger; timeout 0 is DefaultTimeout.
func NewLedger(timeout time.Duration) *Ledger {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return &Ledger{timeout: timeout, tracked: map[object.Resource]*journal{}}
}

// Awaiter waits for views. Await returns nil as soon as shows reports true for the resource's view,
// which it calls again after each change (cache.Held).
type Awaiter interface {
	Await(ctx context.Context, r object.Resource, shows func(view.View) bool) error
}

// NotShownError reports that a view has not shown own writes in time.
type NotShownError struct {
	Resource object.Resource
	// Waited is the time that the read waited.
	Waited time.Duration
	// ResourceVersion is the newest written one that is awaited; empty if only deletes are.
	ResourceVersion string
	// Deletes is the number of deleted objects that the view still shows.
	Deletes int
}

func (e *NotShownError) Error() string {
	text := fmt.Sprintf("the view of %s has not shown this process's own writes for %s:", e.Resource, e.Waited)
	if e.ResourceVersion != "" {
		text += " resource version " + e.ResourceVersion + " is expected"
	}
	if e.Deletes > 0 {
		if e.ResourceVersion != "" {
			text += ","
		}
		text += fmt.Sprintf(" %d deletes are expected", e.Deletes)
	}
	return text
}

// Track makes the ledger hold the writes to a resource until release is called. The views of reader
// are those of the one who tracks. Each resource is tracked until its last release.
func (l *Ledger) Track(r object.Resource, reader view.Reader) (release func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.tracked[r]
	if j == nil {
		j = &journal{resource: r, ledger: l}
		l.tracked[r] = j
		l.tracking.Add(1)
	}
	u := &user{reader}
	j.readers = append(j.readers, u)
	return sync.OnceFunc(func() { l.release(j, u) })
}

func (l *Ledger) release(j *journal, u *user) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j.readers = slices.DeleteFunc(j.readers, func(other *user) bool { return other == u })
	if len(j.readers) > 0 {
		return
	}
	delete(l.tracked, j.resource)
	l.tracking.Add(-1)
	j.drop()
}

// Written notes the API server's answer to a write.
func (l *Ledger) Written(r object.Resource, o *object.Object) {
	if removed(o) {
		l.Removed(r, o.Ref(), o.UID(), o.ResourceVersion())
		return
	}
	l.note(r, func(j *journal) { j.written(o.ResourceVersion()) })
}

// removed reports whether the answer to a write is the last state of an object that the write has
// removed, such as the removal of its last finalizer: the resourceVersion of the removal is not in
// it.
func removed(o *object.Object) bool {
	if !o.Deleting() || len(o.Finalizers()) > 0 {
		return false
	}
	grace := o.Meta().GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// Removed notes that the API server has removed an object. observed is the resourceVersion of a
// state of it that was observed before; empty if the views have shown the object.
func (l *Ledger) Removed(r object.Resource, ref object.Ref, uid types.UID, observed string) {
	l.note(r, func(j *journal) { j.removed(removal{ref: ref, uid: uid, observed: version(observed)}) })
}

// note calls f for the journals of a resource in all versions: they share resource versions and
// UIDs, but each has a watch of its own.
func (l *Ledger) note(r object.Resource, f func(*journal)) {
	if l == nil || l.tracking.Load() == 0 {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	for tracked, j := range l.tracked {
		if tracked.Plural == r.Plural && tracked.GVK.Group == r.GVK.Group {
			f(j)
		}
	}
}

// Await returns nil when the view of a resource shows all writes to it that were noted before the
// call. It returns a *NotShownError after the timeout, a *view.Error if the view cannot be read,
// and ctx's error. A resource that is not tracked is not waited for.
func (l *Ledger) Await(ctx context.Context, views Awaiter, r object.Resource) error {
	if l == nil || l.pending.Load() == 0 {
		return nil
	}
	l.mu.RLock()
	j := l.tracked[r]
	l.mu.RUnlock()
	if j == nil || !j.behind.Load() {
		return nil
	}
	return l.wait(ctx, views, j)
}

func (l *Ledger) wait(ctx context.Context, views Awaiter, j *journal) error {
	until := j.now()
	if until.unordered != "" {
		return fmt.Errorf("own writes to %s cannot be awaited: the resource version %q is not a number",
			j.resource, until.unordered)
	}
	timed, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err := views.Await(timed, j.resource, func(v view.View) bool { return j.shown(v, until) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("wait for the view of %s to show own writes: %w", j.resource, ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return j.overdue(until, l.timeout)
	}
	return err
}

// version is a resource version as a number; 0 for text that is none.
func version(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
