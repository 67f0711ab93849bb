package kit

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// History collects every version of the objects of one kind in the kit's namespace, as a watch
// reports them. Use it to check what happened in between, for example that a status was never wrong.
// It is safe for concurrent use.
type History struct {
	mu     sync.Mutex // guards events
	events []Version
}

// Version is one version of an object, or its deletion.
type Version struct {
	*unstructured.Unstructured
	Deleted bool
	// Seen is when the test received it.
	Seen time.Time
}

// History starts to watch a kind, and stops when the test ends. The test fails if the watch breaks.
func (k *Kit) History(kind string) *History {
	k.Helper()
	list, err := k.of(kind).List(k.Context(), metav1.ListOptions{})
	if err != nil {
		k.Fatal(err)
	}
	w, err := k.of(kind).Watch(k.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		k.Fatal(err)
	}
	h := &History{}
	ended := make(chan struct{})
	stopping := k.Context().Done()
	go func() {
		defer close(ended)
		for event := range w.ResultChan() {
			h.take(event)
		}
		select {
		case <-stopping:
		default:
			k.Errorf("the watch of %s has ended too early", kind)
		}
	}()
	k.Cleanup(func() { // the test's context has ended
		w.Stop()
		<-ended
	})
	return h
}

func (h *History) take(event watch.Event) {
	o, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
		return // an error ends the watch, which is reported then
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, Version{o, event.Type == watch.Deleted, time.Now()})
}

// Versions returns the versions that the watch has reported so far, in order.
func (h *History) Versions() []Version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}
