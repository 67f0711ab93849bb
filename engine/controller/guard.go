package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/klog/v2"
)

const (
	// maxCauses is the largest number of causes of failures that are logged.
	maxCauses = 100
	// failureInterval is the shortest time between two reconciles of all keys after failures, and the
	// first wait before the objects that failed are mapped again. It doubles up to
	// maxFailureInterval.
	failureInterval    = time.Second
	maxFailureInterval = 30 * time.Second
	// maxUnmapped is the largest number of objects that are mapped again. Beyond it, all objects of
	// the type are.
	maxUnmapped = 1_000
)

// mapperFailures are the failures of a controller's mappers. It is safe for concurrent use.
type mapperFailures struct {
	// failed has a value if a mapper has failed since all keys were enqueued.
	failed chan struct{}

	mu sync.Mutex // guards the fields below
	// causes are the failures that are known, and unlogged those of them that are not logged yet.
	causes   map[string]struct{}
	unlogged []mapperFailure
	// unmapped are the objects that mappers have failed for, with these mappers.
	unmapped map[unmapped]mapFunc
}

// unmapped is an object that a mapper has failed for, or all objects if name is empty.
type unmapped struct {
	watch           int
	resource        object.Resource
	namespace, name string
}

func newMapperFailures() *mapperFailures {
	return &mapperFailures{failed: make(chan struct{}, 1), causes: map[string]struct{}{}, unmapped: map[unmapped]mapFunc{}}
}

func (f *mapperFailures) isUnmapped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.unmapped) > 0
}

// keep has an object mapped again.
func (f *mapperFailures) keep(u unmapped, by mapFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unmapped) >= maxUnmapped {
		u.namespace = ""
		u.name = ""
	}
	f.unmapped[u] = by
}

// mapAgain maps the objects that mappers have failed for in their present state.
func (f *mapperFailures) mapAgain(ctx context.Context, r view.Reader, enqueue loop.Enqueue[Key]) {
	f.mu.Lock()
	again := maps.Clone(f.unmapped)
	clear(f.unmapped)
	f.mu.Unlock()
	for u, by := range again {
		if err := mapOne(ctx, r, u, by, enqueue); err != nil {
			f.keep(u, by)
		}
	}
}

// mapOne maps one object, or all. An object that does not exist any more has no keys but those that
// are enqueued already.
func mapOne(ctx context.Context, r view.Reader, u unmapped, by mapFunc, enqueue loop.Enqueue[Key]) error {
	v, err := r.View(u.resource)
	if err != nil {
		return err
	}
	l := v.Named(u.namespace, u.name)
	if u.name == "" {
		l = v.List("")
	}
	var faults []error
	for o := range l.All() {
		keys, err := mapSafely(ctx, by, cache.Event{Resource: u.resource, New: o})
		faults = append(faults, err)
		for _, key := range keys {
			enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseTrigger, Reason: "a mapper has failed before"})
		}
	}
	return errors.Join(faults...)
}

// mapperFailure is the failure of a mapper for an object.
type mapperFailure struct {
	of  object.Ref
	err error
}

// report notes that a mapper has failed for an object.
func (f *mapperFailures) report(failure mapperFailure) {
	f.note(failure)
	select {
	case f.failed <- struct{}{}:
	default: // noted already
	}
}

// note has the failure logged if its cause is new. Beyond maxCauses no cause is.
func (f *mapperFailures) note(failure mapperFailure) {
	cause := object.KindString(failure.of.GVK) + " " + failure.err.Error()
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.causes[cause]; known || len(f.causes) >= maxCauses {
		return
	}
	f.causes[cause] = struct{}{}
	f.unlogged = append(f.unlogged, failure)
}

// log logs the failures since the last call, each cause once.
func (f *mapperFailures) log(to klog.Logger) {
	f.mu.Lock()
	unlogged := f.unlogged
	f.unlogged = nil
	f.mu.Unlock()
	for _, failure := range unlogged {
		keysAndValues := []any{"object", failure.of.String()}
		var panicked *mapperPanic
		if errors.As(failure.err, &panicked) {
			keysAndValues = append(keysAndValues, "stack", panicked.stack)
		}
		to.Error(failure.err, "mapper failed: all keys are reconciled", keysAndValues...)
	}
}

// guarded returns a mapper's function for the loop. If it fails or panics, all keys are enqueued
// beside those that it returns, and the object is mapped again: the event must not be lost. watch
// is different for each mapper.
func (b *built[T]) guarded(watch int, r object.Resource, f mapFunc) mapper.Func[Key] {
	return func(before, now *object.Object) []Key {
		e := cache.Event{Resource: r, Old: before, New: now}
		keys, err := mapSafely(context.Background(), f, e)
		if err != nil {
			o := newest(e)
			b.failures.keep(unmapped{watch, r, o.Namespace(), o.Name()}, f)
			b.failures.report(mapperFailure{o.Ref(), fmt.Errorf("controller %q: %w", b.name, err)})
		}
		return keys
	}
}

// afterFailures is the loop's source of keys after failures of mappers: all keys immediately, and
// those of the objects that failed as soon as their mapper succeeds.
func (b *built[T]) afterFailures(ctx context.Context, enqueue loop.Enqueue[Key]) error {
	wait := failureInterval
	for {
		timer := b.host.Clock.NewTimer(wait)
		retry := timer.C()
		if !b.failures.isUnmapped() {
			retry = nil
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-b.failures.failed:
			b.failures.log(klog.FromContext(ctx))
			wait = failureInterval
			for b.enqueueAll(enqueue) != nil { // the primary type cannot be read now
				if !sleep.For(ctx.Done(), b.host.Clock, failureInterval) {
					return nil
				}
			}
			if !sleep.For(ctx.Done(), b.host.Clock, failureInterval) {
				return nil
			}
		case <-retry:
			b.failures.mapAgain(ctx, b.run.Reader(), enqueue)
			wait = min(2*wait, maxFailureInterval)
		}
		timer.Stop()
	}
}

// enqueueAll enqueues the keys of all objects of the primary type, and all keys with references, at
// the lowest priority.
func (b *built[T]) enqueueAll(enqueue loop.Enqueue[Key]) error {
	const reason = "a mapper has failed"
	for _, key := range b.references.Keys() {
		enqueue(key, queue.Resync, queue.Cause{Kind: queue.CauseTrigger, Reason: reason})
	}
	_, err := b.run.Trigger(nil, queue.Resync, reason)
	return err
}

// mapperPanic is a panic of a mapper.
type mapperPanic struct{ cause, stack string }

func (e *mapperPanic) Error() string { return "panic in a mapper: " + e.cause }

// mapSafely calls a mapper. A panic is an error.
func mapSafely(ctx context.Context, f mapFunc, e cache.Event) (keys []Key, err error) {
	defer recoverMapper(&err)
	return f(ctx, e)
}

// recoverMapper must be deferred. It turns a panic into an error.
func recoverMapper(err *error) {
	if cause := recover(); cause != nil {
		*err = &mapperPanic{fmt.Sprint(cause), string(debug.Stack())}
	}
}
