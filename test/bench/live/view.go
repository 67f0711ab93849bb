package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clientcache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// child is the last observed state of a child.
type child struct {
	version int64
	text    string
	at      time.Time
}

// view follows the children with its own watch.
type view struct {
	stop context.CancelFunc
	done chan struct{}

	mu sync.Mutex // guards the fields below
	// children are by name; texts counts them by their text.
	children map[string]child
	texts    map[string]int
	last     time.Time // of the last event
	waiter   *waiter
	err      error
}

// waiter waits for a condition, which is evaluated with the lock held.
type waiter struct {
	met  func() bool
	when chan time.Time
}

// follow begins a view of a namespace's ConfigMaps.
func follow(ctx context.Context, client kubernetes.Interface) (*view, error) {
	ctx, stop := context.WithCancel(ctx)
	v := &view{stop: stop, done: make(chan struct{}), children: map[string]child{}, texts: map[string]int{}}
	w, err := watchChildren(ctx, client.CoreV1().ConfigMaps(namespace))
	if err != nil {
		stop()
		return nil, err
	}
	go v.read(w)
	return v, nil
}

// watchChildren watches the children. The API server ends watches of clients that are slow on a
// busy machine; the next one continues after the last event.
func watchChildren(ctx context.Context, client typedcorev1.ConfigMapInterface) (watch.Interface, error) {
	options := metav1.ListOptions{LabelSelector: "bench.example.com/crowd"}
	present, err := client.List(ctx, options)
	if err != nil {
		return nil, err
	}
	if len(present.Items) > 0 {
		return nil, fmt.Errorf("the namespace has %d children; expected none", len(present.Items))
	}
	return watchtools.NewRetryWatcherWithContext(ctx, present.ResourceVersion, &clientcache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = options.LabelSelector
			return client.Watch(ctx, o)
		},
	})
}

// close ends the watch.
func (v *view) close() {
	v.stop()
	<-v.done
}

// read records events: the API server → the view.
func (v *view) read(w watch.Interface) {
	defer close(v.done)
	defer w.Stop()
	for event := range w.ResultChan() {
		if err := v.see(event, time.Now()); err != nil {
			v.fail(err)
			return
		}
	}
	v.fail(errors.New("the watch on the children has ended"))
}

func (v *view) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	if v.waiter != nil {
		close(v.waiter.when)
		v.waiter = nil
	}
}

// see records one event and its time.
func (v *view) see(event watch.Event, at time.Time) error {
	o, ok := event.Object.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("the watch on the children returned %s %v", event.Type, event.Object)
	}
	version, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("child %s: resourceVersion: %w", o.Name, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = at
	if old, known := v.children[o.Name]; known {
		v.texts[old.text]--
	}
	delete(v.children, o.Name)
	if event.Type != watch.Deleted {
		v.children[o.Name] = child{version: version, text: o.Data["text"], at: at}
		v.texts[o.Data["text"]]++
	}
	if v.waiter != nil && v.waiter.met() {
		v.waiter.when <- at
		v.waiter = nil
	}
	return nil
}

// await waits until a condition holds and returns the time of the event that fulfilled it. If it
// holds already, that is the time of the last event.
func (v *view) await(ctx context.Context, what string, met func() bool) (time.Time, error) {
	w := &waiter{met: met, when: make(chan time.Time, 1)}
	v.register(w)
	timer := time.NewTimer(waitTimeout)
	defer timer.Stop()
	select {
	case at, ok := <-w.when:
		if !ok {
			return at, fmt.Errorf("waiting until %s: %w", what, v.failure())
		}
		return at, nil
	case <-timer.C:
		return time.Time{}, fmt.Errorf("waiting until %s: not after %s; the children have %v", what, waitTimeout, v.present())
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("waiting until %s: %w", what, ctx.Err())
	}
}

// register adds a waiter. It is served immediately if the condition holds already or the view has
// failed.
func (v *view) register(w *waiter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case w.met():
		w.when <- v.last
	case v.err != nil:
		close(w.when)
	default:
		v.waiter = w
	}
}

func (v *view) failure() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

func (v *view) present() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	present := map[string]int{}
	for text, n := range v.texts {
		if n > 0 {
			present[text] = n
		}
	}
	return present
}

// awaitAll waits until n children have the text, and no others exist.
func (v *view) awaitAll(ctx context.Context, n int, text string) (time.Time, error) {
	return v.await(ctx, fmt.Sprintf("all %d children have %q", n, text),
		func() bool { return v.texts[text] == n && len(v.children) == n })
}

// awaitOne waits until a child has the text and a later version than the given one, and returns the
// time of its event.
func (v *view) awaitOne(ctx context.Context, name string, after int64, text string) (time.Time, error) {
	var at time.Time
	_, err := v.await(ctx, fmt.Sprintf("child %s has %q again", name, text), func() bool {
		c := v.children[name]
		at = c.at
		return c.version > after && c.text == text
	})
	if err != nil {
		return time.Time{}, err
	}
	return at, nil
}
