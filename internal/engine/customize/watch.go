package customize

import (
	"context"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/engine/view"
	"k8s.io/apimachinery/pkg/labels"
)

// firstListTimeout is how long a sync waits for the first list of a related resource. The watch goes on,
// and brings the parent back when it is in.
const firstListTimeout = 10 * time.Second

// watch is one related resource that is watched while a parent needs it.
type watch struct {
	users map[hook.Key]bool
	// pins counts the reads under way; ended is set when the watch is being ended.
	pins  int
	ended bool
	// late are the users that could not read: the first list was not in, or the view was stale.
	waiting map[hook.Key]bool
	// done is closed when the objects are known, or err is set; handle is set then, and stop gives
	// everything back.
	done   chan struct{}
	err    error
	handle *cache.Handle
	free   func()
}

// stop waits until the watch has begun or failed, and ends it.
func (w *watch) stop() {
	<-w.done
	if w.free != nil {
		w.free()
	}
}

// watch has a resource watched for a parent, and returns when its objects are known. If the API
// server is known not to list them for now it fails at once, so that a resource in trouble does not
// keep workers. The watch is pinned, with an error, too.
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

// use enters a parent among those who need a watch, pins the watch, and begins one if there is
// none.
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

// hasBegun reports whether a watch has begun or failed; a parent for which it has not is late.
func (c *Customizer) hasBegun(w *watch, key hook.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !w.begun() {
		w.waiting[key] = true
	}
	return w.begun()
}

// enqueueWaiting brings the parents to the queue that were late, once their objects are known. After a
// failure they come back by themselves.
func (c *Customizer) enqueueWaiting(w *watch) {
	c.mu.Lock()
	waiting := w.waiting
	w.waiting = map[hook.Key]bool{}
	c.mu.Unlock()
	if w.err != nil {
		return
	}
	for key := range waiting {
		c.Enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseRelated, At: c.Clock.Now()})
	}
}

// begin starts a watch. Its events are heard before the first sync reads, so that none is lost.
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
	w.handle, w.free = handle, func() {
		ignore()
		silence()
		handle.Release()
		if r.GVK == namespaceKind {
			c.labels.forget()
		}
	}
}

// removeUser takes a parent off a watch. The caller holds the lock.
func (c *Customizer) removeUser(r object.Resource, w *watch, key hook.Key) {
	delete(w.users, key)
	delete(w.waiting, key)
	c.endUnused(r, w)
}

// endUnused ends a watch that no parent needs and no read pins. The caller holds the lock.
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

// handle brings the parents to the queue whose rules an object meets, or met before the event.
func (c *Customizer) handle(e cache.Event) {
	isNamespace := e.Resource.GVK == namespaceKind
	if isNamespace {
		c.labels.set(e)
	}
	if e.Initial {
		return
	}
	var keys []hook.Key
	for _, o := range []*object.Object{e.Old, e.New} {
		if o != nil {
			keys = append(keys, c.index.Match(o, c.labels.of)...)
		}
	}
	if isNamespace {
		keys = append(keys, c.index.Moved(labelsOf(e.Old), labelsOf(e.New))...)
	}
	current := e.New
	if current == nil {
		current = e.Old
	}
	for _, key := range keys {
		c.Enqueue(key, queue.Child, queue.Cause{
			Kind: queue.CauseRelated, Ref: current.Ref(), ResourceVersion: current.ResourceVersion(), At: c.Clock.Now(),
		})
	}
}

func labelsOf(o *object.Object) labels.Set {
	if o == nil {
		return nil
	}
	return o.Labels()
}

// Follow has the rules looked at again when the API server begins or ceases to serve a resource
// that they name. It returns with ctx's error.
func (c *Customizer) Follow(ctx context.Context) error {
	for {
		changed := c.Discovery.Changed()
		for _, key := range c.outdated() {
			c.Invalidate(key)
			c.Enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseRelated, At: c.Clock.Now()})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// outdated lists the parents one of whose resources is served now and was not, or is no more.
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
