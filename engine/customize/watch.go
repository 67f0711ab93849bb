package customize

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"k8s.io/apimachinery/pkg/labels"
)

// patience is how long a sync waits for the first list of a related resource. The watch goes on, and brings the parent back when it is in.
const patience = 10 * time.Second

// watch is one related resource that is watched while a parent needs it.
type watch struct {
	users map[object.Key]bool
	// late are the users that did not wait any longer for the first list.
	late map[object.Key]bool
	// done is closed when the objects are known, or err is set; stop gives everything back and may be called from then on.
	done chan struct{}
	err  error
	free func()
}

// stop waits until the watch has begun or failed, and ends it.
func (w *watch) stop() {
	<-w.done
	if w.free != nil {
		w.free()
	}
}

// watch has a resource watched for a parent, and returns when its objects are known. Where the API server is known not to list them for
// now it fails at once, so that a resource in trouble does not keep workers.
func (c *Customizer) watch(ctx context.Context, r object.Resource, key object.Key) error {
	trouble := c.Cache.Trouble(r)
	w := c.use(r, key)
	if trouble == nil {
		timer := c.Clock.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-w.done:
			return w.err
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
			trouble = c.Cache.Trouble(r)
		}
	}
	if c.begun(w, key) {
		return w.err
	}
	if trouble == nil {
		return fmt.Errorf("the objects of %s are not known yet", r)
	}
	return fmt.Errorf("the objects of %s are not known yet: %w", r, trouble)
}

// use enters a parent among those who need a watch, and begins one where there is none.
func (c *Customizer) use(r object.Resource, key object.Key) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.watches[r]
	if !ok || w.failed() {
		w = &watch{users: map[object.Key]bool{}, late: map[object.Key]bool{}, done: make(chan struct{})}
		c.watches[r] = w
		c.tasks.Go(func() {
			c.begin(r, w)
			c.recall(w)
		})
	}
	w.users[key] = true
	return w
}

// begun says whether a watch has begun or failed; a parent for which it has not is late.
func (c *Customizer) begun(w *watch, key object.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.done:
		return true
	default:
		w.late[key] = true
		return false
	}
}

// recall brings the parents to the queue that were late, once their objects are known. After a failure they come back by themselves.
func (c *Customizer) recall(w *watch) {
	c.mu.Lock()
	late := w.late
	w.late = nil
	c.mu.Unlock()
	if w.err != nil {
		return
	}
	for key := range late {
		c.Enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseRelated, At: c.Clock.Now()})
	}
}

func (w *watch) failed() bool {
	select {
	case <-w.done:
		return w.err != nil
	default:
		return false
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
	silence := handle.Subscribe(c.heard)
	w.free = func() {
		silence()
		handle.Release()
	}
}

// leave takes a parent off a watch, and ends it after the last. The caller holds the lock.
func (c *Customizer) leave(r object.Resource, w *watch, key object.Key) {
	delete(w.users, key)
	delete(w.late, key)
	if len(w.users) == 0 {
		delete(c.watches, r)
		c.tasks.Go(w.stop)
	}
}

// heard brings the parents to the queue whose rules an object meets, or met before the event.
func (c *Customizer) heard(e cache.Event) {
	if e.Initial {
		return
	}
	var keys []object.Key
	for _, o := range []*object.Object{e.Old, e.New} {
		if o != nil {
			keys = append(keys, c.index.Match(o, c.spaces)...)
		}
	}
	if namespaces, err := c.namespaces(); err == nil && e.Resource == namespaces {
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

// spaces are the labels of a namespace.
func (c *Customizer) spaces(namespace string) map[string]string {
	r, err := c.namespaces()
	if err != nil { // then no namespace is known
		return nil
	}
	return labelsOf(c.Cache.Reader().Get(r, "", namespace))
}

func labelsOf(o *object.Object) labels.Set {
	if o == nil {
		return nil
	}
	return o.Labels()
}

// Follow has the rules looked at again when the API server begins or ceases to serve a resource that they name. It returns with ctx's error.
func (c *Customizer) Follow(ctx context.Context) error {
	for {
		changed := c.Discovery.Changed()
		for _, key := range c.outdated() {
			c.Forget(key)
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
func (c *Customizer) outdated() []object.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []object.Key
	for key, a := range c.answers {
		if slices.ContainsFunc(a.groups, c.moved) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (c *Customizer) moved(g group) bool {
	now, err := c.group(hook.RelatedRule{APIVersion: g.apiVersion, Resource: g.plural})
	return err != nil || now.resource != g.resource
}
