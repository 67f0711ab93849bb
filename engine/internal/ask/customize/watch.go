package customize

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// firstListTimeout is the longest time for which a sync waits for the first list of a related
// resource. After it the watch continues, and enqueues the parent when the list is complete.
const firstListTimeout = 10 * time.Second

// watch is the watch of one related resource. It lasts while a parent needs it.
type watch struct {
	users map[hook.Key]bool
	// pins counts the reads in progress; ended is set when the end of the watch begins.
	pins  int
	ended bool
	// waiting has the users that could not read: the first list was not complete, or the view was
	// stale.
	waiting map[hook.Key]bool
	// done is closed when the objects are known or err is set. From then on handle is set if err is
	// nil, and free releases everything.
	done   chan struct{}
	err    error
	handle *cache.Handle
	free   func()
}

// stop waits until the watch has begun or failed, then ends it.
func (w *watch) stop() {
	<-w.done
	if w.free != nil {
		w.free()
	}
}

// watch watches a resource for a parent, and returns when its objects are known. It fails
// immediately if the last list of the resource failed, so that such a resource does not block
// workers. The returned watch is pinned, also with an error.
func (c *Customizer) watch(ctx context.Context, r object.Resource, key hook.Key) (*watch, error) {
	trouble := c.Cache.LastError(r)
	w := c.use(r, key)
	if trouble == nil {
		timer := c.Clock.NewTimer(firstListTimeout)
		defer timer.Stop()
		select {
		case <-w.done:
			return w, w.err
		case <-ctx.Done():
			return w, ctx.Err()
		case <-timer.C():
			trouble = c.Cache.LastError(r)
		}
	}
	if c.hasBegun(w, key) {
		return w, w.err
	}
	return w, &view.Error{Resource: r, State: view.Filling, Err: trouble}
}

// use adds a parent to the users of a watch and pins it. It begins the watch if necessary.
func (c *Customizer) use(r object.Resource, key hook.Key) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.watches[r]
	if !ok || w.failed() {
		w = &watch{users: map[hook.Key]bool{}, waiting: map[hook.Key]bool{}, done: make(chan struct{})}
		c.watches[r] = w
		c.tasks.Go(func() {
			c.begin(r, w)
			c.enqueueWaiting(w)
		})
	}
	w.users[key] = true
	w.pins++
	return w
}

// begun reports whether the watch has begun or failed.
func (w *watch) begun() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// failed reports whether the watch could not begin.
func (w *watch) failed() bool { return w.begun() && w.err != nil }

// hasBegun reports whether a watch has begun or failed. If not, it adds the parent to the waiting
// ones.
func (c *Customizer) hasBegun(w *watch, key hook.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !w.begun() {
		w.waiting[key] = true
	}
	return w.begun()
}

// enqueueWaiting enqueues the waiting parents when the objects are known. After a failure their own
// backoff enqueues them.
func (c *Customizer) enqueueWaiting(w *watch) {
	c.mu.Lock()
	waiting := w.waiting
	w.waiting = map[hook.Key]bool{}
	c.mu.Unlock()
	if w.err != nil {
		return
	}
	for key := range waiting {
		c.Enqueue(key, nil)
	}
}

// begin starts a watch. It subscribes to the events before the first sync reads, so that none is
// lost.
func (c *Customizer) begin(r object.Resource, w *watch) {
	defer close(w.done)
	handle, err := c.Cache.Acquire(c.root, r)
	if err != nil {
		w.err = err
		return
	}
	silence := handle.Subscribe(c.handle)
	ignore := handle.Follow(func(err error) {
		if err == nil {
			c.enqueueWaiting(w)
		}
		c.ViewsChanged()
	})
	w.handle = handle
	w.free = func() {
		ignore()
		silence()
		handle.Release()
		if r.GVK == namespaceKind {
			c.labels.forget()
		}
	}
}

// removeUser removes a parent from the users of a watch. The caller holds the lock.
func (c *Customizer) removeUser(r object.Resource, w *watch, key hook.Key) {
	delete(w.users, key)
	delete(w.waiting, key)
	c.endUnused(r, w)
}

// endUnused ends a watch without users and pins. The caller holds the lock.
func (c *Customizer) endUnused(r object.Resource, w *watch) {
	if len(w.users) > 0 || w.pins > 0 || w.ended {
		return
	}
	w.ended = true
	if c.watches[r] == w {
		delete(c.watches, r)
	}
	c.tasks.Go(w.stop)
}

// handle enqueues the parents with a rule that selects an object, or selected it before the event.
// An update of the resourceVersion alone is no event.
func (c *Customizer) handle(e cache.Event) {
	isNamespace := e.Resource.GVK == namespaceKind
	if isNamespace {
		c.labels.set(e)
	}
	if e.Initial || e.Old != nil && e.New != nil && object.EqualButVersion(e.Old, e.New) {
		return
	}
	var keys []hook.Key
	if e.New != nil {
		keys = c.index.Match(e.New, c.labels.of)
	}
	if e.Old != nil && (e.New == nil || !maps.Equal(e.Old.Labels(), e.New.Labels())) { // else it matches the same
		keys = append(keys, c.index.Match(e.Old, c.labels.of)...)
	}
	if isNamespace {
		keys = append(keys, c.index.Moved(labelsOf(e.Old), labelsOf(e.New))...)
	}
	current := e.New
	if current == nil {
		current = e.Old
	}
	for _, key := range keys {
		c.Enqueue(key, current)
	}
}

func labelsOf(o *object.Object) labels.Set {
	if o == nil {
		return nil
	}
	return o.Labels()
}

// Follow invalidates rules when the API server begins or ceases to serve a resource that they name.
// It returns the error of ctx when that is done.
func (c *Customizer) Follow(ctx context.Context) error {
	for {
		changed := c.Discovery.Changed()
		for _, key := range c.outdated() {
			c.Invalidate(key)
			c.Enqueue(key, nil)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// outdated returns the parents with a rule about a resource that is served now and was not before,
// or the reverse.
func (c *Customizer) outdated() []hook.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []hook.Key
	for key, a := range c.parents {
		if slices.ContainsFunc(a.all(), func(each *ruleSet) bool { return slices.ContainsFunc(each.groups, c.moved) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (c *Customizer) moved(g group) bool {
	now, err := c.group(hook.RelatedRule{Name: g.name, APIVersion: g.apiVersion, Resource: g.plural})
	return err != nil || now.resource != g.resource
}
