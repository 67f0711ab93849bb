package cluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/inspect"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/hookloop/hookloop/internal/sleep"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// ErrDeleted is returned by [Tracer.Watch] when the object has been deleted.
var ErrDeleted = errors.New("the object is deleted")

const (
	// redrawInterval is the minimum time between two reports.
	redrawInterval = 500 * time.Millisecond
	// retryInterval is how long to wait before trying again after an error. It is also how long to
	// wait before reading the last syncs again, because a sync ends after its writes.
	retryInterval = 2 * time.Second
)

// Watch calls draw with a report, and again whenever the object, an object below it or its last
// sync changes, until ctx ends. If something cannot be read, it calls draw with the error and tries
// again. Watch returns draw's error, or [ErrDeleted].
func (t *Tracer) Watch(ctx context.Context, draw func(*inspect.Report, error) error) error {
	if _, err := t.root(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	events := &events{arrived: make(chan struct{}, 1)}
	if err := t.index.follow(klog.NewContext(ctx, logr.Discard()), &following, events); err != nil {
		return err
	}
	var last *inspect.Report
	failed := false
	for {
		now, err := t.next(ctx)
		before := failed
		drawn := true
		failed = err != nil
		switch {
		case ctx.Err() != nil:
			return nil
		case apierrors.IsNotFound(err):
			return ErrDeleted
		case err != nil:
			err = draw(nil, err)
		case last == nil || before || differ(last, now):
			last = now
			err = draw(now, nil)
		default:
			drawn = false
		}
		if err != nil {
			return err
		}
		if !t.await(ctx, events, last, drawn) {
			return nil
		}
	}
}

// next makes the next report from what the index knows.
func (t *Tracer) next(ctx context.Context) (*inspect.Report, error) {
	root, err := t.root(ctx)
	if err != nil {
		return nil, err
	}
	return t.report(ctx, root)
}

// differ returns true if two reports differ in more than the times of syncs.
func differ(a, b *inspect.Report) bool {
	return !reflect.DeepEqual(timeless(a), timeless(b))
}

func timeless(r *inspect.Report) inspect.Report {
	c := *r
	c.LastSyncs = slices.Clone(c.LastSyncs)
	for i, s := range c.LastSyncs {
		c.LastSyncs[i] = lastsync.Sync{
			Controller: s.Controller, OneInput: s.OneInput, Generation: s.Generation, Result: s.Result, Failed: s.Failed,
			TraceID: s.TraceID,
		}
	}
	return c
}

// await waits for an event that concerns an object of the last report. If that report was drawn, it
// waits at most retryInterval, because a sync ends after its writes and errors pass. It returns
// false if ctx ends.
func (t *Tracer) await(ctx context.Context, events *events, last *inspect.Report, drawn bool) bool {
	if !sleep.For(ctx.Done(), clock.RealClock{}, redrawInterval) {
		return false
	}
	var again <-chan time.Time
	if drawn {
		timer := time.NewTimer(retryInterval)
		defer timer.Stop()
		again = timer.C
	}
	shown := shownBy(last)
	for !events.concern(shown) {
		select {
		case <-ctx.Done():
			return false
		case <-again:
			return true
		case <-events.arrived:
		}
	}
	return true
}

// shown holds the objects of a report.
type shown struct {
	uids map[types.UID]bool
	refs map[string]bool
}

func shownBy(r *inspect.Report) shown {
	s := shown{map[types.UID]bool{}, map[string]bool{}}
	if r == nil {
		return s
	}
	for _, n := range r.Nodes {
		s.uids[n.UID] = n.UID != ""
		s.refs[n.Kind+" "+n.Namespace+"/"+n.Name] = true
	}
	return s
}

// event says that an object has changed.
type event struct {
	ref    object.Ref
	owners []types.UID
	// all means that any object may have changed.
	all bool
}

// events collects the changes since the last report. It is safe for concurrent use.
type events struct {
	arrived chan struct{}

	mu      sync.Mutex // guards pending
	pending []event
}

func (e *events) add(added event) {
	e.mu.Lock()
	e.pending = append(e.pending, added)
	e.mu.Unlock()
	select {
	case e.arrived <- struct{}{}:
	default: // the reader has not seen the last one yet
	}
}

// concern takes the collected events, and returns true if one of them is about a shown object or
// about an object that a shown one owns.
func (e *events) concern(s shown) bool {
	e.mu.Lock()
	pending := e.pending
	e.pending = nil
	e.mu.Unlock()
	return slices.ContainsFunc(pending, func(e event) bool {
		return e.all || s.refs[e.ref.GVK.Kind+" "+e.ref.Namespace+"/"+e.ref.Name] ||
			slices.ContainsFunc(e.owners, func(owner types.UID) bool { return s.uids[owner] })
	})
}

// follow loads the index and keeps it up to date until ctx ends.
func (x *index) follow(ctx context.Context, following *sync.WaitGroup, events *events) error {
	if err := x.load(ctx); err != nil {
		return err
	}
	for _, r := range x.resources {
		version := x.listedAt(r)
		if version == "" || !r.watched {
			continue
		}
		following.Go(func() {
			for {
				x.watch(ctx, r, version, events)
				if !sleep.For(ctx.Done(), clock.RealClock{}, retryInterval) {
					return
				}
				version, _ = x.list(ctx, r)
				if version == "" {
					version = "1" // the watch reports that it is too old, or works again
				}
				events.add(event{all: true})
			}
		})
	}
	return nil
}

// watch keeps the index up to date with the changes of a resource since a version. It returns when
// ctx ends or when the version is too old.
func (x *index) watch(ctx context.Context, r resource, version string, events *events) {
	client := x.metadata.Resource(r.GroupVersionResource).Namespace(x.scope)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, watches{client})
	if err != nil {
		return
	}
	defer watcher.Stop()
	for e := range watcher.ResultChan() {
		o, ok := e.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			return // an error: the version is too old
		}
		entry := entryOf(o)
		x.apply(r.ref(o), entry, e.Type == watch.Deleted)
		events.add(event{ref: r.ref(o), owners: entry.owners})
	}
}

// watches starts watches of one resource in a namespace.
type watches struct{ metadata.ResourceInterface }

// WatchWithContext implements cache.WatcherWithContext.
func (w watches) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.Watch(ctx, options)
}

// apply updates the index after a change of an object.
func (x *index) apply(ref object.Ref, e indexed, deleted bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if deleted || len(e.owners) == 0 {
		delete(x.entries, ref)
		return
	}
	x.entries[ref] = e
}
